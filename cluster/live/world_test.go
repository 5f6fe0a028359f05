package live_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

func TestMessageTakesTheDelayOfItsLink(t *testing.T) {
	var sent, at time.Duration
	s := &stage{edge: constant(10 * ms), bound: 1} // so that the receiver's time does not lag behind the arrival
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			if started(ctx) {
				sent = env.Now()
				ctx.Send(pid(env, 1), chunk(0))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if _, ok := index(ctx); ok {
				at = env.Now()
				s.finish()
			}
		},
	}
	r := s.run(t)
	notBefore(t, "arrived", at, sent+10*ms)
	stats := s.network.Edge(0, 1).Stats()
	if r.Messages.Count != 1 || stats.Delivered != 1 || stats.TookSum < 10*ms || stats.TookSum > at-sent {
		t.Errorf("%d messages, edge %+v, want one that took from 10ms to %v", r.Messages.Count, stats, at-sent)
	}
}

func TestChargeDelaysWhatIsSentAfterItAndTheNextMessage(t *testing.T) {
	var handled, arrived []time.Duration
	var began time.Duration // no later than the handler of the first message, from whose begin charges count
	var order []uint32
	s := &stage{}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				began = env.Now()
				env.After(0, "a")
				env.After(0, "b")
			case string:
				handled = append(handled, env.Now())
				ctx.Send(pid(env, 1), chunk(0))
				env.Charge(2e6) // 2 ms at 1 GFLOP/s
				env.Charge(3e6)
				ctx.Send(pid(env, 1), chunk(1))
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if i, ok := index(ctx); ok {
				order, arrived = append(order, i), append(arrived, env.Now())
				if len(order) == 4 {
					s.finish()
				}
			}
		},
	}
	s.run(t)
	if fmt.Sprint(order) != "[0 1 0 1]" {
		t.Fatalf("arrived in the order %v", order)
	}
	notBefore(t, "first message after a charge arrived", arrived[1], began+5*ms)
	notBefore(t, "second message handled", handled[1], began+5*ms)
	notBefore(t, "second message after a charge arrived", arrived[3], began+10*ms)
}

func TestJobsQueueOnTheCoresOfTheirNode(t *testing.T) {
	var began time.Duration
	done := map[int]time.Duration{}
	var last int
	s := &stage{profile: world.Profile{Cores: 2, Speed: 1e9}}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			began = env.Now()
			for i := range 3 {
				env.Compute(actors.Job{Work: 10e6, Do: func() any { return i }})
			}
			// long, so that a machine that is late with the others does it last
			env.Compute(actors.Job{Work: 1000e6, Cores: 2, Do: func() any { return 3 }})
		case int:
			done[m], last = env.Now(), m
			if len(done) == 4 {
				s.finish()
			}
		}
	}}
	r := s.run(t)
	for i, due := range []time.Duration{10 * ms, 10 * ms, 20 * ms, 520 * ms} {
		notBefore(t, fmt.Sprintf("job %d done", i), done[i], began+due)
	}
	if last != 3 || r.Steps.Count != 4 {
		t.Errorf("job %d was done last of %d, want 3 of 4", last, r.Steps.Count)
	}
}

func TestStepsTakeAtLeastWhatTheirWalkSays(t *testing.T) {
	p := world.Profile{Cores: 1, Speed: 1e9, Step: 10 * ms, Wander: world.Wander{By: 5 * ms, Min: 5 * ms, Max: 15 * ms}}
	walk, n := p.Walk(7, "n0/peer"), 0
	var due time.Duration
	s := &stage{seed: 7, profile: p}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		switch ctx.Message().(type) {
		case *actor.Started:
			due = env.Now()
		case int:
			if notBefore(t, fmt.Sprintf("step %d", n), env.Now(), due); n == 20 {
				s.finish()
				return
			}
			n++
		default:
			return
		}
		due = env.Now() + walk.Cost(actors.Job{Step: true})
		env.Compute(actors.Job{Step: true, Do: func() any { return 0 }})
	}}
	if s.run(t); n != 20 {
		t.Errorf("%d steps", n)
	}
}

