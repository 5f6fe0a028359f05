package simtest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/protos"
)

// Stopwatch is an observer that calls Start after the First step of all nodes together, and Stop
// after the Last.
type Stopwatch struct {
	First, Last int
	Start, Stop func()
	steps       int
}

// Observe implements [world.Observer].
func (w *Stopwatch) Observe(_ time.Duration, _ int, event actors.Event) {
	if event.Kind != actors.StepDone {
		return
	}
	switch w.steps++; w.steps {
	case w.First:
		w.Start()
	case w.Last:
		w.Stop()
	}
}

// Benchmark measures b.N steps of what run lets happen under the stopwatch, after those that it
// takes until pools and queues have their size.
func Benchmark(b *testing.B, warm int, run func(watch *Stopwatch)) {
	b.Helper()
	b.ReportAllocs()
	run(&Stopwatch{First: warm, Last: warm + b.N, Start: b.ResetTimer, Stop: b.StopTimer})
}

// ExpectNoAllocations fails if steps of what run lets happen allocate, after the warm ones that it
// takes until pools and queues have their size.
func ExpectNoAllocations(t *testing.T, warm, steps int, run func(watch *Stopwatch)) {
	t.Helper()
	var before, after runtime.MemStats
	run(&Stopwatch{
		First: warm, Last: warm + steps,
		Start: func() { runtime.ReadMemStats(&before) }, Stop: func() { runtime.ReadMemStats(&after) },
	})
	// The runtime itself now and then allocates something.
	if n := after.Mallocs - before.Mallocs; n > uint64(steps/100) {
		t.Errorf("%d allocations in %d steps", n, steps)
	}
}

// Coordinate makes a coordinator.
type Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error)

// Pace lets the members of a world begin, and the world go on until the stopwatch has stopped. The
// world is to be observed by the stopwatch.
func Pace(tb testing.TB, watch *Stopwatch, newWorld func(Coordinate) *sim.World) {
	tb.Helper()
	stop := watch.Stop
	w := newWorld(func(env actors.Env, control world.Control) (actor.Actor, error) {
		watch.Stop = func() {
			stop()
			control.Finish()
		}
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				members := env.View().Members
				for i := range members {
					ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
				}
			case *protos.Message:
				m.Release()
			}
		}), nil
	})
	if _, err := w.Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

// Pace lets the peers run until the stopwatch has stopped.
func (s *Stage) Pace(tb testing.TB, watch *Stopwatch) {
	tb.Helper()
	s.Observer = watch
	Pace(tb, watch, func(c Coordinate) *sim.World { return s.World(tb, c) })
}
