package ps_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// Integers are summed exactly in any order: where gradients do not depend on the model, threads
// push what one pushes.
func TestThreadsPushTheSumOfTheirGradients(t *testing.T) {
	run := func(threads ...int) (params []float32, version uint64) {
		s := newStage(t)
		s.task.Model = simtest.Fixed{Model: s.task.Model}
		for i, x := range s.task.Train.X {
			s.task.Train.X[i] = float32(math.Round(float64(x)))
		}
		s.task.Threads, s.task.Method, s.strict = threads, rated(1), true
		s.arch = ps.Architecture{Scale: ps.Sum, Every: 4, Consistency: consistency.BSP{}}
		initial := s.task.Initial()
		params, version = s.run(t, 90*ms)
		for i := range params {
			params[i] -= initial[i]
		}
		return params, version
	}
	want, version := run()
	for _, threads := range [][]int{{1, 1}, {2, 1}, {3, 4}} {
		got, v := run(threads...)
		if v != version || v < 4 {
			t.Fatalf("%v threads: %d updates, one makes %d", threads, v, version)
		}
		for i := range got {
			// the initial parameters round each sum
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Errorf("%v threads: value %d moved by %v, want %v", threads, i, got[i], want[i])
			}
		}
	}
}

func TestThreadsTrainWithEveryConsistency(t *testing.T) {
	for _, model := range []consistency.Model{consistency.BSP{}, consistency.SSP{Rounds: 2}, consistency.ASP{},
		consistency.BoundedDelay{Tasks: 2}} {
		run := func() []float32 {
			s := newStage(t)
			s.task.Threads = []int{3, 2}
			s.arch = ps.Architecture{Scale: ps.Mean, Every: 6, Consistency: model, EpochShare: 0.75}
			params, _ := s.run(t, 300*ms)
			return params
		}
		params := run()
		if slices.Equal(params, newStage(t).task.Initial()) || !slices.Equal(params, run()) {
			t.Errorf("%T: the model did not move, or two runs differ", model)
		}
	}
}

func TestRoundOfThreadsAllocatesNothingForItsSteps(t *testing.T) {
	const every = 512
	for threads := 2; threads < 5; threads++ {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, 4*every, 8*every, func(watch *simtest.Stopwatch) {
				cycles(t, ps.Architecture{Scale: ps.Sum, Every: every}, watch, threads)
			})
		})
	}
}
