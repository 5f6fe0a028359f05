package live_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

func crash(at time.Duration, node int) world.NodeChange {
	return world.NodeChange{At: at, Node: node, Do: world.Crash}
}

func leave(at time.Duration, node int) world.NodeChange {
	return world.NodeChange{At: at, Node: node, Do: world.Leave}
}

func join(at time.Duration, node int) world.NodeChange {
	return world.NodeChange{At: at, Node: node, Do: world.Join}
}

// hearing notes which changes the coordinator hears of, and when.
type hearing struct {
	changes []world.MemberChange
	at      []time.Duration
}

func (h *hearing) handle(ctx actor.Context, env actors.Env) {
	if c, ok := ctx.Message().(world.MemberChange); ok {
		h.changes, h.at = append(h.changes, c), append(h.at, env.Now())
	}
}

// sendsTo sends to a node every 2 ms, until 240 ms, and counts what it sends and handles.
func sendsTo(next int, sent, handled *atomic.Int64) handler {
	return func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			env.After(0, "send")
		case string:
			if env.Now() < 240*ms {
				sent.Add(1)
				ctx.Send(pid(env, next),
					protos.NewMessage(&protos.Chunk{}, env.Tensors().Copy([]float32{1, 2})))
				env.After(2*ms, "send")
			}
		case *protos.Message:
			handled.Add(1)
			m.Release()
		}
	}
}

// A ring in which every node sends to the next one, and which comes to rest before the end.
func TestEveryMessageOfARingIsAccountedForWhileItsNodesComeAndGo(t *testing.T) {
	const nodes = 5
	for _, strict := range []bool{false, true} {
		var made, sent, handled [nodes]atomic.Int64 // by the sender's node and by the receiver's, over all of its lives
		var news hearing
		s := &stage{strict: strict, edge: constant(3 * ms), end: 400 * ms, absent: []int{4}, detect: 20 * ms,
			lead: news.handle}
		s.schedule = []world.NodeChange{crash(40*ms, 1), leave(80*ms, 2), join(120*ms, 4), join(150*ms, 1),
			crash(200*ms, 1)}
		s.making = func(node, _ int) error {
			made[node].Add(1)
			return nil
		}
		for i := range nodes {
			s.handlers = append(s.handlers, sendsTo((i+1)%nodes, &sent[i], &handled[i]))
		}
		r := s.run(t)
		var dropped int64
		for i := range nodes {
			to := (i + 1) % nodes
			e := s.network.Edge(int32(i), int32(to)).Stats()
			if got, want := made[i].Load(), [nodes]int64{1, 2, 1, 1, 1}[i]; got != want {
				t.Errorf("%d actors of node %d, want %d", got, i, want)
			}
			dropped += e.Dropped
			// A handler at work when its node goes has sent a message that never leaves, once a
			// life.
			if lost := sent[i].Load() - e.Sent; lost < 0 || (lost > 0 && i != 1 && i != 2) || lost > 2 {
				t.Errorf("node %d sent %d, its edge carried %d", i, sent[i].Load(), e.Sent)
			}
			if e.Sent != e.Delivered+e.Dropped || e.InFlightBytes() != 0 {
				t.Errorf("edge %d → %d: %+v is not all delivered or dropped", i, to, e)
			}
			if (e.Dropped > 0) != (to == 1 || to == 2 || to == 4) {
				t.Errorf("edge %d → %d dropped %d", i, to, e.Dropped)
			}
			if queued := e.Delivered - handled[to].Load(); queued < 0 || (queued > 0 && to != 1 && to != 2) {
				t.Errorf("node %d was handed %d messages and handled %d", to, e.Delivered, handled[to].Load())
			}
		}
		// one more where a node goes while it is handed a message
		if r.DeadLetters < uint64(dropped) || r.DeadLetters > uint64(dropped)+3 {
			t.Errorf("%d dead letters, %d dropped", r.DeadLetters, dropped)
		}
		want := []world.MemberChange{{Node: 1}, {Node: 2}, {Node: 4, Present: true}, {Node: 1, Present: true},
			{Node: 1}}
		if diff := cmp.Diff(want, news.changes); diff != "" {
			t.Errorf("what the coordinator heard: %s", diff)
		}
	}
}