func TestEvaluationComesWhenItIsReady(t *testing.T) {
	var got []string
	s := &stage{handlers: []handler{nothing}}
	s.lead = func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			env.Compute(actors.Job{Work: 1e15, Lag: time.Hour, Do: func() any { return "verdict" }})
		} else if m, ok := ctx.Message().(string); ok {
			got = append(got, m)
			s.finish()
		}
	}
	s.run(t)
	if fmt.Sprint(got) != "[verdict]" {
		t.Errorf("got %v, want the verdict", got)
	}
}

func TestHaltEndsThePartOfTheMembersAlone(t *testing.T) {
	release := make(chan struct{})
	const soon = 250 * ms // a busy machine takes less from here to the halt
	s := &stage{edge: constant(soon)}
	late := func(what string, env actors.Env) { env.Fail(fmt.Errorf("%s after the halt", what)) }
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				ctx.Send(pid(env, 1), chunk(0))
				env.After(soon, "a timer")
				env.Compute(actors.Job{Work: soon.Seconds() * 1e9, Do: func() any { return "a job" }})
				s.halt()
				s.halt()
				close(release)
				env.Charge(3600e9)
				ctx.Send(pid(env, 1), chunk(1))
			case string:
				late(m, env)
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if _, ok := index(ctx); ok {
				late("a message", env)
			}
		},
	}
	verdicts := 0
	s.lead = func(ctx actor.Context, env actors.Env) {
		switch ctx.Message().(type) {
		case *actor.Started:
			env.Compute(actors.Job{Lag: ms, Do: func() any { <-release; return 1.5 }})
			env.After(3*soon, true) // later than all that the members have under way
		case float64:
			verdicts++
		case bool:
			if verdicts == 1 {
				s.finish()
			} else {
				env.After(ms, true)
			}
		}
	}
	s.run(t)
	if stats := s.network.Edge(0, 1).Stats(); stats.Sent != 1 || stats.InFlight() != 1 {
		t.Errorf("edge %+v, want the message from before the halt in flight", stats)
	}
}

func TestCancelledTimerIsNotDelivered(t *testing.T) {
	var got []string
	s := &stage{}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			timer := env.After(100*ms, "cancelled")
			env.After(150*ms, "kept")
			timer.Cancel()
			env.After(50*ms, "early")
			env.After(-time.Hour, "overdue")
			timer.Cancel()
		case string:
			got = append(got, m)
			actors.Timer{}.Cancel()
			if m == "kept" {
				s.finish()
			}
		}
	}}
	s.run(t)
	if want := "[overdue early kept]"; fmt.Sprint(got) != want {
		t.Errorf("delivered %v, want %s", got, want)
	}
}

func TestWatchTellsOnceOfTheEndOfAnActorAfterTheLinksDelay(t *testing.T) {
	var began, killed time.Duration
	at := map[string][]time.Duration{}
	s := &stage{edge: constant(5 * ms)}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				began = env.Now()
				ctx.Watch(pid(env, 1))
				ctx.Watch(actor.NewPID("n1", "n1/missing"))
				env.After(15*ms, "kill")
			case string:
				if m == "kill" {
					killed = env.Now()
					ctx.Send(pid(env, 1), chunk(0))
					env.After(40*ms, "finish")
				} else {
					s.finish()
				}
			case *actor.Terminated:
				at[m.Who.Id] = append(at[m.Who.Id], env.Now())
			}
		},
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				ctx.Stop(ctx.Self())
			}
		},
	}
	s.run(t)
	if len(at) != 2 || len(at["n1/missing"]) != 1 || len(at["n1/peer"]) != 1 {
		t.Fatalf("terminated %v, want each of two actors once", at)
	}
	notBefore(t, "missing actor terminated", at["n1/missing"][0], began+10*ms)
	notBefore(t, "actor terminated", at["n1/peer"][0], killed+10*ms)
}

func TestMessageToAnEndedActorIsCountedAsDroppedAndAsADeadLetter(t *testing.T) {
	s := &stage{edge: constant(ms)}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started:
				ctx.Watch(pid(env, 1))
				ctx.Send(pid(env, 1), chunk(0))
			case *actor.Terminated:
				ctx.Send(pid(env, 1), chunk(1))
				env.After(10*ms, "finish") // the clock calls in the order of instants
			case string:
				s.finish()
			}
		},
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				ctx.Stop(ctx.Self())
			}
		},
	}
	r := s.run(t)
	stats := s.network.Edge(0, 1).Stats()
	if r.DeadLetters != 1 || stats.Sent != 2 || stats.Delivered != 1 || stats.Dropped != 1 {
		t.Errorf("%d dead letters, edge %+v, want 1 dead letter, 2 sent, 1 delivered, 1 dropped", r.DeadLetters, stats)
	}
}

