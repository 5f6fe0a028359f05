package ps_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
)

func rated(rate float64) optim.Method { return optim.SGD{Rate: optim.Constant(rate)} }

// cycles runs the 93-21-5 network, batch 32, over two unequal links for so many steps.
func cycles(tb testing.TB, a ps.Architecture, watch *simtest.Stopwatch) {
	task := newTask(tb, 1, []int{93, 21, 5}, 32, 4000, "fast", "slow")
	s := &stage{
		task: task, arch: a, server: world.Profile{Cores: 1, Speed: 10e9}, observer: watch,
		steps:  []time.Duration{5 * time.Millisecond, 5 * time.Millisecond},
		delays: []time.Duration{time.Millisecond, 100 * time.Millisecond},
	}
	var result coordinator.Result
	run := coordinator.Run{
		Policy:  coordinator.Policy{Every: coordinator.Interval{Epochs: math.MaxFloat64}, Steps: watch.Last + 1},
		Samples: task.Train.Len(), Holders: []int{0}, Result: &result,
		Evaluate: task.NewEvaluator(task.TestSamples(), 1).Evaluate,
	}
	s.coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
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
			simtest.Benchmark(b, warm, func(watch *simtest.Stopwatch) {
				cycles(b, ps.Architecture{Scale: scale}, watch)
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

func TestCycleAllocatesNothing(t *testing.T) {
	for _, a := range []ps.Architecture{{Scale: ps.Sum}, {Scale: ps.Mean}, {Scale: ps.Sum, Every: 4}} {
		t.Run(fmt.Sprint(a.Scale, a.Every), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, warm, 1000, func(watch *simtest.Stopwatch) { cycles(t, a, watch) })
		})
	}
}
