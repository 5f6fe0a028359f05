package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// member is an actor that begins when the coordinator says so, as an architecture's actors do.
func member(begin func(ctx actor.Context, env actors.Env), then handler) handler {
	return func(ctx actor.Context, env actors.Env) {
		if m, ok := ctx.Message().(*protos.Message); ok {
			if _, ok := m.Head.(*protos.Start); ok {
				begin(ctx, env)
				return
			}
		}
		then(ctx, env)
	}
}

// kickOff starts all members.
func kickOff(ctx actor.Context, env actors.Env) {
	if started(ctx) {
		for i := range env.View().Members {
			ctx.Send(pid(env, i), protos.NewMessage(&protos.Start{View: 1}))
		}
	}
}

// done tells the coordinator of a stage that it is to end the run.
func done(ctx actor.Context) { ctx.Send(actors.CoordinatorPID(), chunk(0)) }

// untilDone starts the members, and finishes when one says done.
func (s *stage) untilDone() {
	s.lead = func(ctx actor.Context, env actors.Env) {
		kickOff(ctx, env)
		if _, ok := index(ctx); ok {
			s.finish()
		}
	}
}

func TestRequestAndAnswerCrossWorldsOverTheirLinks(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var asked, answered time.Duration
		var sum float32
		tensor := protos.NewTensor([]float32{1, 2, 3})
		s := &stage{strict: strict, edge: constant(3 * ms)}
		s.handlers = []handler{
			member(func(ctx actor.Context, env actors.Env) {
				asked = env.Now()
				ctx.Request(pid(env, 1), protos.NewMessage(&protos.Chunk{Index: 7}, tensor.Retain()))
			}, func(ctx actor.Context, env actors.Env) {
				if i, ok := index(ctx); ok && i == 8 {
					answered = env.Now()
					done(ctx)
				}
			}),
			func(ctx actor.Context, _ actors.Env) {
				if m, ok := ctx.Message().(*protos.Message); ok {
					if head, ok := m.Head.(*protos.Chunk); ok {
						for _, v := range m.Tensors[0].Data {
							sum += v
						}
						ctx.Respond(chunk(head.Index + 1))
					}
				}
			},
		}
		s.untilDone()
		m := s.split(0, 1, 2)
		m.run(t)
		notBefore(t, "answered", answered, asked+6*ms)
		if sum != 6 || !tensor.Sole() {
			t.Errorf("the tensor's values add up to %v, want 6; all references given back: %v", sum, tensor.Sole())
		}
		if there, back := m.total(0, 1), m.total(1, 0); there.Sent != 1 || there.Delivered != 1 ||
			back.Delivered != 1 || there.TookSum < 3*ms {
			t.Errorf("edges %+v and %+v, want one message each that took 3ms", there, back)
		}
		if m.make[0].Network.Edge(0, 1).Stats().Sent != 1 || m.make[1].Network.Edge(1, 0).Stats().Sent != 1 {
			t.Error("a message is not counted where its sender lives")
		}
	}
}

func TestWatchTellsOfTheEndOfAnActorInAnotherWorld(t *testing.T) {
	var who []string
	s := &stage{edge: constant(ms)}
	s.handlers = []handler{
		member(func(ctx actor.Context, env actors.Env) {
			ctx.Watch(pid(env, 1))
			ctx.Watch(actor.NewPID("n1", "n1/missing"))
			ctx.Send(pid(env, 1), chunk(0))
		}, func(ctx actor.Context, _ actors.Env) {
			if m, ok := ctx.Message().(*actor.Terminated); ok {
				if who = append(who, m.Who.Id); len(who) == 2 {
					done(ctx)
				}
			}
		}),
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				ctx.Stop(ctx.Self())
			}
		},
	}
	s.handlers[1] = member(func(actor.Context, actors.Env) {}, s.handlers[1])
	s.untilDone()
	s.split(0, 1, 0).run(t)
	if slices.Sort(who); fmt.Sprint(who) != "[n1/missing n1/peer]" {
		t.Errorf("terminated %v, want each of two actors once", who)
	}
}