func TestChildrenLiveOnTheNodeOfTheirParent(t *testing.T) {
	s := &stage{edge: constant(ms)}
	s.handlers = []handler{
		func(ctx actor.Context, _ actors.Env) {
			if started(ctx) {
				ctx.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					if started(ctx) {
						ctx.Send(actor.NewPID("n1", "n1/peer"), chunk(0))
					}
				}))
			}
		},
		func(ctx actor.Context, _ actors.Env) {
			if _, ok := index(ctx); ok {
				s.finish()
			}
		},
	}
	s.run(t)
	if sent := s.network.Edge(0, 1).Stats().Sent; sent != 1 {
		t.Errorf("%d messages went over the link of the parent's node, want the child's", sent)
	}
}

func TestRequestIsAnsweredAcrossTheLink(t *testing.T) {
	for _, strict := range []bool{false, true} {
		var asked, answered time.Duration
		s := &stage{strict: strict, edge: constant(3 * ms)}
		s.handlers = []handler{
			func(ctx actor.Context, env actors.Env) {
				if started(ctx) {
					asked = env.Now()
					ctx.Request(pid(env, 1), chunk(7))
				} else if i, ok := index(ctx); ok && i == 8 {
					answered = env.Now()
					s.finish()
				}
			},
			func(ctx actor.Context, _ actors.Env) {
				if i, ok := index(ctx); ok {
					ctx.Respond(chunk(i + 1))
				}
			},
		}
		s.run(t)
		notBefore(t, "answered", answered, asked+6*ms)
	}
}

func TestScheduledChangeTakesEffectAtItsInstant(t *testing.T) {
	sent, arrived := map[uint32]time.Duration{}, map[uint32]time.Duration{}
	s := &stage{edge: constant(ms)}
	s.handlers = []handler{
		func(ctx actor.Context, env actors.Env) {
			send := func(i uint32) {
				sent[i] = env.Now()
				ctx.Send(pid(env, 1), chunk(i))
			}
			switch ctx.Message().(type) {
			case *actor.Started:
				env.After(15*ms, "after the change")
				send(0)
			case string:
				send(1)
			}
		},
		func(ctx actor.Context, env actors.Env) {
			if i, ok := index(ctx); ok {
				arrived[i] = env.Now()
				if i == 1 {
					s.finish()
				}
			}
		},
	}
	s.changes = []link.Change{{At: 10 * ms, Apply: func() { s.network.Set(0, 1, constant(25*ms)) }}}
	s.run(t)
	notBefore(t, "message after the change arrived", arrived[1], sent[1]+25*ms)
	first := s.network.Edge(0, 1).Stats().DelaySum - 25*ms
	if late := sent[0] >= 10*ms; first != ms && (!late || first != 25*ms) { // late: no core was free before
		t.Errorf("the message at %v was given a delay of %v", sent[0], first)
	}
	notBefore(t, "message before the change arrived", arrived[0], sent[0]+first)
}

func TestArrivalNeverOvertakesOnFIFOEdge(t *testing.T) {
	const messages = 300
	for name, limited := range map[string]bool{"delays": false, "delays and downlink": true} {
		t.Run(name, func(t *testing.T) {
			var got []uint32
			s := &stage{edge: link.Config{Delay: link.Uniform{Min: 0, Max: 3 * ms}}}
			s.handlers = []handler{
				func(ctx actor.Context, env actors.Env) {
					if started(ctx) {
						for i := range uint32(messages) {
							ctx.Send(pid(env, 1), chunk(i))
						}
					}
				},
				func(ctx actor.Context, _ actors.Env) {
					if i, ok := index(ctx); ok {
						if got = append(got, i); len(got) == messages {
							s.finish()
						}
					}
				},
			}
			w := s.world(t)
			if limited {
				s.network.SetDownlink(1, rate.Constant(2e6))
			}
			if _, err := w.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			if len(got) != messages || !slices.IsSorted(got) {
				t.Errorf("%d of %d arrived, in the order %v", len(got), messages, got)
			}
		})
	}
}