func TestCoordinatorHearsOfALeaveAtOnceAndOfACrashWhenItIsDetectedOrTheNodeIsBack(t *testing.T) {
	var news hearing
	s := &stage{handlers: []handler{nothing, nothing, nothing}, end: 300 * ms, detect: 120 * ms}
	s.schedule = []world.NodeChange{
		crash(10*ms, 2), crash(12*ms, 2), leave(14*ms, 2), // gone already
		leave(20*ms, 1), crash(25*ms, 0), join(40*ms, 0), join(45*ms, 0), // there already
	}
	s.lead = news.handle
	s.run(t)
	want := []world.MemberChange{{Node: 1}, {Node: 0}, {Node: 0, Present: true}, {Node: 2}}
	if diff := cmp.Diff(want, news.changes); diff != "" {
		t.Fatal(diff)
	}
	for i, due := range []time.Duration{20 * ms, 40 * ms, 40 * ms, 130 * ms} {
		notBefore(t, fmt.Sprint(news.changes[i], " heard"), news.at[i], due)
	}
}

// putUnderWay sets a timer, begins a job, queues another, charges an hour and sends messages to
// node 1 and to itself.
func putUnderWay(ctx actor.Context, env actors.Env, tensor *protos.Tensor, begun, release chan struct{}) {
	env.After(410*ms, "timer of the first life")
	env.Compute(actors.Job{Work: 1e6,
		Do: func() any { close(begun); <-release; return "job of the first life" }})
	env.Compute(actors.Job{Work: 1e6, Do: func() any { return "queued job of the first life" }})
	select {
	case <-begun:
	case <-release:
	}
	ctx.Send(pid(env, 1), chunk(0)) // arrives, whatever happens to the sender
	env.Charge(3600e9)
	ctx.Send(pid(env, 1), chunk(1))
	ctx.Send(ctx.Self(), protos.NewMessage(&protos.Chunk{}, tensor.Retain()))
	env.Record(actors.Event{Kind: actors.StepDone})
	env.Fail(errFire)
}

// The crash finds the node in a handler that charges an hour, with a timer, a job on a
// thread, a job in the queue and messages in its mailbox.
func TestCrashTakesWhatTheNodeHasUnderWayAndItsNextLifeKnowsNothing(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{})
	tensor := protos.NewTensor([]float32{1})
	var lives [][]string
	var draws []uint64
	s := &stage{seed: 5, threads: 1, edge: constant(5 * ms)}
	s.schedule = []world.NodeChange{crash(400*ms, 0), join(450*ms, 0)} // a busy machine begins before
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			note := func(what string) { lives[len(lives)-1] = append(lives[len(lives)-1], what) }
			switch m := ctx.Message().(type) {
			case *actor.Started:
				lives, draws = append(lives, []string{"started"}), append(draws, env.Rand("dice").Uint64())
				if len(lives) == 2 {
					close(release)
					env.After(40*ms, "finish")
					return
				}
				putUnderWay(ctx, env, tensor, begun, release)
			case *protos.Message:
				note("message")
				m.Release()
			case string:
				if note(m); m == "finish" {
					s.finish()
				}
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if started(ctx) {
				ctx.Send(pid(env, 0), protos.NewMessage(&protos.Chunk{}, tensor.Retain()))
			} else if i, ok := index(ctx); ok && i != 0 {
				env.Fail(fmt.Errorf("message %d was sent after the crash", i))
			}
		},
	}
	s.observer = watcher(func(_ time.Duration, _ int, e actors.Event) { t.Errorf("recorded after the crash: %+v", e) })
	s.run(t)
	if diff := cmp.Diff([][]string{{"started"}, {"started", "finish"}}, lives); diff != "" {
		t.Error(diff)
	}
	first := rand.New(actors.Source(5, "n0/peer", "dice")).Uint64()
	second := rand.New(actors.Source(5, world.Owner("n0/peer", 1), "dice")).Uint64()
	if diff := cmp.Diff([]uint64{first, second}, draws); diff != "" || first == second {
		t.Errorf("drawn in two lives: %s", diff)
	}
	if !tensor.Sole() {
		t.Error("a message of the first life was never released")
	}
	if e := s.network.Edge(0, 1).Stats(); e.Sent != 1 || e.Delivered != 1 {
		t.Errorf("edge of the crashed node %+v, want the one message from before", e)
	}
	if e := s.network.Edge(1, 0).Stats(); e.Delivered != 1 {
		t.Errorf("edge to the crashed node %+v, want one message delivered", e)
	}
}