// The halves of an exchange across worlds that a carrier holds up, beside one that stays
// inside of a world.
func TestWorldDoesNotWaitForASlowCarrier(t *testing.T) {
	const rounds = 50
	release := make(chan struct{})
	local := 0
	s := &stage{edge: constant(ms)}
	pong := func(other int) handler {
		return func(ctx actor.Context, env actors.Env) {
			if _, ok := index(ctx); ok {
				if local++; local == rounds {
					close(release)
					return
				}
				ctx.Send(pid(env, other), chunk(0))
			}
		}
	}
	s.handlers = []handler{
		member(func(ctx actor.Context, env actors.Env) {
			ctx.Send(pid(env, 2), chunk(0)) // is held up
			ctx.Send(pid(env, 1), chunk(0))
		}, pong(1)),
		member(nothing, pong(0)),
		member(nothing, func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				done(ctx)
			}
		}),
	}
	s.untilDone()
	m := s.split(0, 0, 1, 0)
	m.carrying = func(_, _ int, f *wire.Frame) {
		if f.Kind == wire.User && f.Target == "n2/peer" {
			<-release
		}
	}
	m.run(t)
	if local != rounds || m.total(0, 2).Delivered != 1 {
		t.Errorf("%d messages were handled while one was held up, want %d", local, rounds)
	}
}

// A control message passes others that wait for the carrier.
func TestControlMessagesDoNotWaitForTheCarrierBehindOthers(t *testing.T) {
	asked := make(chan struct{})
	s := &stage{}
	s.handlers = []handler{member(nothing, nothing), member(nothing, func(ctx actor.Context, _ actors.Env) {
		if m, ok := ctx.Message().(*protos.Message); ok {
			if _, ok := m.Head.(*protos.TakeSnapshot); ok {
				close(asked)
			} else if _, ok := m.Head.(*protos.Chunk); ok {
				done(ctx)
			}
		}
	})}
	s.lead = func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			ctx.Send(pid(env, 1), chunk(0))
			ctx.Send(pid(env, 1), protos.NewMessage(&protos.TakeSnapshot{}))
		} else if _, ok := index(ctx); ok {
			s.finish()
		}
	}
	m := s.split(0, 1, 0)
	m.carrying = func(_, _ int, f *wire.Frame) {
		if _, ok := f.Head.(*protos.Chunk); ok && f.Target == "n1/peer" {
			<-asked
		}
	}
	m.run(t)
}

func TestErrorOfTheCarrierEndsTheRunUnlessTheReceiverIsGone(t *testing.T) {
	for _, c := range []struct {
		failure error
		ends    bool
	}{{errFire, true}, {fmt.Errorf("no answer: %w", live.ErrGone), false}} {
		tensor := protos.NewTensor([]float32{1})
		s := &stage{edge: constant(ms), handlers: []handler{member(func(ctx actor.Context, env actors.Env) {
			ctx.Send(pid(env, 1), protos.NewMessage(&protos.Chunk{}, tensor.Retain()))
			env.After(30*ms, "done")
		}, func(ctx actor.Context, _ actors.Env) {
			if _, ok := ctx.Message().(string); ok {
				done(ctx)
			}
		}), member(nothing, nothing)}}
		s.untilDone()
		m := s.split(0, 1, 0)
		m.sending = func(_, _ int, f *wire.Frame) error {
			if _, ok := f.Head.(*protos.Chunk); ok && f.Target == "n1/peer" {
				return c.failure
			}
			return nil
		}
		m.start(t)()
		if err := m.failures[0]; errors.Is(err, errFire) != c.ends || (err != nil) != c.ends || c.ends &&
			!strings.Contains(err.Error(), "n1/n1/peer at") {
			t.Errorf("error %v of the carrier ended the run with %v", c.failure, err)
		}
		stats := m.total(0, 1)
		if stats.Sent != 1 || stats.Delivered != 0 || stats.Dropped != 1 || m.results[0].DeadLetters != 1 {
			t.Errorf("edge %+v, %d dead letters, want one message that was lost", stats, m.results[0].DeadLetters)
		}
		if !tensor.Sole() {
			t.Error("a reference to the tensor of the lost message is left")
		}
	}
}

