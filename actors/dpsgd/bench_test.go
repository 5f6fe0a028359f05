package dpsgd_test

import (
	"fmt"
	"testing"

	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// six is a ring of six peers.
func six(moved float64) *simtest.Stage {
	return &simtest.Stage{Task: simtest.NewTask(6, 200, 0.1), Graph: graphs[0].graph, Kind: dpsgd.Architecture{Lead: -1, Moved: moved}}
}

func BenchmarkStep(b *testing.B) {
	for _, moved := range []float64{0, 0.05} {
		b.Run(fmt.Sprintf("moved %v", moved), six(moved).Benchmark)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	const steps = 3000
	for _, moved := range []float64{0, 0.05} {
		// The runtime itself now and then allocates something.
		if n := six(moved).Allocations(t, steps); n > steps/100 {
			t.Errorf("moved %v: %d allocations in %d steps", moved, n, steps)
		}
	}
}
