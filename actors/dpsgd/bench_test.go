package dpsgd_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/protos"
)

// stopwatch starts the measurement after some steps of all peers, ends it after some more, and then the run.
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

// cycles lets a ring of six peers make so many steps in all.
func cycles(tb testing.TB, moved float64, watch *stopwatch) {
	s := stage{task: newTask(6, 200, 0.1), graph: graphs[0].graph, kind: dpsgd.Architecture{Lead: -1, Moved: moved}, observer: watch}
	w := s.world(tb, func(env actors.Env, control actors.Control) (actor.Actor, error) {
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

const warm = 3000 // steps until pools and queues have their size

// BenchmarkStep is a whole step: batch, gradient, exchange over links, update, and the record of it.
func BenchmarkStep(b *testing.B) {
	for _, moved := range []float64{0, 0.05} {
		b.Run(fmt.Sprintf("moved %v", moved), func(b *testing.B) {
			b.ReportAllocs()
			cycles(b, moved, &stopwatch{first: warm, last: warm + b.N, start: b.ResetTimer, stop: b.StopTimer})
		})
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	const steps = 3000
	for _, moved := range []float64{0, 0.05} {
		var before, after runtime.MemStats
		cycles(t, moved, &stopwatch{
			first: warm, last: warm + steps,
			start: func() { runtime.ReadMemStats(&before) }, stop: func() { runtime.ReadMemStats(&after) },
		})
		// The runtime itself now and then allocates something.
		if n := after.Mallocs - before.Mallocs; n > steps/100 {
			t.Errorf("moved %v: %d allocations in %d steps", moved, n, steps)
		}
	}
}
