package ps_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/nn/optim"
)

func rated(rate float64) optim.Method { return optim.SGD{Rate: optim.Constant(rate)} }

// stopwatch starts the measurement after some steps and ends it after some more.
type stopwatch struct {
	steps, first, last int
	start, stop        func()
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
	}
}

// cycles runs the 93-21-5 network, batch 32, over two unequal links for so many steps.
func cycles(tb testing.TB, scale ps.Scale, watch *stopwatch) {
	task := newTask(tb, 1, []int{93, 21, 5}, 32, 4000, "fast", "slow")
	s := &stage{
		task: task, arch: ps.Architecture{Scale: scale}, server: actors.Profile{Cores: 1, Speed: 10e9}, observer: watch,
		steps: []time.Duration{5 * time.Millisecond, 5 * time.Millisecond}, delays: []time.Duration{time.Millisecond, 100 * time.Millisecond},
	}
	var result coordinator.Result
	run := coordinator.Run{
		Policy:  coordinator.Policy{Every: coordinator.Interval{Epochs: math.MaxFloat64}, Steps: watch.last + 1},
		Samples: task.Train.Len(), Holders: []int{0}, Evaluate: task.NewEvaluator(1).Evaluate, Result: &result,
	}
	s.coordinate = func(env actors.Env, control actors.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	if _, err := s.world(tb).Run(context.Background()); err != nil {
		tb.Fatal(err)
	}
}

const warm = 500 // steps until pools and queues have their size

// BenchmarkCycle is the whole way of one gradient: batch, gradient, push over a link,
// update, answer over a link, and the record of it. ns/op is per step.
func BenchmarkCycle(b *testing.B) {
	for _, scale := range []ps.Scale{ps.Sum, ps.Mean} {
		b.Run(string(scale), func(b *testing.B) {
			b.ReportAllocs()
			cycles(b, scale, &stopwatch{first: warm, last: warm + b.N, start: b.ResetTimer, stop: b.StopTimer})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func TestCycleAllocatesNothing(t *testing.T) {
	const steps = 1000
	for _, scale := range []ps.Scale{ps.Sum, ps.Mean} {
		var before, after runtime.MemStats
		cycles(t, scale, &stopwatch{
			first: warm, last: warm + steps,
			start: func() { runtime.ReadMemStats(&before) }, stop: func() { runtime.ReadMemStats(&after) },
		})
		// The runtime itself now and then allocates something.
		if n := after.Mallocs - before.Mallocs; n > steps/100 {
			t.Errorf("%s: %d allocations in %d steps", scale, n, steps)
		}
	}
}
