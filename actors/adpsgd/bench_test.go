package adpsgd_test

import (
	"fmt"
	"testing"

	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// six is a ring of six peers.
func six(moved float64) *simtest.Stage {
	return &simtest.Stage{Task: simtest.NewTask(6, 200, 0.1), Graph: graphs[0].graph,
		Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1, Moved: moved}}
}

const warm = 3000 // steps until pools and queues have their size

// BenchmarkStep is a whole step: batch, gradient, exchange over links, update, and the record of
// it.
func BenchmarkStep(b *testing.B) {
	for _, moved := range []float64{0, 0.05} {
		b.Run(fmt.Sprintf("moved %v", moved), func(b *testing.B) {
			simtest.Benchmark(b, warm, func(watch *simtest.Stopwatch) { six(moved).Pace(b, watch) })
		})
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, moved := range []float64{0, 0.05} {
		t.Run(fmt.Sprintf("moved %v", moved), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, warm, 3000, func(watch *simtest.Stopwatch) { six(moved).Pace(t, watch) })
		})
	}
}
