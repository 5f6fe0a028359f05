package live_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
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

var errFire = errors.New("the disk is on fire")

func atStart(do func(ctx actor.Context, env actors.Env)) handler {
	return func(ctx actor.Context, env actors.Env) {
		if started(ctx) {
			do(ctx, env)
		}
	}
}

func TestFailureEndsTheRunWithItsNodeAndReason(t *testing.T) {
	for name, h := range map[string]handler{
		"in a handler": atStart(func(actor.Context, actors.Env) { panic(errFire) }),
		"in a step": atStart(func(_ actor.Context, env actors.Env) {
			env.Compute(actors.Job{Do: func() any { panic(errFire) }})
		}),
		"after a future": atStart(func(ctx actor.Context, env actors.Env) {
			future := ctx.RequestFuture(ctx.Self(), "answer", -1)
			ctx.ReenterAfter(future, func(any, error) { panic(errFire) })
			ctx.Send(future.PID(), "answered")
		}),
		"in the observer": atStart(func(_ actor.Context,
			env actors.Env) {
			env.Record(actors.Event{Kind: actors.Waited})
		}),
		"reported": atStart(func(_ actor.Context, env actors.Env) { env.Fail(errFireAt(env)) }),
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{handlers: []handler{nothing, h}}
			s.observer = watcher(func(time.Duration, int, actors.Event) { panic(errFire) })
			if err := s.fails(t); !errors.Is(err, errFire) || !strings.Contains(err.Error(), "node n1") {
				t.Errorf("error %v, want one that names node n1 and wraps %q", err, errFire)
			}
		})
	}
}

func errFireAt(env actors.Env) error {
	return errors.Join(errors.New("node "+env.View().Members[env.Node()].Name), errFire)
}

func TestFailingEvaluationEndsTheRun(t *testing.T) {
	s := &stage{handlers: []handler{nothing}}
	s.lead = atStart(func(_ actor.Context, env actors.Env) {
		env.Compute(actors.Job{Lag: ms, Do: func() any { panic(errFire) }})
	})
	if err := s.fails(t); !errors.Is(err, errFire) || !strings.Contains(err.Error(), "node coordinator") {
		t.Errorf("error %v, want one that names the coordinator and wraps %q", err, errFire)
	}
}

func TestEvaluationOfAMemberIsRefused(t *testing.T) {
	s := &stage{handlers: []handler{atStart(func(_ actor.Context, env actors.Env) {
		env.Compute(actors.Job{Lag: ms, Do: func() any { return nil }})
	})}}
	if err := s.fails(t); !strings.Contains(err.Error(), "node n0: only the coordinator") {
		t.Errorf("error %v, want a refusal", err)
	}
}

func TestPanicShowsWhereItHappened(t *testing.T) {
	var none []int
	s := &stage{handlers: []handler{atStart(func(_ actor.Context, env actors.Env) { none[env.Node()] = 1 })}}
	if err := s.fails(t); !strings.Contains(err.Error(), "index out of range") ||
		!strings.Contains(err.Error(), "end_test.go") {
		t.Errorf("error %v, want the panic and its place", err)
	}
}

func TestChangeThatPanicsEndsTheRun(t *testing.T) {
	s := &stage{handlers: []handler{nothing}, changes: []link.Change{{At: ms, Apply: func() { panic(errFire) }}}}
	if err := s.fails(t); !errors.Is(err, errFire) {
		t.Errorf("error %v, want %v", err, errFire)
	}
}

func TestMessageWithoutWireFormIsRefused(t *testing.T) {
	s := &stage{handlers: []handler{
		atStart(func(ctx actor.Context, env actors.Env) { ctx.Send(pid(env, 1), "hello") }),
		nothing,
	}}
	if err := s.fails(t); !strings.Contains(err.Error(), "no wire form") ||
		!strings.Contains(err.Error(), "n0 to n1/n1/peer") {
		t.Errorf("error %v, want a refusal that names the way", err)
	}
}

