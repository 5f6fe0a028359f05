// Package worldtest replaces the actors of a run by others with their restored state.
package worldtest

import (
	"fmt"
	"hash"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// Replacements replaces the actors of a run.
type Replacements struct {
	// Times is the number of replacements so far.
	Times int
	// Events is a digest of the recorded events.
	Events hash.Hash64

	t      *testing.T
	seed   uint64 // seed of the run
	random *rand.Rand
	first  *actors.View // first view of the run
}

// Replace makes a run in virtual time replace its actors: before a share of an actor's messages, it
// saves the actor, makes a new one, and restores the new one from the saved state. The run must be the
// same as without replacements. Replace spares the coordinator most of them, because the coordinator
// holds copies of all models.
func Replace(t *testing.T, d *world.Deployment, share float64) *Replacements {
	r := &Replacements{Events: xxhash.New(), t: t, seed: d.Seed, random: rand.New(rand.NewPCG(1, 2))}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		n.Kind = r.wrap(n.ActorID(), n.Kind, share)
	}
	coordinate := d.Coordinate
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return r.wrap("run", func(env actors.Env) (actor.Actor, error) { return coordinate(env, control) },
			share/20)(env)
	}
	return r
}

// wrap returns a kind whose actors are replaced.
func (r *Replacements) wrap(id string, kind actors.Kind, share float64) actors.Kind {
	incarnations := 0
	return func(env actors.Env) (actor.Actor, error) {
		if r.first == nil {
			r.first = env.View()
		}
		own := &ownStreams{Env: env, seed: r.seed, jobs: new(int), owner: world.Owner(id, incarnations),
			events: r.Events}
		incarnations++
		timer := env.After(1000*time.Hour, nil) // for its clock
		timer.Cancel()
		a, err := kind(own)
		sub := &substitute{of: r, kind: kind, env: own, actor: a, share: share, clock: timer.Clock}
		if _, hands := a.(actors.Leaver); hands {
			return leaver{sub}, err
		}
		return sub, err
	}
}

// substitute passes messages on to an actor, which it replaces from time to time.
type substitute struct {
	of    *Replacements
	kind  actors.Kind
	env   *ownStreams
	actor actor.Actor
	share float64
	clock interface{ CancelTimer(id uint64) }
}

// ownStreams is the Env of an actor until its next replacement. Its random streams are its own, so that
// a new actor restores them from the saved state.
type ownStreams struct {
	actors.Env
	seed    uint64
	owner   string
	streams world.Streams
	made    *actors.View // view that the actor's Kind reads; nil after the Kind has returned
	jobs    *int         // number of jobs under way
	events  hash.Hash64  // digest of the recorded events
}

func (e *ownStreams) Rand(purpose string) *rand.Rand              { return e.streams.Get(e.seed, e.owner, purpose) }
func (e *ownStreams) Post(*protos.Tensor, iter.Seq[actors.Place]) {}

func (e *ownStreams) View() *actors.View {
	if e.made != nil {
		return e.made
	}
	return e.Env.View()
}

func (e *ownStreams) Record(event actors.Event) {
	e.Env.Record(event)
	var figures actors.Figures
	if event.Figures != nil {
		figures, event.Figures = *event.Figures, nil
	}
	fmt.Fprintln(e.events, e.Now(), e.owner, event, figures)
}

func (e *ownStreams) Compute(job actors.Job) {
	*e.jobs++
	do := job.Do
	job.Do = func() any { return computed{do()} }
	e.Env.Compute(job)
}

func (e *ownStreams) ComputeTeam(team actors.Team) {
	*e.jobs++
	result := team.Result
	team.Result = func() any { return computed{result()} }
	e.Env.ComputeTeam(team)
}

// computed wraps the result of a job, so that a substitute can tell it from a message.
type computed struct{ result any }

// declaredNode is the state of an actor together with the message that it is about to handle.
type declaredNode struct {
	s       *substitute
	message any
}

func (n *declaredNode) State(s *state.State) {
	declared, ok := n.s.actor.(state.Declared)
	if !ok {
		s.Fail(fmt.Errorf("%T declares no state", n.s.actor))
		return
	}
	n.s.env.streams.State(s, n.s.env.seed, n.s.env.owner)
	s.Part("actor", declared)
	s.Any("message", &n.message)
}

// replacedMessage is a context with another message.
type replacedMessage struct {
	actor.Context
	message any
}

func (c replacedMessage) Message() any { return c.message }

// Receive implements [actor.Actor].
func (s *substitute) Receive(ctx actor.Context) {
	message := ctx.Message()
	if c, ok := message.(computed); ok {
		*s.env.jobs--
		message = c.result
	}
	if envelope, ok := message.(*actor.MessageEnvelope); ok {
		message = envelope.Message
	}
	if _, ours := message.(actor.SystemMessage); ours || *s.env.jobs > 0 || s.of.random.Float64() > s.share {
		s.actor.Receive(replacedMessage{ctx, message})
		return
	}
	switch message.(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped:
		s.actor.Receive(replacedMessage{ctx, message})
		return
	}
	s.actor.Receive(replacedMessage{ctx, s.replace(message)})
}

// replace replaces the actor, and returns the message that the new actor handles. A resumed run makes
// its actors in its first view, and restores the view with their state.
func (s *substitute) replace(message any) any {
	t := s.of.t
	saved, err := state.Save(&declaredNode{s, message})
	if err != nil {
		t.Fatalf("saving before a %T: %v", message, err)
	}
	saved = statetest.Written(t, saved)
	s.env = &ownStreams{Env: s.env.Env, seed: s.env.seed, owner: s.env.owner, jobs: s.env.jobs,
		made: s.of.first, events: s.env.events}
	if s.actor, err = s.kind(s.env); err != nil {
		t.Fatal(err)
	}
	s.env.made = nil
	n := &declaredNode{s: s}
	if err := saved.Restore(n, state.Into{Pool: s.env.Tensors(), Clock: s.clock}); err != nil {
		t.Fatalf("restoring before a %T: %v", message, err)
	}
	s.of.Times++
	return n.message
}

// Waiting implements [actors.Waiter].
func (s *substitute) Waiting() string {
	if w, ok := s.actor.(actors.Waiter); ok {
		return w.Waiting()
	}
	return ""
}

// leaver is a substitute for an [actors.Leaver].
type leaver struct{ *substitute }

func (leaver) HandsOver() {}