func TestLatencyOfANodeElsewhereAddsHalfTheRoundTrip(t *testing.T) {
	var got []time.Duration
	s := &stage{edge: link.Config{Delay: link.Uniform{Min: 2 * ms, Max: 4 * ms}}}
	s.handlers = []handler{member(func(ctx actor.Context, env actors.Env) {
		got = append(got, env.Latency(1), env.Latency(2))
		done(ctx)
	}, nothing), member(nothing, nothing), member(nothing, nothing)}
	s.untilDone()
	m := s.split(0, 0, 1, 0)
	m.make[0].RoundTrip = func(node int) time.Duration { return time.Duration(node) * 10 * ms }
	m.run(t)
	if fmt.Sprint(got) != "[3ms 13ms]" {
		t.Errorf("latencies %v, want 3ms here and 3ms + 20ms/2 elsewhere", got)
	}
}

// Two worlds send 10,000 bytes each at once to a node that takes 50,000 a second.
func TestDownlinkIsSharedByTheSendersOfAllWorlds(t *testing.T) {
	var at []time.Duration
	send := member(func(ctx actor.Context, env actors.Env) {
		ctx.Send(pid(env, 0), protos.NewMessage(&protos.Chunk{}, protos.NewTensor(make([]float32, 2500))))
	}, nothing)
	s := &stage{handlers: []handler{member(nothing, func(ctx actor.Context, env actors.Env) {
		if _, ok := index(ctx); ok {
			if at = append(at, env.Now()); len(at) == 2 {
				done(ctx)
			}
		}
	}), send, send}}
	s.untilDone()
	m := s.split(0, 1, 2, 0)
	for _, c := range m.make {
		c.Network.SetDownlink(0, rate.Constant(5e4))
	}
	m.run(t)
	notBefore(t, "first message", at[0], 200*ms)
	notBefore(t, "second message", at[1], 400*ms)
	if took := m.total(1, 0).TookSum; took >= 200*ms {
		t.Errorf("took %v to the carrier, want the downlink only behind it", took)
	}
}

func TestEachWorldTellsOfTheEventsOfItsOwnNodes(t *testing.T) {
	const steps = 5
	step := member(func(_ actor.Context, env actors.Env) {
		for i := range uint64(steps) {
			env.Record(actors.Event{Kind: actors.StepDone, Step: i, Samples: 32})
		}
	}, nothing)
	heard := 0
	s := &stage{handlers: []handler{step, step, step}}
	s.lead = func(ctx actor.Context, env actors.Env) {
		kickOff(ctx, env)
		if m, ok := ctx.Message().(*protos.Message); ok {
			if heard++; heard == 3*steps {
				s.finish()
			}
			m.Release()
		}
	}
	m := s.split(0, 1, 1, 0)
	logs := []*log{{}, {}}
	for i := range logs {
		m.make[i].Deployment.Observer = logs[i]
	}
	m.run(t)
	if a, b := logs[0].events, logs[1].events; len(a) != 1 || len(a[0]) != steps || len(b) != 2 ||
		len(b[1]) != steps || len(b[2]) != steps {
		t.Errorf("the worlds told of %v and %v", a, b)
	}
}