func TestStrictModeFindsATensorWrittenAfterSending(t *testing.T) {
	var w *live.World
	s := &stage{strict: true, edge: constant(50 * ms), handlers: []handler{
		atStart(func(ctx actor.Context, env actors.Env) {
			v := protos.NewTensor([]float32{1, 2, 3})
			ctx.Send(pid(env, 1), protos.NewMessage(&protos.Chunk{}, v))
			w.Locked(func() { v.Data[1] = 7 }) // delivery looks under this lock
		}),
		nothing,
	}}
	w = s.world(t)
	if _, err := w.Run(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "written after it had been sent") {
		t.Errorf("error %v, want the write to be found", err)
	}
	nothingLeft(t)
}

func TestActorThatCannotBeMadeEndsTheRun(t *testing.T) {
	d := &world.Deployment{Nodes: []world.Node{
		{Name: "a", Role: "peer", Profile: world.Unlimited,
			Kind: handler(func(actor.Context, actors.Env) { t.Error("an actor handled a message") }).kind},
		{Name: "b", Role: "peer", Profile: world.Unlimited,
			Kind: func(actors.Env) (actor.Actor, error) { return nil, errFire }},
	}}
	w, err := live.New(live.Config{Deployment: d, Network: link.New(1, []string{"a", "b", actors.Coordinator})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); !errors.Is(err, errFire) || !strings.Contains(err.Error(), "node b") {
		t.Errorf("error %v, want one that names node b and wraps %q", err, errFire)
	}
	nothingLeft(t)
}

func TestCancelledContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &stage{handlers: []handler{atStart(func(actor.Context, actors.Env) { cancel(errFire) })}}
	if _, err := s.world(t).Run(ctx); !errors.Is(err, errFire) {
		t.Errorf("error %v, want %v", err, errFire)
	}
	nothingLeft(t)
}

// Only a handler that computes holds up the end; a job does for the pool's patience.
func TestEndDoesNotWaitForChargesTimersQueuesOrLongJobs(t *testing.T) {
	release, begun, charging := make(chan struct{}), make(chan struct{}), make(chan struct{})
	queued := false
	s := &stage{threads: 1, edge: constant(time.Hour)}
	s.handlers = []handler{
		atStart(func(ctx actor.Context, env actors.Env) {
			ctx.Send(pid(env, 1), chunk(0)) // in flight for an hour
			env.After(time.Hour, "later")
			close(charging)
			env.Charge(3600e9)
			ctx.Send(pid(env, 1), chunk(1)) // after the end
		}),
		atStart(func(_ actor.Context, env actors.Env) {
			env.Compute(actors.Job{Do: func() any { close(begun); <-release; return "late" }})
			env.Compute(actors.Job{Do: func() any { queued = true; return nil }})
			<-begun
			<-charging
			s.finish()
		}),
	}
	before := time.Now()
	r, err := s.world(t).Run(context.Background())
	if err != nil || r.Now >= limit || time.Since(before) >= limit {
		t.Errorf("ended at %v after %v with error %v", r.Now, time.Since(before), err)
	}
	if stats := s.network.Edge(0, 1).Stats(); stats.Sent != 1 || stats.InFlight() != 1 {
		t.Errorf("edge %+v, want one message in flight and none sent after the end", stats)
	}
	close(release)
	nothingLeft(t)
	if queued {
		t.Error("a queued job was begun after the end")
	}
}

// untilStep finishes when the coordinator hears of a step.
func (s *stage) untilStep() {
	s.lead = func(ctx actor.Context, _ actors.Env) {
		if m, ok := ctx.Message().(*protos.Message); ok {
			m.Release()
			s.finish()
		}
	}
}

func TestRunThatEndsWithAStepContainsWhatItsHandlerSends(t *testing.T) {
	s := &stage{edge: constant(time.Hour)}
	s.handlers = []handler{atStart(func(ctx actor.Context, env actors.Env) {
		env.Record(actors.Event{Kind: actors.StepDone, Step: 1, Samples: 1})
		toil(20 * ms) // in which the coordinator could end the run
		ctx.Send(pid(env, 1), chunk(0))
	}), nothing}
	s.untilStep()
	if s.run(t); s.network.Edge(0, 1).Stats().Sent != 1 {
		t.Error("the run ended without what its last step sent")
	}
}