func TestCrashedNodeDoesNotHoldUpItsReturnOrTheEnd(t *testing.T) {
	release := make(chan struct{})
	var lives atomic.Int64
	s := &stage{schedule: []world.NodeChange{crash(60*ms, 0), join(80*ms, 0)}}
	s.making = func(_, life int) error {
		lives.Store(int64(life))
		return nil
	}
	s.handlers = []handler{atStart(func(actor.Context, actors.Env) {
		if lives.Load() == 0 {
			<-release // computes within its handler, beyond the crash
			return
		}
		s.finish()
		close(release)
	})}
	s.run(t)
}

func TestAbsentNodeIsNotMadeAndWhatIsSentToItIsDropped(t *testing.T) {
	var members []string
	s := &stage{absent: []int{1}, edge: constant(ms)}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				for _, m := range env.View().Members {
					members = append(members, fmt.Sprintf("%s %t %d", m.Name, m.Present, m.Rank))
				}
				ctx.Send(pid(env, 1), chunk(0))
				ctx.Send(pid(env, 1), chunk(1))
				env.After(10*ms, "finish")
			case string:
				s.finish()
			}
		},
		func(actor.Context, actors.Env) { t.Error("an actor of an absent node handled a message") },
	}
	r := s.run(t)
	if diff := cmp.Diff([]string{"n0 true 0", "n1 false -1"}, members); diff != "" {
		t.Error(diff)
	}
	if e := s.network.Edge(0, 1).Stats(); r.DeadLetters != 2 || e.Sent != 2 || e.Dropped != 2 {
		t.Errorf("%d dead letters, edge %+v, want both messages dropped", r.DeadLetters, e)
	}
}

// A busy coordinator hears at once that a node was back, away and back, and has its last life start
// for each time.
func TestALifeStartsOnce(t *testing.T) {
	var views []uint64
	s := &stage{handlers: []handler{func(ctx actor.Context, _ actors.Env) {
		if m, is := ctx.Message().(*protos.Message); is {
			views = append(views, m.Head.(*protos.Start).View)
		}
	}}}
	s.lead = func(ctx actor.Context, env actors.Env) {
		switch ctx.Message().(type) {
		case *actor.Started:
			for view := range uint64(3) {
				ctx.Send(pid(env, 0), protos.NewMessage(&protos.Start{View: view + 1, Joins: true}))
			}
			env.After(10*ms, "finish")
		case string:
			s.finish()
		}
	}
	s.run(t)
	if diff := cmp.Diff([]uint64{1}, views); diff != "" {
		t.Error(diff)
	}
}

func TestViewIsInPlaceWhenItsMessageIsHandled(t *testing.T) {
	seen := map[string]*[]string{"member": {}, "coordinator": {}}
	see := func(who string, env actors.Env) {
		*seen[who] = append(*seen[who], fmt.Sprint(env.View().Number, env.View().Role("peer")))
	}
	s := &stage{absent: []int{2}, schedule: []world.NodeChange{join(10*ms, 2)}}
	s.lead = func(ctx actor.Context, env actors.Env) {
		if c, ok := ctx.Message().(world.MemberChange); ok && c.Present {
			see("coordinator", env)
			head := &protos.View{Number: 2}
			s.announce(head)
			see("coordinator", env)
			ctx.Send(pid(env, 0), protos.NewMessage(head))
		}
	}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				see("member", env)
			case *protos.Message:
				see("member", env)
				m.Head.(*protos.View).Absent = []int32{0} // the world must not look at it again
				m.Release()
				s.finish()
			}
		},
		nothing, nothing,
	}
	s.run(t)
	for who, views := range seen {
		if diff := cmp.Diff([]string{"1 [0 1]", "2 [0 1 2]"}, *views); diff != "" {
			t.Errorf("what a %s sees: %s", who, diff)
		}
	}
}

