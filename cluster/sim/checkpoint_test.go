package sim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// pinger sends its neighbour a message a second, and counts what comes.
type pinger struct {
	env   actors.Env
	count int
	habit func(p *pinger, ctx actor.Context) // called with the first message
	bad   any                                // declared as a message, which it may not be
}

// State implements [state.Declared].
func (p *pinger) State(s *state.State) {
	state.Int(s, "count", &p.count)
	s.Any("bad", &p.bad)
}

type bell struct{}

// State implements [state.Declared].
func (*bell) State(*state.State) {}

var _ = state.Register[bell]("test.bell")

func (p *pinger) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		p.env.After(time.Second, bell{})
	case bell:
		p.env.After(time.Second, bell{})
		ctx.Send(pid(p.env, 1-p.env.Node()), chunk(uint32(p.count)))
	case *protos.Message:
		m.Release()
		if _, is := protos.Announced(m); is {
			return
		}
		if p.count++; p.count == 1 && p.habit != nil {
			p.habit(p, ctx)
		}
	}
}

// ender ends the run after so many rings.
type ender struct {
	env   actors.Env
	left  int
	world world.Control
}

func (e *ender) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, bell:
		if e.left--; e.left < 0 {
			e.world.Finish()
		}
		e.env.After(time.Second, bell{})
	}
}

// State implements [state.Declared].
func (e *ender) State(s *state.State) { state.Int(s, "left", &e.left) }

// pingers are two of them for some seconds.
func pingers(nodes, seconds int, habit func(p *pinger, ctx actor.Context)) sim.Config {
	d := &world.Deployment{Seed: 1, Bounded: true}
	for i := range nodes {
		d.Nodes = append(d.Nodes, world.Node{Name: string(rune('a' + i)), Role: "peer", Profile: world.Unlimited,
			Kind: func(env actors.Env) (actor.Actor, error) { return &pinger{env: env, habit: habit}, nil }})
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &ender{env: env, left: seconds, world: control}, nil
	}
	n := link.New(1, d.Names())
	n.SetDefault(link.Config{Delay: link.Constant{Delay: 1500 * time.Millisecond}})
	return sim.Config{Deployment: d, Network: n}
}

func TestWorldGoesOnFromEachOfItsStates(t *testing.T) {
	run := func(w *sim.World, err error) sim.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		r, err := w.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := run(sim.New(pingers(2, 20, nil)))
	var states []*state.Saved
	var instants []time.Duration
	c := pingers(2, 20, nil)
	save := func(at time.Duration, saved *state.Saved) error {
		states, instants = append(states, saved), append(instants, at)
		return nil
	}
	c.Checkpoints = &sim.Checkpoints{Every: 1300 * time.Millisecond, Save: save}
	if r := run(sim.New(c)); r.Digest != want.Digest || r.Events != want.Events {
		t.Errorf("with checkpoints %+v, without %+v", r, want)
	}
	if len(states) < 10 || instants[0] != 1300*time.Millisecond || instants[1] != 2600*time.Millisecond {
		t.Errorf("states of the instants %v", instants)
	}
	for i, saved := range states {
		r := run(sim.Restore(pingers(2, 20, nil), statetest.Written(t, saved)))
		if r.Digest != want.Digest || r.Events != want.Events || r.Now != want.Now {
			t.Errorf("from %v: %+v, want %+v", instants[i], r, want)
		}
	}
	if _, err := sim.Restore(pingers(3, 20, nil), states[0]); !errors.Is(err, state.ErrForeign) {
		t.Errorf("of more nodes: %v", err)
	}
}

// announcer announces the second view after a second, and ends the run after ten.
type announcer struct {
	env   actors.Env
	world world.Control
}

// State implements [state.Declared].
func (*announcer) State(*state.State) {}

func (a *announcer) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		a.env.After(time.Second, bell{})
		a.env.After(10*time.Second, world.MemberChange{})
	case bell:
		v := &protos.View{Number: 2}
		a.world.Announce(v)
		ctx.Send(pid(a.env, 0), protos.NewMessage(v))
	case world.MemberChange:
		a.world.Finish()
	}
}

// Actors compute values from their view when they are made.
func TestActorThatIsRestoredIsMadeInItsView(t *testing.T) {
	var made []uint64
	config := func(save func(time.Duration, *state.Saved) error) sim.Config {
		c := pingers(2, 0, nil)
		for i := range c.Deployment.Nodes {
			kind := c.Deployment.Nodes[i].Kind
			c.Deployment.Nodes[i].Kind = func(env actors.Env) (actor.Actor, error) {
				made = append(made, env.View().Number)
				return kind(env)
			}
		}
		c.Deployment.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
			return &announcer{env, control}, nil
		}
		c.Late = 10 * time.Millisecond
		c.Checkpoints = &sim.Checkpoints{Every: 3 * time.Second, Save: save}
		return c
	}
	var states []*state.Saved
	w, err := sim.New(config(func(_ time.Duration, saved *state.Saved) error {
		states = append(states, saved)
		return nil
	}))
	if err == nil {
		_, err = w.Run(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	made = nil
	if _, err := sim.Restore(config(nil), states[0]); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{2, 1}; !slices.Equal(made, want) { // no announcement reached the second node
		t.Errorf("made in the views %v, want %v", made, want)
	}
}

func TestErrorOfSavingEndsTheRun(t *testing.T) {
	full := errors.New("the disk is full")
	c := pingers(2, 20, nil)
	save := func(time.Duration, *state.Saved) error { return full }
	c.Checkpoints = &sim.Checkpoints{Every: 2 * time.Second, Save: save}
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Run(context.Background()); !errors.Is(err, full) || r.Now > 3*time.Second {
		t.Errorf("at %v: %v", r.Now, err)
	}
}

// A checkpoint cannot hold protoactor's own data about an actor, nor values that are not declared. The run
// fails instead of saving an incomplete state.
func TestRunThatCannotBeSavedWholeIsNotSaved(t *testing.T) {
	child := actor.PropsFromFunc(func(actor.Context) {})
	for what, c := range map[string]struct {
		habit func(p *pinger, ctx actor.Context)
		want  string
	}{
		"function": {func(p *pinger, _ actor.Context) { p.bad = func() {} }, "a func() cannot be saved"},
		"child":    {func(_ *pinger, ctx actor.Context) { ctx.Spawn(child) }, "spawned others"},
		"watch":    {func(p *pinger, ctx actor.Context) { ctx.Watch(pid(p.env, 1-p.env.Node())) }, "is watched"},
		"end":      {func(_ *pinger, ctx actor.Context) { ctx.Stop(ctx.Self()) }, "has ended itself"},
		"future": {func(p *pinger, ctx actor.Context) {
			ctx.RequestFuture(pid(p.env, 1-p.env.Node()), chunk(7), -1)
		}, "a future"},
	} {
		config := pingers(2, 20, c.habit)
		save := func(at time.Duration, _ *state.Saved) error {
			t.Errorf("%s: saved at %v", what, at)
			return nil
		}
		config.Checkpoints = &sim.Checkpoints{Every: 5 * time.Second, Save: save}
		w, err := sim.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "cannot be saved") {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