// A handler that charges tells of its steps before it waits, not when it has waited.
func TestStepCountsWhenItIsRecordedNotAfterWhatItsHandlerCharges(t *testing.T) {
	s := &stage{}
	s.handlers = []handler{atStart(func(_ actor.Context, env actors.Env) {
		env.Record(actors.Event{Kind: actors.StepDone, Step: 1, Samples: 1})
		env.Charge(3600e9) // an hour at 1 GFLOP/s
	})}
	s.untilStep()
	s.run(t)
}

// swarm is a world of peers that send vectors to each other at random, compute and charge.
func swarm(seed uint64, strict bool) *stage {
	s := &stage{seed: seed, strict: strict, edge: link.Config{
		Delay: link.Uniform{Max: 3 * ms}, Rate: rate.Constant(5e6), Loss: link.Loss{Probability: 0.1, Drop: true},
	}}
	steps := 0
	s.lead = func(ctx actor.Context, env actors.Env) {
		switch m := ctx.Message().(type) {
		case *actor.Started:
			env.After(150*ms, true)
		case *protos.Message: // progress
			m.Release()
			steps++
		case bool:
			if steps > 200 {
				s.finish()
			} else { // this machine is busy
				env.After(10*ms, true)
			}
		}
	}
	for range 6 {
		state := make([]float32, 50)
		s.handlers = append(s.handlers, func(ctx actor.Context, env actors.Env) {
			step := func() {
				own := append([]float32(nil), state...)
				env.Compute(actors.Job{Work: 2e5, Do: func() any {
					for i := range own {
						own[i] = own[i]*0.9 + float32(i)
					}
					return own
				}})
			}
			switch m := ctx.Message().(type) {
			case *actor.Started:
				step()
			case []float32:
				state = m
				members := env.View().Members
				out := protos.NewMessage(&protos.Chunk{}, env.Tensors().Copy(state))
				out.Retain(len(members) - 1)
				for to := range members {
					ctx.Send(pid(env, to), out)
				}
				env.Record(actors.Event{Kind: actors.StepDone})
				step()
			case *protos.Message:
				for i, v := range m.Tensors[0].Data {
					if v != v {
						env.Fail(errors.New("a released tensor arrived"))
						return
					}
					state[i] = 0.5 * (state[i] + v)
				}
				env.Charge(100)
				m.Release()
			}
		})
	}
	return s
}

// What a run ends with is in flight or delivered or lost, on every edge.
func accounted(t *testing.T, s *stage) {
	t.Helper()
	if sent, delivered, lost := balanced(t, s); delivered == 0 || lost == 0 || lost >= sent {
		t.Errorf("%d sent, %d delivered, %d lost", sent, delivered, lost)
	}
}

// balanced checks that on no edge more has come or gone than was sent, and sums up.
func balanced(t *testing.T, s *stage) (sent, delivered, lost int64) {
	t.Helper()
	for _, e := range s.network.Used() {
		stats := e.Stats
		if stats.InFlight() < 0 || stats.InFlightBytes() < 0 {
			t.Errorf("edge %d → %d does not add up: %+v", e.Source, e.Destination, stats)
		}
		sent, delivered, lost = sent+stats.Sent, delivered+stats.Delivered, lost+stats.Lost
	}
	return sent, delivered, lost
}

func TestEveryMessageIsAccountedForOnItsEdge(t *testing.T) {
	for _, strict := range []bool{false, true} {
		s := swarm(3, strict)
		if r := s.run(t); r.DeadLetters != 0 {
			t.Errorf("%d dead letters", r.DeadLetters)
		}
		accounted(t, s)
	}
}