// Changes happen one after the other: what the making of node 2 waits for has happened
// before node 1 joins.
func TestNodeJoinsWithTheLatestView(t *testing.T) {
	var number uint64
	announced := make(chan struct{})
	s := &stage{absent: []int{1, 2}, schedule: []world.NodeChange{join(ms, 2), join(ms, 1)}}
	s.making = func(node, _ int) error {
		if node == 2 {
			<-announced
		}
		return nil
	}
	s.lead = atStart(func(actor.Context, actors.Env) {
		s.announce(&protos.View{Number: 7, Absent: []int32{1}})
		close(announced)
	})
	s.handlers = []handler{nothing, atStart(func(_ actor.Context, env actors.Env) {
		number = env.View().Number
		s.finish()
	}), nothing}
	s.run(t)
	if number != 7 {
		t.Errorf("joins with view %d, want 7", number)
	}
}

func TestControlMessagesOvertakeWhatWaitsInTheMailbox(t *testing.T) {
	var order []string
	s := &stage{edge: constant(ms)}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			if started(ctx) {
				for i := range uint32(3) {
					ctx.Send(pid(env, 1), chunk(i))
				}
				env.After(20*ms, "view")
			} else if ctx.Message() == "view" {
				ctx.Send(pid(env, 1), protos.NewMessage(&protos.View{Number: 2}))
				ctx.Send(pid(env, 1), protos.NewMessage(&protos.View{Number: 3}))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			m, ok := ctx.Message().(*protos.Message)
			if !ok {
				return
			}
			switch head := m.Head.(type) {
			case *protos.View:
				order = append(order, fmt.Sprint("view ", head.Number))
			case *protos.Chunk:
				if order = append(order, fmt.Sprint("chunk ", head.Index)); head.Index == 0 {
					env.Charge(120e6)
				}
			}
			if m.Release(); len(order) == 5 {
				s.finish()
			}
		},
	}
	s.run(t)
	if diff := cmp.Diff([]string{"chunk 0", "view 2", "view 3", "chunk 1", "chunk 2"}, order); diff != "" {
		t.Error(diff)
	}
}

func TestHaltedRunDoesNotChangeItsNodes(t *testing.T) {
	var news hearing
	halted := make(chan struct{})
	s := &stage{end: 60 * ms, absent: []int{2},
		schedule: []world.NodeChange{leave(5*ms, 0), join(10*ms, 2), join(10*ms, 0), leave(10*ms, 1)}}
	s.handlers = []handler{nothing, nothing, nothing}
	s.making = func(node, _ int) error {
		if node == 2 {
			<-halted // so that the changes after this one come too late
		}
		return nil
	}
	s.lead = func(ctx actor.Context, env actors.Env) {
		if news.handle(ctx, env); len(news.changes) == 1 {
			s.lead = news.handle
			s.halt()
			close(halted)
		}
	}
	s.run(t)
	if diff := cmp.Diff([]world.MemberChange{{Node: 0}}, news.changes); diff != "" {
		t.Error(diff)
	}
}

func TestActorThatCannotBeMadeAgainEndsTheRun(t *testing.T) {
	s := &stage{schedule: []world.NodeChange{leave(5*ms, 0), join(10*ms, 0)}, handlers: []handler{nothing}}
	s.making = func(_, life int) error {
		if life == 1 {
			return errFire
		}
		return nil
	}
	if err := s.fails(t); err == nil || err.Error() != "node n0: "+errFire.Error() {
		t.Errorf("error %v, want one that names node n0 and %q", err, errFire)
	}
}
