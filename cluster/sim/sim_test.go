package sim_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// handler is an actor made of a function.
type handler func(ctx actor.Context, env actors.Env)

func (h handler) kind(env actors.Env) (actor.Actor, error) {
	return actor.ReceiveFunc(func(ctx actor.Context) { h(ctx, env) }), nil
}

// stage builds a world of handlers, one a node, that ends at the given instant.
type stage struct {
	seed     uint64
	end      time.Duration
	strict   bool
	threads  int
	profile  world.Profile
	edge     link.Config
	handlers []handler
	changes  []link.Change
	observer world.Observer
	reliable bool
	schedule []world.NodeChange
	audit    *sim.Audit
	network  *link.Network
}

func (s *stage) world(t testing.TB) *sim.World {
	t.Helper()
	d := &world.Deployment{Seed: s.seed, Strict: s.strict, Observer: s.observer, Bounded: true,
		Reliable: s.reliable, Schedule: s.schedule}
	var names []string
	if s.profile.Speed == 0 {
		s.profile = world.Profile{Cores: 1, Speed: 1e9}
	}
	for i, h := range s.handlers {
		d.Nodes = append(d.Nodes, world.Node{Name: fmt.Sprintf("n%d", i), Role: "peer", Profile: s.profile,
			Kind: h.kind})
		names = append(names, d.Nodes[i].Name)
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(s.end, "end")
			case string:
				control.Halt()
				control.Finish()
			}
		}), nil
	}
	s.network = link.New(s.seed, append(names, actors.Coordinator))
	s.network.SetDefault(s.edge)
	w, err := sim.New(sim.Config{Deployment: d, Network: s.network, Threads: s.threads, Changes: s.changes,
		Audit: s.audit})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (s *stage) run(t testing.TB) sim.Result {
	t.Helper()
	r, err := s.world(t).Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func chunk(index uint32) *protos.Message { return protos.NewMessage(&protos.Chunk{Index: index}) }

func pid(env actors.Env, node int) *actor.PID { return env.View().Members[node].PID }

// noted records the times of observed updates.
type noted []time.Duration

func (n *noted) Observe(at time.Duration, _ int, e actors.Event) {
	if e.Kind == actors.UpdateApplied {
		*n = append(*n, at)
	}
}

func TestEventsHappenInTheOrderOfTimeAndNotBeyondTheEnd(t *testing.T) {
	var n noted
	update := actors.Event{Kind: actors.UpdateApplied}
	charging := func(work ...float64) handler {
		return func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				for _, w := range work {
					env.Charge(w)
					env.Record(update)
				}
			}
		}
	}
	s := stage{end: time.Second, observer: &n, handlers: []handler{charging(0, 9e8, 0.1e9, 1), charging(5e8, 420e9)}}
	s.run(t)
	const ms = time.Millisecond
	if want := (noted{0, 500 * ms, 900 * ms, time.Second}); !slices.Equal(n, want) {
		t.Errorf("events at %v, want %v", n, want)
	}
}

func TestMessageTakesTheDelayOfItsLink(t *testing.T) {
	var at time.Duration
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: 10 * time.Millisecond}},
		handlers: []handler{
			func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					ctx.Send(pid(env, 1), chunk(0))
				}
			},
			func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*protos.Message); ok {
					at = env.Now()
				}
			},
		}}
	s.run(t)
	if at != 10*time.Millisecond {
		t.Errorf("arrived at %v, want 10ms", at)
	}
}

func TestChargeDelaysWhatIsSentAfterItAndTheNextMessage(t *testing.T) {
	var sent, handled []time.Duration
	s := stage{end: time.Second, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(0, "a")
				env.After(0, "b")
			case string:
				handled = append(handled, env.Now())
				ctx.Send(pid(env, 1), chunk(0))
				env.Charge(5e6) // 5 ms at 1 GFLOP/s
				ctx.Send(pid(env, 1), chunk(1))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*protos.Message); ok {
				sent = append(sent, env.Now())
			}
		},
	}}
	s.run(t)
	ms := time.Millisecond
	if want := []time.Duration{0, 5 * ms}; fmt.Sprint(handled) != fmt.Sprint(want) {
		t.Errorf("handled at %v, want %v", handled, want)
	}
	if want := []time.Duration{0, 5 * ms, 5 * ms, 10 * ms}; fmt.Sprint(sent) != fmt.Sprint(want) {
		t.Errorf("arrived at %v, want %v", sent, want)
	}
}

