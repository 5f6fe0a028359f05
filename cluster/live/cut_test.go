package live_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// counter counts what it is sent.
type counter struct {
	got  []uint32
	view uint64 // number of its view when it was made
	gate *gate
}

// State implements [state.Declared].
func (c *counter) State(s *state.State) { state.Ints(s, "got", &c.got) }

// gate is where a counter waits before it counts; a nil channel keeps nobody.
type gate struct{ arrive, goOn chan bool }

func (c *counter) Receive(ctx actor.Context) {
	if _, is := protos.Announced(ctx.Message()); is {
		return
	}
	if i, ok := index(ctx); ok {
		if c.gate.arrive != nil {
			c.gate.arrive <- true
			<-c.gate.goOn
		}
		c.got = append(c.got, i)
	}
}

// halfOfARun is a world with one node, beside another process x that the test plays.
func halfOfARun(t *testing.T, from *live.State) (w *live.World, a *counter, passed chan uint64, saved chan *live.State,
	end func()) {
	t.Helper()
	s := &stage{handlers: []handler{nothing}}
	m := s.split(0, 1)
	c := m.make[0]
	a, passed, saved = &counter{gate: &gate{}}, make(chan uint64, 9), make(chan *live.State, 9)
	c.Deployment.Nodes[0].Kind = func(env actors.Env) (actor.Actor, error) {
		a.view = env.View().Number
		return a, nil
	}
	c.Checkpoints = &live.Checkpoints{From: from,
		Passed: func(number uint64, _ []string) { passed <- number },
		Save: func(s *live.State) error {
			saved <- s
			return nil
		}}
	w = m.build(t, 0, c)
	done := make(chan error, 1)
	go func() {
		_, err := w.Run(context.Background())
		done <- err
	}()
	return w, a, passed, saved, func() {
		w.Halt()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// sent is a message from a node that had been saved so often.
func sent(number uint32, cuts uint64) *wire.Frame {
	return &wire.Frame{Kind: wire.User, Target: "n0/peer", Head: &protos.Chunk{Index: number}, Cut: wire.CutOf(cuts)}
}

// A cut is overtaken by the next one while it waits for another process. The state of the latter
// has what was sent before and came after, once; what was sent after the cut is not in it.
func TestStateHasWhatWasOnItsWayWhenACutOvertakesAnother(t *testing.T) {
	w, _, passed, saved, end := halfOfARun(t, nil)
	w.Deliver(0, sent(1, 0))
	w.Cut(1, []string{"x"}, false)
	if number := <-passed; number != 1 {
		t.Fatalf("cut %d has passed", number)
	}
	w.Deliver(0, sent(2, 0))
	w.Cut(2, []string{"x"}, false)
	if s := <-saved; s.Number != 1 || !s.Void || s.Nodes != nil {
		t.Errorf("the cut that was overtaken has saved %+v", s)
	}
	if number := <-passed; number != 2 {
		t.Fatalf("cut %d has passed", number)
	}
	w.Deliver(0, sent(3, 1)) // its sender was saved for the first cut only
	w.Deliver(0, sent(4, 2))
	w.Passed("x", 2)
	s := <-saved
	end()
	if s.Number != 2 || s.Void || len(s.Nodes[0].Frames) != 1 {
		t.Fatalf("cut %d, void: %v, with %d messages on their way", s.Number, s.Void, len(s.Nodes[0].Frames))
	}
	w, a, _, _, end := halfOfARun(t, s)
	for w.Activity(-1).Handled == 0 {
		runtime.Gosched()
	}
	end()
	if len(a.got) != 3 || a.got[0] != 1 || a.got[1] != 2 || a.got[2] != 3 {
		t.Errorf("the node that goes on was sent %v, want 1, 2 and 3", a.got)
	}
}

// After the last cut of a run the nodes handle nothing until an ordinary cut starts. The state of
// the last cut has the messages that arrived after it.
func TestNodesHandleNothingAfterTheLastCut(t *testing.T) {
	w, a, passed, saved, end := halfOfARun(t, nil)
	a.gate.arrive, a.gate.goOn = make(chan bool, 9), make(chan bool)
	close(a.gate.goOn)
	w.Deliver(0, sent(1, 0))
	<-a.gate.arrive
	w.Cut(1, []string{"x"}, true)
	<-passed
	w.Deliver(0, sent(2, 0))
	w.Passed("x", 1)
	s := <-saved
	for at := w.Now() + 20*time.Millisecond; w.Now() < at; {
		runtime.Gosched()
	}
	if n := len(a.gate.arrive); s.Number != 1 || s.Void || n > 0 {
		t.Errorf("cut %d, void: %v; after it %d messages were handled", s.Number, s.Void, n)
	}
	w.Cut(2, []string{"x"}, false)
	<-a.gate.arrive
	end()
	w, a, _, _, end = halfOfARun(t, s)
	for w.Activity(-1).Handled == 0 {
		runtime.Gosched()
	}
	end()
	if len(a.got) != 2 || a.got[0] != 1 || a.got[1] != 2 {
		t.Errorf("the continued node received %v, want 1 and 2", a.got)
	}
}

// Actors compute values from their view when they are made.
func TestActorThatIsRestoredIsMadeInItsView(t *testing.T) {
	w, a, passed, saved, end := halfOfARun(t, nil)
	a.gate.arrive, a.gate.goOn = make(chan bool), make(chan bool)
	w.Deliver(0, &wire.Frame{Kind: wire.Control, Target: "n0/peer", Head: &protos.View{Number: 2}})
	w.Deliver(0, sent(1, 0))
	<-a.gate.arrive // so the actor has handled the view
	close(a.gate.goOn)
	w.Cut(1, []string{"x"}, false)
	<-passed
	w.Passed("x", 1)
	s := <-saved
	end()
	_, a, _, _, end = halfOfARun(t, s)
	end()
	if a.view != 2 {
		t.Errorf("the actor is made in view %d, want 2", a.view)
	}
}

// Who is gone is waited for no longer, once that is told.
func TestCutEndsWithoutAProcessThatIsGone(t *testing.T) {
	w, _, passed, saved, end := halfOfARun(t, nil)
	defer end()
	w.Cut(1, []string{"x", "y"}, false)
	<-passed
	w.Passed("y", 1)
	w.Cut(1, []string{"y"}, false)
	<-passed
	if s := <-saved; s.Void || s.Number != 1 {
		t.Errorf("%+v", s)
	}
}

// listener is a coordinator that tells what it hears.
type listener struct{ news *news }

type news struct{ came chan world.MemberChange }

// State implements [state.Declared].
func (*listener) State(*state.State) {}

func (l *listener) Receive(ctx actor.Context) {
	if m, is := ctx.Message().(world.MemberChange); is {
		l.news.came <- m
	}
}

// A world was so late that the coordinator was saved before it heard of what was long over. When
// the run goes on it hears of that first.
func TestTheCoordinatorHearsOfCrashesBeforeTheCut(t *testing.T) {
	of, gate, saved := &news{make(chan world.MemberChange, 9)}, &gate{}, make(chan *live.State, 1)
	schedule := []world.NodeChange{{At: time.Hour, Node: 0, Do: world.Crash}, {At: time.Hour, Node: 1, Do: world.Crash},
		{At: time.Hour + ms, Node: 1, Do: world.Join}}
	run := func(from *live.State, until func(w *live.World)) {
		s := &stage{handlers: []handler{nothing, nothing}, detect: ms, schedule: schedule}
		c := s.config()
		for i := range c.Deployment.Nodes {
			c.Deployment.Nodes[i].Kind = func(actors.Env) (actor.Actor, error) { return &counter{gate: gate}, nil }
		}
		c.Deployment.Coordinate = func(actors.Env, world.Control) (actor.Actor, error) { return &listener{of}, nil }
		c.Checkpoints = &live.Checkpoints{From: from, Held: func(_ uint64, do func()) { do() },
			Save: func(s *live.State) error {
				saved <- s
				return nil
			}}
		w, err := live.New(c)
		if err == nil {
			err = w.Place()
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			until(w)
			cancel(errFire)
		}()
		if _, err := w.Run(ctx); !errors.Is(err, errFire) {
			t.Fatal(err)
		}
	}
	var state *live.State
	run(nil, func(w *live.World) {
		w.Cut(1, nil, false)
		state = <-saved
	})
	delete(state.Nodes, 0)
	delete(state.Nodes, 1)
	state.At = 2 * time.Hour
	heard := map[int][]bool{}
	run(state, func(*live.World) {
		for range 3 {
			m := <-of.came
			heard[m.Node] = append(heard[m.Node], m.Present)
		}
	})
	if diff := cmp.Diff(map[int][]bool{0: {false}, 1: {false, true}}, heard); diff != "" {
		t.Error(diff)
	}
}

// A run that goes on must not tell of instants before what its state tells of.
func TestStateIsOfTheInstantAtWhichTheLastNodeWasSaved(t *testing.T) {
	w, a, passed, saved, end := halfOfARun(t, nil)
	defer end()
	a.gate.arrive, a.gate.goOn = make(chan bool), make(chan bool)
	w.Deliver(0, sent(1, 0))
	<-a.gate.arrive
	w.Cut(1, []string{"x"}, false)
	at := w.Now() + 20*time.Millisecond // how long its handler takes
	for w.Now() < at {
		runtime.Gosched()
	}
	close(a.gate.goOn)
	<-passed
	w.Passed("x", 1)
	if s := <-saved; s.At < at {
		t.Errorf("the state of a node that was at work at %v is of %v", at, s.At)
	}
}