// Every node sends as soon as it starts: the receiver must be there.
func TestNoActorStartsBeforeAllArePlaced(t *testing.T) {
	const nodes = 40
	got := 0
	s := &stage{}
	sink := func(ctx actor.Context, _ actors.Env) {
		if _, ok := index(ctx); ok {
			if got++; got == nodes {
				s.finish()
			}
		}
	}
	for range nodes {
		s.handlers = append(s.handlers, func(ctx actor.Context, env actors.Env) {
			if started(ctx) {
				ctx.Send(pid(env, nodes), chunk(0))
			}
		})
	}
	s.handlers = append(s.handlers, sink)
	if r := s.run(t); r.DeadLetters != 0 || got != nodes {
		t.Errorf("%d of %d messages arrived, %d dead letters", got, nodes, r.DeadLetters)
	}
}

type watcher func(at time.Duration, node int, event actors.Event)

func (w watcher) Observe(at time.Duration, node int, event actors.Event) { w(at, node, event) }

func TestRecordedStepsReachObserverAndCoordinator(t *testing.T) {
	const steps = 5
	var seen []uint64
	var at time.Duration
	var progress []uint64
	s := &stage{observer: watcher(func(now time.Duration, node int, e actors.Event) {
		if node != 0 || e.Kind != actors.StepDone || now < at {
			t.Errorf("at %v, after %v, node %d: %+v", now, at, node, e)
		}
		seen, at = append(seen, e.Step), now
	})}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			for i := range uint64(steps) {
				env.Record(actors.Event{Kind: actors.StepDone, Step: i, Samples: 32})
			}
		}
	}}
	s.lead = func(ctx actor.Context, _ actors.Env) {
		if m, ok := ctx.Message().(*protos.Message); ok {
			if progress = append(progress, m.Head.(*protos.Progress).Step); len(progress) == steps {
				s.finish()
			}
			m.Release()
		}
	}
	s.run(t)
	if want := "[0 1 2 3 4]"; fmt.Sprint(seen) != want || fmt.Sprint(progress) != want {
		t.Errorf("observed %v, coordinator heard of %v, want %s", seen, progress, want)
	}
	if stats := s.network.Edge(0, 1).Stats(); stats.Control != steps || stats.Sent != 0 {
		t.Errorf("edge to the coordinator %+v, want %d control messages", stats, steps)
	}
}

func TestLatencyIsThePresentDelayAndDrawsNothing(t *testing.T) {
	var got time.Duration
	s := &stage{edge: link.Config{Delay: link.Uniform{Min: 2 * ms, Max: 4 * ms}}}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			got = env.Latency(1)
			s.finish()
		}
	}, nothing}
	s.run(t)
	if got != 3*ms {
		t.Errorf("latency %v, want 3ms", got)
	}
}

func TestRunThatIsLaterThanItsBoundIsMarked(t *testing.T) {
	for bound, want := range map[time.Duration]bool{1: true, time.Hour: false} {
		s := &stage{bound: bound, edge: constant(ms)}
		s.handlers = []handler{
			func(ctx actor.Context, env actors.Env) {
				if started(ctx) {
					ctx.Send(pid(env, 1), chunk(0))
				}
			},
			func(ctx actor.Context, _ actors.Env) {
				if _, ok := index(ctx); ok {
					s.finish()
				}
			},
		}
		if r := s.run(t); r.Late != want {
			t.Errorf("bound %v: late is %v with %+v", bound, r.Late, r.Messages)
		}
	}
}

func TestRunIsLateWhoseStepDoesNotComeToItsEnd(t *testing.T) {
	s := &stage{bound: 20 * ms, end: 100 * ms}
	s.handlers = []handler{func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			env.Compute(actors.Job{Work: 1e6, Do: func() any { // 1 ms at 1 GFLOP/s
				toil(300 * ms)
				return nil
			}})
		}
	}}
	if r := s.run(t); !r.Late || r.Steps.Count != 1 || r.Steps.P99 < 50*ms {
		t.Errorf("late is %v with %+v", r.Late, r.Steps)
	}
}

func TestMoreNodesThanOneProcessHoldsAreRefused(t *testing.T) {
	d := &world.Deployment{Nodes: make([]world.Node, live.MaxNodes+1)}
	if _, err := live.New(live.Config{Deployment: d}); err == nil ||
		err.Error() != "16385 nodes, at most 16384 can live in one process in real time" {
		t.Errorf("error %v", err)
	}
}
