package experiment

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/protos"
)

// substitute stands in for an actor. Before some messages it saves the actor, makes a new one, and
// restores the new actor from the saved state. The rest of the run must not notice.
type substitute struct {
	t      *testing.T
	kind   actors.Kind
	env    *ownStreams
	actor  actor.Actor
	random *rand.Rand
	often  float64
	times  *int
	clock  interface{ CancelTimer(id uint64) }
}

// ownStreams is the Env of one restored actor, which has its own random streams.
type ownStreams struct {
	actors.Env
	seed    uint64
	owner   string
	streams world.Streams
	jobs    *int      // number of jobs under way
	told    io.Writer // receives the recorded events
}

func (e *ownStreams) Rand(purpose string) *rand.Rand              { return e.streams.Get(e.seed, e.owner, purpose) }
func (e *ownStreams) Post(*protos.Tensor, iter.Seq[actors.Place]) {}

func (e *ownStreams) Record(event actors.Event) {
	e.Env.Record(event)
	var figures actors.Figures
	if event.Figures != nil {
		figures, event.Figures = *event.Figures, nil
	}
	fmt.Fprintln(e.told, e.Now(), e.owner, event, figures)
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

// computed marks the result of a job.
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

// told is a context with another message.
type told struct {
	actor.Context
	message any
}

func (c told) Message() any { return c.message }

func (s *substitute) Receive(ctx actor.Context) {
	message := ctx.Message()
	if c, ok := message.(computed); ok {
		*s.env.jobs--
		message = c.result
	}
	if envelope, ok := message.(*actor.MessageEnvelope); ok {
		message = envelope.Message
	}
	if _, ours := message.(actor.SystemMessage); ours || *s.env.jobs > 0 || s.random.Float64() > s.often {
		s.actor.Receive(told{ctx, message})
		return
	}
	switch message.(type) {
	case *actor.Started, *actor.Stopping, *actor.Stopped:
		s.actor.Receive(told{ctx, message})
		return
	}
	saved, err := state.Save(&declaredNode{s, message})
	if err != nil {
		s.t.Fatalf("saving before a %T: %v", message, err)
	}
	saved = statetest.Written(s.t, saved)
	s.env = &ownStreams{Env: s.env.Env, seed: s.env.seed, owner: s.env.owner, jobs: s.env.jobs,
		told: s.env.told}
	if s.actor, err = s.kind(s.env); err != nil {
		s.t.Fatal(err)
	}
	n := &declaredNode{s: s}
	if err := saved.Restore(n, state.Into{Pool: s.env.Tensors(), Clock: s.clock}); err != nil {
		s.t.Fatalf("restoring before a %T: %v", message, err)
	}
	*s.times++
	s.actor.Receive(told{ctx, n.message})
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

// played runs a plan in virtual time. It replaces actors before a share of their messages, and returns
// a digest of the run and the number of replacements.
func played(t *testing.T, often float64, set ...string) (hash string, times int) {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(steady), set...)
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := points[0].stageFor(shelf.New("", 1, nil), 1, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	random, told := rand.New(rand.NewPCG(1, 2)), xxhash.New()
	wrap := func(id string, kind actors.Kind, often float64) actors.Kind {
		lives := 0
		return func(env actors.Env) (actor.Actor, error) {
			own := &ownStreams{Env: env, seed: s.Deployment.Seed, jobs: new(int), owner: world.Owner(id, lives),
				told: told}
			lives++
			timer := env.After(1000*time.Hour, nil)
			timer.Cancel()
			a, err := kind(own)
			sub := &substitute{t: t, kind: kind, env: own, actor: a, random: random, often: often, times: &times,
				clock: timer.Clock}
			if _, hands := a.(actors.Leaver); hands {
				return leaver{sub}, err
			}
			return sub, err
		}
	}
	for i := range s.Deployment.Nodes {
		n := &s.Deployment.Nodes[i]
		n.Kind = wrap(n.ActorID(), n.Kind, often)
	}
	coordinate := s.Deployment.Coordinate
	s.Deployment.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return wrap("run", func(env actors.Env) (actor.Actor, error) { return coordinate(env, control) },
			often/20)(env) // less often, because the coordinator holds copies of all models
	}
	result, err := (Virtual{}).Play(context.Background(), s)
	if err != nil {
		t.Fatalf("%v: %v", set, err)
	}
	led := s.result
	led.Models, led.Average = nil, nil
	return fmt.Sprintf("%s, events %x, result %+v", digest(*result.Digest, s.result.Models), told.Sum64(), led), times
}

// declaredCases holds further settings by architecture, which bring its actors into more states.
// Settings that themselves set the architecture run once.
var declaredCases = map[string][][]string{}

// Replacing any actor, at any time, by a new actor with its restored state leaves the messages and
// events of the run the same, to the bit.
func TestARestoredActorGoesOnAsItself(t *testing.T) {
	for k, kind := range slices.Sorted(maps.Keys(variants)) {
		for v, variant := range variants[kind] {
			t.Run(variant, func(t *testing.T) {
				t.Parallel()
				all := append([][]string{
					nil,
					{"train.optimizer={kind: adam, rate: 0.01}", "network.default.loss={probability: 5%, kind: drop}"},
					{"schedule=[{at: 300ms, node: w2, do: crash}, {at: 500ms, node: w2, do: join}]"},
				}, declaredCases[kind]...)
				for i, more := range all {
					if v > 0 && len(more) > 0 && strings.HasPrefix(more[0], "architecture=") {
						continue
					}
					t.Run(strings.Join(more, " "), func(t *testing.T) {
						turns.Row(t, i+v+k, len(all), 6)
						goesOnAsItself(t, append([]string{"architecture=" + variant, "stop={time: 1s}"}, more...)...)
					})
				}
			})
		}
	}
}

// goesOnAsItself compares a run with the same run in which actors are replaced.
func goesOnAsItself(t *testing.T, set ...string) {
	t.Helper()
	want, _ := played(t, 0, set...)
	for _, often := range []float64{0.02, 1} {
		got, times := played(t, often, set...)
		if got != want || times == 0 {
			t.Errorf("%v: digest %s after %d substitutions, want %s", set, got, times, want)
		}
	}
}