func TestEndOfTheCoordinatorsWorldEndsTheOthers(t *testing.T) {
	for name, end := range map[string]func(s *stage, env actors.Env){
		"finish":           func(s *stage, _ actors.Env) { s.finish() },
		"halt and finish":  func(s *stage, env actors.Env) { s.halt(); env.After(5*ms, "finish") },
		"a failure":        func(_ *stage, env actors.Env) { env.Fail(errFire) },
		"a failed actor":   func(*stage, actors.Env) { panic(errFire) },
		"halt and failure": func(s *stage, env actors.Env) { s.halt(); env.Fail(errFire) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{handlers: []handler{nothing, nothing, nothing}}
			s.lead = func(ctx actor.Context, env actors.Env) {
				if started(ctx) {
					end(s, env)
				} else if ctx.Message() == "finish" {
					s.finish()
				}
			}
			m := s.split(0, 1, 2, 0)
			m.start(t)()
			if fails := strings.Contains(name, "fail"); errors.Is(m.failures[0], errFire) != fails || !fails &&
				m.failures[0] != nil {
				t.Errorf("the coordinator's world ended with %v", m.failures[0])
			}
			if m.failures[1] != nil || m.failures[2] != nil || fmt.Sprint(m.halts) != "[1 0 0]" {
				t.Errorf("the others ended with %v, halts %v", m.failures[1:], m.halts)
			}
		})
	}
}

func TestFailureOfAMemberEndsItsWorldWithTheReason(t *testing.T) {
	s := &stage{handlers: []handler{nothing, atStart(func(actor.Context, actors.Env) { panic(errFire) })}}
	m := s.split(0, 1, 0)
	m.start(t)()
	for i, err := range m.failures { // the coordinator's is told by the cause of its context
		if !errors.Is(err, errFire) || !strings.Contains(err.Error(), "node n1") {
			t.Errorf("world %d ended with %v, want one that names node n1 and wraps %q", i, err, errFire)
		}
	}
}

func TestWorldWithoutACarrierHostsAllNodes(t *testing.T) {
	s := &stage{handlers: []handler{nothing, nothing}}
	c := s.config()
	c.Hosted = func(node int) bool { return node != 1 }
	if _, err := live.New(c); err == nil ||
		err.Error() != "1 of 2 nodes are hosted here, and no carrier reaches the others" {
		t.Errorf("error %v", err)
	}
}

func TestPlacedWorldCanBeAbandoned(t *testing.T) {
	s := &stage{handlers: []handler{atStart(func(actor.Context, actors.Env) { t.Error("an actor began") }), nothing}}
	m := &mesh{hosts: []int{0, 1, 1}, gone: make([]bool, 2), halts: make([]int, 2),
		make: []live.Config{s.config(), s.config()}}
	for i := range m.make {
		m.worlds = append(m.worlds, m.build(t, i, m.make[i]))
	}
	m.worlds[0].Deliver(0, &wire.Frame{Kind: wire.User, Target: "n0/peer", Head: &protos.Start{}})
	for _, w := range m.worlds {
		w.Abandon()
	}
	nothingLeft(t)
	m.worlds[0].Deliver(0, &wire.Frame{Kind: wire.User, Target: "n0/peer", Head: &protos.Start{}})
}

func TestWhatIsDeliveredToNobodyIsReleasedAndCounted(t *testing.T) {
	tensor := protos.NewTensor([]float32{1})
	s := &stage{handlers: []handler{nothing, nothing}}
	s.lead = atStart(func(_ actor.Context, env actors.Env) { env.After(20*ms, "end") })
	m := s.split(0, 1, 1)
	inner := s.lead
	s.lead = func(ctx actor.Context, env actors.Env) {
		if inner(ctx, env); ctx.Message() != "end" {
			return
		}
		for node, id := range map[int]string{-1: "x", 0: "n0/other", 1: "n1/peer", 2: "coordinator/run", 3: "x"} {
			m.worlds[0].Deliver(node, &wire.Frame{Kind: wire.User, Target: id, Head: &protos.Chunk{},
				Tensors: []*protos.Tensor{tensor.Retain()}})
			m.worlds[0].Change(world.MemberChange{Node: node}) // is not for this world
		}
		s.finish()
	}
	m.run(t)
	if m.results[0].DeadLetters != 1 || !tensor.Sole() {
		t.Errorf("%d dead letters, want 1, to the actor that does not exist; all released: %v",
			m.results[0].DeadLetters, tensor.Sole())
	}
}