func TestJobsQueueOnTheCoresOfTheirNode(t *testing.T) {
	var done []time.Duration
	s := stage{end: time.Second, profile: world.Profile{Cores: 2, Speed: 1e9}, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for i := range 3 {
					env.Compute(actors.Job{Work: 10e6, Do: func() any { return i }})
				}
				env.Compute(actors.Job{Work: 10e6, Cores: 2, Do: func() any { return 3 }})
			case int:
				done = append(done, env.Now())
				_ = m
			}
		},
	}}
	s.run(t)
	ms := time.Millisecond
	if want := []time.Duration{10 * ms, 10 * ms, 20 * ms, 25 * ms}; fmt.Sprint(done) != fmt.Sprint(want) {
		t.Errorf("done at %v, want %v", done, want)
	}
}

// steps makes a handler that takes steps one after the other, and says what each took.
func steps(took func(time.Duration)) handler {
	var began time.Duration
	return func(ctx actor.Context, env actors.Env) {
		switch ctx.Message().(type) {
		case *actor.Started:
		case int:
			took(env.Now() - began)
		default:
			return
		}
		began = env.Now()
		env.Compute(actors.Job{Step: true, Do: func() any { return 0 }})
	}
}

func TestStepsWanderAsTheirWalkSays(t *testing.T) {
	p := world.Profile{Cores: 1, Speed: 1e9, Step: 10 * ms, Wander: world.Wander{By: 5 * ms, Min: 5 * ms, Max: 15 * ms}}
	walk, n := p.Walk(7, "n0/peer"), 0
	s := stage{seed: 7, end: time.Second, profile: p, handlers: []handler{steps(func(took time.Duration) {
		if want := walk.Cost(actors.Job{Step: true}); took != want {
			t.Errorf("step %d took %v, want %v", n, took, want)
		}
		n++
	})}}
	if s.run(t); n < 60 {
		t.Errorf("%d steps", n)
	}
}

func TestCancelledTimerIsNotDelivered(t *testing.T) {
	var got []string
	s := stage{end: time.Second, handlers: []handler{func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			timer := env.After(10*time.Millisecond, "cancelled")
			env.After(20*time.Millisecond, "kept")
			timer.Cancel()
			env.After(5*time.Millisecond, "early")
			timer.Cancel()
		case string:
			got = append(got, m)
			timer := actors.Timer{}
			timer.Cancel()
		}
	}}}
	s.run(t)
	if want := "[early kept]"; fmt.Sprint(got) != want {
		t.Errorf("delivered %v, want %s", got, want)
	}
}

func TestWatchTellsOfTheEndOfAnActorAfterTheLinksDelay(t *testing.T) {
	var at []time.Duration
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: 10 * time.Millisecond}},
		handlers: []handler{
			func(ctx actor.Context, env actors.Env) {
				switch ctx.Message().(type) {
				case *actor.Started:
					ctx.Watch(pid(env, 1))
					ctx.Watch(actor.NewPID("n1", "n1/missing"))
					env.After(50*time.Millisecond, "kill")
				case string:
					ctx.Send(pid(env, 1), chunk(0))
				case *actor.Terminated:
					at = append(at, env.Now())
				}
			},
			func(ctx actor.Context, _ actors.Env) {
				if _, ok := ctx.Message().(*protos.Message); ok {
					ctx.Stop(ctx.Self())
				}
			},
		}}
	s.run(t)
	ms := time.Millisecond
	if want := []time.Duration{20 * ms, 70 * ms}; fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("terminated at %v, want %v", at, want)
	}
}

func TestMessageToAnEndedActorIsCountedAsDroppedAndAsADeadLetter(t *testing.T) {
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: time.Millisecond}}, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				ctx.Send(pid(env, 1), chunk(0))
				ctx.Send(pid(env, 1), chunk(1))
			}
		},
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := ctx.Message().(*protos.Message); ok {
				ctx.Stop(ctx.Self())
			}
		},
	}}
	s.edge.Rate = rate.Constant(1e4) // the second arrives when the actor has ended
	r := s.run(t)
	stats := s.network.Edge(0, 1).Stats()
	if r.DeadLetters != 1 || stats.Sent != 2 || stats.Delivered != 1 || stats.Dropped != 1 {
		t.Errorf("%d dead letters, edge %+v, want 1 dead letter, 2 sent, 1 delivered, 1 dropped", r.DeadLetters, stats)
	}
}

func TestChildrenLiveOnTheNodeOfTheirParent(t *testing.T) {
	var at time.Duration
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: time.Millisecond}}, handlers: []handler{
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Started); ok {
						ctx.Send(actor.NewPID("n1", "n1/peer"), chunk(0))
					}
				}))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*protos.Message); ok {
				at = env.Now()
			}
		},
	}}
	s.run(t)
	if at != time.Millisecond {
		t.Errorf("a child's message arrived at %v, want 1ms", at)
	}
}

