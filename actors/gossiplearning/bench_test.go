package gossiplearning_test

import (
	"fmt"
	"testing"

	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// crowd is peers with a sample each.
func crowd(tb testing.TB, peers int, rules gossiplearning.Architecture) *simtest.Stage {
	tb.Helper()
	return &simtest.Stage{Task: newTask(tb, peers, 1, 1), Kind: rules, Edge: link.Uniform{Min: 5 * ms, Max: 1000 * ms}}
}

func rulesOf(create gossiplearning.Create, flow gossiplearning.Flow) gossiplearning.Architecture {
	rules := gossiplearning.Default()
	rules.Period, rules.Create, rules.Flow, rules.Merge = 250*ms, create, flow, gossiplearning.Age
	return rules
}

var ways = []gossiplearning.Architecture{
	rulesOf(gossiplearning.RW, gossiplearning.Flow{Kind: gossiplearning.Proactive}),
	rulesOf(gossiplearning.MU, gossiplearning.Flow{Kind: gossiplearning.Proactive}),
	rulesOf(gossiplearning.UM, gossiplearning.Flow{Kind: gossiplearning.Proactive}),
	rulesOf(gossiplearning.MU, gossiplearning.Flow{Kind: gossiplearning.Randomized, Capacity: 20, Reactivity: 10}),
}

// BenchmarkUpdate is an update with all that belongs to it: a model that is sent, arrives and is
// merged, the step, and the record of it.
func BenchmarkUpdate(b *testing.B) {
	for _, peers := range []int{10, 1000} {
		for _, rules := range ways {
			b.Run(fmt.Sprintf("peers=%d/%s/%s", peers, rules.Create, rules.Flow.Kind), func(b *testing.B) {
				simtest.Benchmark(b, 50*peers, func(watch *simtest.Stopwatch) { crowd(b, peers, rules).Pace(b, watch) })
			})
		}
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	for _, rules := range ways {
		t.Run(fmt.Sprintf("%s/%s", rules.Create, rules.Flow.Kind), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, 6000, 2000,
				func(watch *simtest.Stopwatch) { crowd(t, 8, rules).Pace(t, watch) })
		})
	}
}