func TestStrictModeFindsWhatIsWrittenUntilItIsCarried(t *testing.T) {
	for _, carrying := range []bool{false, true} {
		tensor := protos.NewTensor([]float32{1, 2, 3})
		var m *mesh
		write := func() { m.worlds[0].Locked(func() { tensor.Data[0] = 9 }) } // under which it is looked at
		s := &stage{strict: true, edge: link.Config{Delay: link.Constant{Delay: ms}}, handlers: []handler{
			member(func(ctx actor.Context, env actors.Env) {
				ctx.Send(pid(env, 1), protos.NewMessage(&protos.Chunk{Index: 7}, tensor.Retain()))
				if !carrying {
					write()
				}
			}, nothing),
			nothing,
		}}
		s.untilDone()
		m = s.split(0, 1, 1)
		m.sending = func(_, node int, f *wire.Frame) error {
			if node == 1 && len(f.Tensors) > 0 && carrying {
				write()
			}
			return nil
		}
		m.start(t)()
		if err := errors.Join(m.failures...); err == nil ||
			!strings.Contains(err.Error(), "tensor 0 of a gradwire.Chunk was written after it had been sent") {
			t.Errorf("written while it is carried: %v, error %v", carrying, err)
		}
		if sum := m.total(0, 1); sum.Sent != 1 || sum.Delivered != 1 || !tensor.Sole() {
			t.Errorf("written while it is carried: %v, %+v, tensor released: %v", carrying, sum, tensor.Sole())
		}
	}
}

func TestValuesBelongWhereAnActorOfThisWorldHasPostedMemory(t *testing.T) {
	ready := protos.NewTensor(make([]float32, 8))
	name := func(index uint32) protos.PlaceName { return protos.PlaceName{View: 1, Index: index} }
	post := func(ctx actor.Context, env actors.Env) {
		if _, begins := ctx.Message().(*actor.Started); begins {
			env.Post(ready, slices.Values([]actors.Place{{Name: name(1), Low: 0, High: 3},
				{Name: name(2), Low: 3, High: 6}, {Name: name(3), Low: 0, High: 3}}))
			env.Unpost(name(3))
		}
	}
	s := &stage{end: 2 * time.Second, handlers: []handler{post, post, nothing}}
	m := s.split(0, 1, 0, 1) // n1 posts too, in the other world
	posted := make(chan struct{})
	s.lead = func(ctx actor.Context, env actors.Env) {
		if _, begins := ctx.Message().(*actor.Started); begins {
			env.After(200*time.Millisecond, "posted")
		} else {
			close(posted)
		}
	}
	wait := m.start(t)
	<-posted
	w := m.worlds[0]
	for i, c := range []struct {
		node   int
		target string
		index  uint32
		values int
		tensor int
		low    int // of its place; −1 for none
	}{
		{0, "n0/other", 1, 3, 0, -1}, {0, "n0/peer", 1, 4, 0, -1}, {0, "n0/peer", 1, 3, 1, -1},
		{0, "n0/peer", 3, 3, 0, -1}, {0, "n0/peer", 4, 3, 0, -1},
		{0, "n0/peer", 2, 3, 0, 3}, {0, "n0/peer", 1, 3, 0, 0}, {0, "n0/peer", 1, 3, 0, -1}, // once
		{1, "n1/peer", 1, 3, 0, -1}, {2, "n2/peer", 1, 3, 0, -1}, {3, "coordinator/run", 1, 3, 0, -1},
		{-1, "n0/peer", 2, 3, 0, -1}, {4, "n0/peer", 2, 3, 0, -1},
	} {
		got := w.Posted(c.node, &wire.Frame{Kind: wire.User, Target: c.target,
			Head: &protos.Chunk{View: 1, Index: c.index}}, c.tensor, c.values)
		if (got != nil) != (c.low >= 0) || got != nil && &got.Data[0] != &ready.Data[c.low] {
			t.Errorf("%d: %+v: %v", i, c, got)
		}
		if got != nil {
			got.Release()
		}
	}
	if got := w.Posted(0, &wire.Frame{Kind: wire.User, Target: "n0/peer", Head: &protos.Push{}}, 0, 3); got != nil {
		t.Error("a push has a place")
	}
	wait()
}