func TestTwoWorldsLiveSideBySideAndLeaveTheProcessAsItWas(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var group sync.WaitGroup
	stages := []*stage{swarm(1, false), swarm(2, true), swarm(3, false)}
	stages[1].end /= 2
	for _, s := range stages {
		w := s.world(t)
		group.Go(func() {
			if _, err := w.Run(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if after := runtime.GOMAXPROCS(0); after != 1 {
		t.Errorf("GOMAXPROCS is %d, was 1 before the runs and %d before the test", after, before)
	}
	nothingLeft(t)
	for _, s := range stages {
		balanced(t, s) // on a busy machine so short a run may deliver nothing
	}
}

func TestEmbeddingProgramCanKeepItsRuntimeAsItIs(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	for _, keep := range []bool{false, true} {
		var processors, garbage int
		s := &stage{threads: 2}
		s.handlers = []handler{atStart(func(actor.Context, actors.Env) {
			processors, garbage = runtime.GOMAXPROCS(0), debug.SetGCPercent(77)
			debug.SetGCPercent(garbage)
			s.finish()
		})}
		config := s.config()
		config.KeepRuntime = keep
		w, err := live.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		if kept := processors == 1 && garbage == 77; kept != keep {
			t.Errorf("GOMAXPROCS %d and GOGC %d in a run, 1 and 77 before; kept: want %t", processors, garbage, keep)
		}
	}
}

func TestRunInWhichEverythingIsLostIsAStandstill(t *testing.T) {
	t.Parallel()
	lossy := link.Config{Loss: link.Loss{Probability: 1, Drop: true, Attempts: 1}}
	s := &stage{beside: true, edge: lossy, handlers: []handler{
		atStart(func(ctx actor.Context, env actors.Env) { ctx.Send(pid(env, 1), chunk(0)) }),
		func(actor.Context, actors.Env) {},
	}}
	err := s.fails(t)
	if !errors.Is(err, world.ErrStandstill) || !strings.Contains(err.Error(), "lost from n0 to n1: 1") {
		t.Errorf("error %v, want a standstill that names the edge with the loss", err)
	}
}

func TestHandlerThatTakesLongIsNoStandstill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several times as long as a standstill takes to be noticed")
	}
	t.Parallel()
	s := &stage{beside: true}
	s.handlers = []handler{atStart(func(_ actor.Context, env actors.Env) {
		env.Charge(3.5e9) // 3.5 s
		s.finish()
	})}
	s.run(t)
}

// The coordinator goes on to look at a model every 100 ms, which moves nothing on.
func TestBoundedRunInWhichEverythingIsLostTellsThatItStoodStill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the time in which a standstill is noticed")
	}
	t.Parallel()
	type look struct{}
	s := &stage{
		beside: true,
		end:    3500 * time.Millisecond, bounded: true,
		edge: link.Config{Loss: link.Loss{Probability: 1, Drop: true, Attempts: 1}},
		handlers: []handler{atStart(func(ctx actor.Context, env actors.Env) { ctx.Send(pid(env, 1), chunk(0)) }),
			nothing},
		lead: func(ctx actor.Context, env actors.Env) {
			switch ctx.Message().(type) {
			case *actor.Started, look:
				ctx.Send(pid(env, 0), protos.NewMessage(&protos.TakeSnapshot{}))
				env.After(100*time.Millisecond, look{})
			}
		},
	}
	if r := s.run(t); r.Stalled <= 0 || r.Stalled > 3*time.Second {
		t.Errorf("stood still from %v on, want from one of the first looks on", r.Stalled)
	}
}

func TestStopEndsThePlacingOfActors(t *testing.T) {
	stopping := errors.New("stopping")
	stop, halt := context.WithCancelCause(t.Context())
	var placed []int
	nothing := func(actor.Context, actors.Env) {}
	s := &stage{handlers: []handler{nothing, nothing, nothing}}
	s.making = func(node, _ int) error {
		if placed = append(placed, node); node == 1 {
			halt(stopping)
		}
		return nil
	}
	c := s.config()
	c.Stop = stop
	w, err := live.New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer nothingLeft(t)
	defer w.Abandon()
	if err := w.Place(); !errors.Is(err, stopping) || !slices.Equal(placed, []int{0, 1}) {
		t.Errorf("%v, with actors of %v, want the cause of the stop after those of 0 and 1", err, placed)
	}
}
