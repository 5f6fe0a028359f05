package simtest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// warm is how many steps it takes until pools and queues have their size.
const warm = 3000

// stopwatch starts a measurement after some steps of all peers, ends it after some more, and then the run.
type stopwatch struct {
	steps, first, last int
	start, stop        func()
	finish             func()
}

func (w *stopwatch) Observe(_ time.Duration, _ int, event actors.Event) {
	if event.Kind != actors.StepDone {
		return
	}
	switch w.steps++; w.steps {
	case w.first:
		w.start()
	case w.last:
		w.stop()
		w.finish()
	}
}

// pace lets the peers run under a stopwatch.
func (s *Stage) pace(tb testing.TB, watch *stopwatch) {
	tb.Helper()
	s.Observer = watch
	w := s.World(tb, func(env actors.Env, control actors.Control) (actor.Actor, error) {
		watch.finish = control.Finish
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				for i := range env.View().Members {
					ctx.Send(env.View().Members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
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

// Benchmark measures whole steps, b.N of all peers: batch, gradient, exchange over links, update, and the record of it.
func (s *Stage) Benchmark(b *testing.B) {
	b.ReportAllocs()
	s.pace(b, &stopwatch{first: warm, last: warm + b.N, start: b.ResetTimer, stop: b.StopTimer})
}

// Allocations returns what so many steps allocate, of all peers together, when pools and queues have their size.
func (s *Stage) Allocations(tb testing.TB, steps int) uint64 {
	tb.Helper()
	var before, after runtime.MemStats
	s.pace(tb, &stopwatch{
		first: warm, last: warm + steps,
		start: func() { runtime.ReadMemStats(&before) }, stop: func() { runtime.ReadMemStats(&after) },
	})
	return after.Mallocs - before.Mallocs
}