func TestCancelledContextEndsAPartialWorldWithItsCause(t *testing.T) {
	s := &stage{handlers: []handler{nothing, nothing}}
	m := &mesh{hosts: []int{0, 1, 1}, gone: make([]bool, 2), halts: make([]int, 2)}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errFire)
	if _, err := m.build(t, 0, s.config()).Run(ctx); !errors.Is(err, errFire) {
		t.Errorf("error %v, want %v", err, errFire)
	}
	nothingLeft(t)
}

// A node leaves and comes back while the carrier holds up what it has told the coordinator.
func TestNewsOfNodesElsewhereComeAfterWhatTheyHaveSaidBefore(t *testing.T) {
	var heard []string
	back := make(chan struct{})
	s := &stage{schedule: []world.NodeChange{leave(20*ms, 0), join(30*ms, 0)}}
	s.handlers = []handler{atStart(func(_ actor.Context, env actors.Env) {
		env.Record(actors.Event{Kind: actors.StepDone, Step: 7})
	})}
	s.making = func(_, life int) error {
		if life == 1 {
			close(back)
		}
		return nil
	}
	s.lead = func(ctx actor.Context, _ actors.Env) {
		switch m := ctx.Message().(type) {
		case *protos.Message:
			heard = append(heard, fmt.Sprint("step ", m.Head.(*protos.Progress).Step))
		case world.MemberChange:
			heard = append(heard, fmt.Sprint("present ", m.Present))
		}
		if len(heard) == 4 {
			s.finish()
		}
	}
	m := s.split(0, 1)
	m.carrying = func(from, _ int, _ *wire.Frame) {
		if from == 0 {
			<-back
		}
	}
	m.run(t)
	// Control messages pass the coordinator's other messages, so the second step may come before
	// the news.
	if slices.Index(heard, "present false") < slices.Index(heard, "step 7") ||
		slices.Index(heard, "present true") < slices.Index(heard, "present false") {
		t.Errorf("heard %q", heard)
	}
}

func TestWorldThatBeginsLateHasTheNodesThatAreThereThen(t *testing.T) {
	first := map[int]uint64{} // of the random stream of node 1, by lives before
	for _, lives := range []int{0, 1} {
		s := &stage{absent: []int{1}, schedule: []world.NodeChange{leave(5*ms, 0), join(10*ms, 1)}}
		s.handlers = []handler{
			atStart(func(actor.Context, actors.Env) { t.Error("a node began that had left before") }),
			atStart(func(_ actor.Context, env actors.Env) {
				if now := env.Now(); now < time.Second {
					t.Errorf("began at %v", now)
				}
				first[lives] = env.Rand("test").Uint64()
				s.finish()
			}),
		}
		c := s.config()
		c.Start, c.Lives = time.Second, lives
		w, err := live.New(c)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := w.Run(context.Background()); err != nil || r.Now < time.Second || r.Now >= limit {
			t.Errorf("ended at %v with error %v", r.Now, err)
		}
		nothingLeft(t)
	}
	if len(first) != 2 || first[0] == first[1] {
		t.Errorf("random streams of two lives begin with %v", first)
	}
}