func TestRequestIsAnsweredAcrossTheLink(t *testing.T) {
	var at time.Duration
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: 3 * time.Millisecond}},
		handlers: []handler{
			func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					future := ctx.RequestFuture(pid(env, 1), chunk(7), -1)
					ctx.ReenterAfter(future, func(any, error) { at = env.Now() })
				}
			},
			func(ctx actor.Context, _ actors.Env) {
				if m, ok := ctx.Message().(*protos.Message); ok {
					ctx.Respond(chunk(m.Head.(*protos.Chunk).Index))
				}
			},
		}}
	s.run(t)
	if at != 6*time.Millisecond {
		t.Errorf("answered at %v, want 6ms", at)
	}
}

func TestFailingActorEndsTheRunWithItsNodeAndReason(t *testing.T) {
	reason := errors.New("the disk is on fire")
	s := stage{end: time.Second, handlers: []handler{
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				panic(reason)
			}
		},
	}}
	_, err := s.world(t).Run(context.Background())
	if !errors.Is(err, reason) || !strings.Contains(err.Error(), "node n0") {
		t.Errorf("error %v, want one that names node n0 and wraps %q", err, reason)
	}
}

func TestMessageWithoutWireFormIsRefused(t *testing.T) {
	s := stage{end: time.Second, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				ctx.Send(pid(env, 1), "hello")
			}
		},
		func(actor.Context, actors.Env) {},
	}}
	_, err := s.world(t).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "no wire form") {
		t.Errorf("error %v, want a refusal", err)
	}
}

func TestRunThatNobodyEndsIsAnError(t *testing.T) {
	d := &world.Deployment{Nodes: []world.Node{{Name: "a", Role: "peer", Profile: world.Unlimited,
		Kind: handler(func(actor.Context, actors.Env) {}).kind}}}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"a", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); !errors.Is(err, world.ErrStandstill) {
		t.Errorf("error %v, want %v", err, world.ErrStandstill)
	}
}

func TestCancelledContextEndsTheRun(t *testing.T) {
	s := stage{end: time.Hour, handlers: []handler{func(ctx actor.Context, env actors.Env) {
		env.After(time.Microsecond, "again")
	}}}
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("interrupted")
	cancel(reason)
	if _, err := s.world(t).Run(ctx); !errors.Is(err, reason) {
		t.Errorf("error %v, want %v", err, reason)
	}
}

func TestCancelledContextEndsTheRunWhoseJobsGoOn(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithCancel(context.Background())
	s := stage{end: time.Hour, threads: 1, handlers: []handler{func(c actor.Context, env actors.Env) {
		if _, ok := c.Message().(*actor.Started); !ok {
			return
		}
		for range 10_000 { // more than can wait for a thread
			env.Compute(actors.Job{Work: 1, Cores: 1, Do: func() any {
				cancel()
				<-release
				return "computed"
			}})
		}
	}}}
	if _, err := s.world(t).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestStrictModeFindsATensorWrittenAfterSending(t *testing.T) {
	s := stage{end: time.Second, strict: true, edge: link.Config{Delay: link.Constant{Delay: time.Millisecond}},
		handlers: []handler{
			func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					v := protos.NewTensor([]float32{1, 2, 3})
					ctx.Send(pid(env, 1), protos.NewMessage(&protos.Chunk{}, v))
					v.Data[1] = 7
				}
			},
			func(actor.Context, actors.Env) {},
		}}
	_, err := s.world(t).Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "written after it had been sent") {
		t.Errorf("error %v, want the write to be found", err)
	}
}

// swarm is a world of peers that send vectors to each other at random, compute and charge.
func swarm(seed uint64, threads int, strict bool) *stage {
	s := &stage{seed: seed, threads: threads, strict: strict, end: 300 * time.Millisecond, edge: link.Config{
		Delay: link.Uniform{Min: time.Millisecond, Max: 5 * time.Millisecond}, Rate: rate.Constant(1e6),
		Loss: link.Loss{Probability: 0.1, Timeout: 2 * time.Millisecond, Attempts: 5},
	}}
	for range 9 {
		var state []float32
		s.handlers = append(s.handlers, func(ctx actor.Context, env actors.Env) {
			step := func() {
				own := append([]float32(nil), state...)
				env.Compute(actors.Job{Work: 1e5, Do: func() any {
					for i := range own {
						own[i] = own[i]*0.9 + float32(i)
					}
					return own
				}})
			}
			switch m := ctx.Message().(type) {
			case *actor.Started:
				state = make([]float32, 50)
				step()
			case []float32:
				state = m
				to := env.Rand("neighbour").IntN(len(env.View().Members))
				ctx.Send(pid(env, to), protos.NewMessage(&protos.Chunk{Rank: int32(env.Node())},
					env.Tensors().Copy(state)))
				step()
			case *protos.Message:
				for i, v := range m.Tensors[0].Data {
					state[i] = 0.5 * (state[i] + v)
				}
				env.Charge(100)
				m.Release()
			}
		})
	}
	return s
}

