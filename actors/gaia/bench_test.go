package gaia

import (
	"testing"

	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

const warm = 500 // steps until pools and queues have their size

// cycles runs two sites with two workers each, which send each other updates, until the stopwatch
// has seen its last step.
func cycles(tb testing.TB, watch *simtest.Stopwatch) {
	s := newStage(sgd(0.01), 2, 2)
	s.arch.Clock = 2
	simtest.Pace(tb, watch, func(c simtest.Coordinate) *sim.World { return s.world(tb, watch, false, c) })
}

// BenchmarkCycle is the whole way of one gradient, and what other sites are told. ns/op is per
// step.
func BenchmarkCycle(b *testing.B) {
	simtest.Benchmark(b, warm, func(watch *simtest.Stopwatch) { cycles(b, watch) })
}

func TestCycleAllocatesNothing(t *testing.T) {
	simtest.ExpectNoAllocations(t, warm, 1000, func(watch *simtest.Stopwatch) { cycles(t, watch) })
}