func TestSameSeedGivesTheSameDigestWhateverTheThreads(t *testing.T) {
	want := swarm(7, 0, false).run(t)
	for _, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		for _, threads := range []int{0, 1, 2, 8} {
			for _, strict := range []bool{false, true} {
				if got := swarm(7, threads, strict).run(t); !reflect.DeepEqual(got, want) {
					t.Errorf("GOMAXPROCS %d, %d threads, strict %v: %+v, want %+v", procs, threads, strict, got, want)
				}
			}
		}
	}
	if other := swarm(8, 0, false).run(t); other.Digest == want.Digest {
		t.Error("another seed gives the same digest")
	}
}

func TestEveryMessageIsAccountedForOnItsEdge(t *testing.T) {
	s := swarm(3, 0, false)
	s.edge.Loss.Drop = true
	s.run(t)
	lost := int64(0)
	for _, e := range s.network.Used() {
		stats := e.Stats
		if stats.InFlight() < 0 || stats.Sent != stats.Delivered+stats.Dropped+stats.InFlight() {
			t.Errorf("edge %d → %d does not add up: %+v", e.Source, e.Destination, stats)
		}
		lost += stats.Dropped
	}
	if lost == 0 {
		t.Error("nothing was lost at a loss of 10 %")
	}
}

func TestScheduledChangeTakesEffectAtItsInstant(t *testing.T) {
	var at []time.Duration
	s := stage{end: time.Second, edge: link.Config{Delay: link.Constant{Delay: time.Millisecond}}, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(10*time.Millisecond, "send")
				env.After(30*time.Millisecond, "send")
			case string:
				ctx.Send(pid(env, 1), chunk(0))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*protos.Message); ok {
				at = append(at, env.Now())
			}
		},
	}}
	s.changes = []link.Change{{At: 20 * time.Millisecond, Apply: func() {
		s.network.Set(0, 1, link.Config{Delay: link.Constant{Delay: 7 * time.Millisecond}})
	}}}
	s.run(t)
	ms := time.Millisecond
	if want := []time.Duration{11 * ms, 37 * ms}; fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("arrived at %v, want %v", at, want)
	}
}

func TestControlMessageIsHandledAheadOfWhatABusyActorHasWaiting(t *testing.T) {
	var at []time.Duration
	s := stage{end: time.Second, handlers: []handler{
		func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*actor.Started); ok {
				for range 3 {
					ctx.Send(pid(env, 1), chunk(0))
				}
				env.After(5*time.Millisecond, "look")
			}
			if _, ok := ctx.Message().(string); ok {
				ctx.Send(pid(env, 1), protos.NewMessage(&protos.TakeSnapshot{}))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if m, ok := ctx.Message().(*protos.Message); ok {
				switch m.Head.(type) {
				case *protos.TakeSnapshot:
					at = append(at, env.Now())
				case *protos.Chunk:
					env.Charge(10e6) // 10 ms
				}
			}
		},
	}}
	s.run(t)
	if want := []time.Duration{5 * time.Millisecond}; fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("the snapshot was taken at %v, want %v", at, want)
	}
}

func TestUnboundedRunWithNothingButTheCoordinatorsTimersIsAStandstill(t *testing.T) {
	lose := link.Config{Delay: link.Constant{Delay: time.Millisecond},
		Loss: link.Loss{Probability: 1, Drop: true, Attempts: 1}}
	late := link.Config{Delay: link.Constant{Delay: time.Millisecond}, Rate: rate.Constant(1e-300)}
	const beyond = "under way from n0 to n1 beyond 876000h, the end of any run: 1"
	for _, x := range []struct {
		link    link.Config
		bounded bool
		want    string
	}{{lose, false, "lost from n0 to n1: 1"}, {lose, true, ""}, {late, false, beyond}} {
		d := &world.Deployment{Bounded: x.bounded}
		for i := range 2 {
			h := handler(func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*actor.Started); ok && i == 0 {
					ctx.Send(pid(env, 1), chunk(0))
				}
			})
			d.Nodes = append(d.Nodes, world.Node{Name: fmt.Sprintf("n%d", i), Role: "peer", Profile: world.Unlimited,
				Kind: h.kind})
		}
		ticks := 0
		d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
			return actor.ReceiveFunc(func(actor.Context) {
				if ticks++; ticks == 10 {
					control.Finish()
				}
				env.After(time.Second, "tick")
			}), nil
		}
		network := link.New(1, []string{"n0", "n1", actors.Coordinator})
		network.SetDefault(x.link)
		w, err := sim.New(sim.Config{Deployment: d, Network: network})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Run(context.Background())
		switch {
		case x.bounded && err != nil:
			t.Errorf("a bounded run failed: %v", err)
		case !x.bounded && (!errors.Is(err, world.ErrStandstill) || !strings.Contains(err.Error(), "; "+x.want) ||
			strings.Contains(err.Error(), "lost from") != (x.want != beyond)):
			t.Errorf("error %v, want a standstill that says: %s", err, x.want)
		}
	}
}

// rousing is a timer's message at which the coordinator has something for the members.
type rousing struct{}

func (rousing) Rouses() {}

func TestCoordinatorThatIsToRouseTheMembersIsNoStandstill(t *testing.T) {
	var at []time.Duration
	d := &world.Deployment{Nodes: []world.Node{{Name: "a", Role: "peer", Profile: world.Unlimited,
		Kind: handler(func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(*protos.Message); ok {
				at = append(at, env.Now())
			}
		}).kind}}}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(time.Minute, rousing{})
				env.After(time.Second, "tick")
			case rousing:
				ctx.Send(pid(env, 0), protos.NewMessage(&protos.TakeSnapshot{}))
			case string:
				env.Compute(actors.Job{Lag: time.Millisecond, Do: func() any { return 1 }})
				env.After(time.Second, "tick")
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"a", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Run(context.Background())
	if !errors.Is(err, world.ErrStandstill) || r.Now > time.Minute+2*time.Second {
		t.Errorf("at %v: error %v, want %v soon after a minute", r.Now, err, world.ErrStandstill)
	}
	if fmt.Sprint(at) != "[1m0s]" {
		t.Errorf("the member was roused at %v, want once at 1m0s", at)
	}
}

// Each verdict is known only after the next one was asked for.
func TestUnboundedRunInWhichTheCoordinatorGoesOnJudgingIsAStandstill(t *testing.T) {
	const last = 15 // ms, of the member's only timer
	for _, reached := range []bool{false, true} {
		d := &world.Deployment{Nodes: []world.Node{{Name: "a", Role: "peer", Profile: world.Unlimited,
			Kind: handler(func(ctx actor.Context, env actors.Env) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					env.After(last*time.Millisecond, "last")
				}
			}).kind}}}
		verdicts := 0
		d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
			return actor.ReceiveFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case time.Duration:
					if verdicts++; verdicts == 100 || reached && m > last*time.Millisecond {
						control.Finish()
					}
				default:
					at := env.Now()
					env.Compute(actors.Job{Lag: 25 * time.Millisecond, Do: func() any { return at }})
					env.After(10*time.Millisecond, "judge")
				}
			}), nil
		}
		w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"a", actors.Coordinator})})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Run(context.Background())
		// Models are judged at 0, 10, 20, 30 ms and so on: the third verdict is the first on what
		// the member has left, and is heard before there is a standstill.
		switch {
		case verdicts != 3:
			t.Errorf("%d verdicts, want 3", verdicts)
		case reached && err != nil:
			t.Errorf("a verdict ended the run, which failed: %v", err)
		case !reached && !errors.Is(err, world.ErrStandstill):
			t.Errorf("error %v, want %v", err, world.ErrStandstill)
		}
	}
}

func TestHaltLeavesOnlyTheCoordinator(t *testing.T) {
	beats := 0
	d := &world.Deployment{Nodes: []world.Node{{Name: "a", Role: "peer", Profile: world.Unlimited,
		Kind: handler(func(ctx actor.Context, env actors.Env) {
			if _, ok := ctx.Message().(string); ok {
				beats++
			}
			env.After(time.Millisecond, "beat")
		}).kind}}}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				env.After(10*time.Millisecond+1, "halt")
			case string:
				control.Halt()
				env.Compute(actors.Job{Lag: time.Hour, Do: func() any { return 1 }})
			case int:
				_ = m
				control.Finish()
			}
		}), nil
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: link.New(1, []string{"a", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	r, err := w.Run(context.Background())
	if err != nil || beats != 10 || r.Now != time.Hour+10*time.Millisecond+1 {
		t.Errorf("%d beats until %v, error %v; want 10 and an end when the coordinator's job is done", beats, r.Now,
			err)
	}
}
