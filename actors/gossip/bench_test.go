package gossip_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
)

// pace lets peers train until the stopwatch has stopped.
func (s *stage) pace(tb testing.TB, watch *simtest.Stopwatch) {
	tb.Helper()
	s.observer, s.lax = watch, true
	simtest.Pace(tb, watch, func(c simtest.Coordinate) *sim.World { return s.world(tb, c) })
}

// crowd is many peers with a logistic regression of 123 inputs and three samples each.
func crowd(peers int, rules gossip.Architecture) *stage {
	return &stage{
		task: newTask(peers, 3, 3, 123, 2), rules: rules, steps: []time.Duration{10 * ms},
		edge: link.Uniform{Min: 5 * ms, Max: 15 * ms},
	}
}

// one chooses one neighbour.
func one(exchange gossip.Exchange, wait bool) gossip.Architecture {
	rules := all(exchange, wait)
	rules.Choice = gossip.Choice{By: gossip.Random, Count: 1}
	return rules
}

// BenchmarkCycle is a step with all that follows it: batch, gradient, update, choice, model over a
// link, and merge. ns/op is per step.
func BenchmarkCycle(b *testing.B) {
	for _, peers := range []int{10, 1000} {
		for _, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
			b.Run(fmt.Sprintf("peers=%d/%s", peers, exchange), func(b *testing.B) {
				s := crowd(peers, one(exchange, true))
				simtest.Benchmark(b, 50*peers, func(watch *simtest.Stopwatch) { s.pace(b, watch) })
			})
		}
	}
}

// BenchmarkCrowd is a whole run of 100 cycles of all peers on a complete topology, with the making
// of its world, data excepted.
func BenchmarkCrowd(b *testing.B) {
	const cycles = 100
	for _, peers := range []int{1000, 10_000} {
		for _, wait := range []bool{false, true} {
			b.Run(fmt.Sprintf("peers=%d/wait=%v", peers, wait), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					s := crowd(peers, one(gossip.Push, wait))
					b.StartTimer()
					var m runtime.MemStats
					s.pace(b, &simtest.Stopwatch{Last: cycles * peers, Stop: func() { runtime.ReadMemStats(&m) }})
					b.ReportMetric(float64(m.Sys)/1e6, "MB")
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*cycles*peers), "ns/message")
			})
		}
	}
}

func TestCycleAllocatesNothing(t *testing.T) {
	const peers, warm, steps = 8, 4000, 2000
	latency := one(gossip.PushPull, true)
	latency.Choice = gossip.Choice{By: gossip.Latency, Share: 0.5}
	clocked := one(gossip.Pull, false)
	clocked.Every, clocked.Period, clocked.Moved = 0, 13*ms, 0.001
	squeezed := one(gossip.PushPull, true)
	squeezed.Compress = compress.Chain{compress.Int(8)}
	for _, rules := range []gossip.Architecture{one(gossip.Push, true), all(gossip.Push, false), one(gossip.Pull, true),
		latency, clocked, squeezed} {
		t.Run(fmt.Sprintf("%+v", rules), func(t *testing.T) {
			simtest.ExpectNoAllocations(t, warm, steps,
				func(watch *simtest.Stopwatch) { crowd(peers, rules).pace(t, watch) })
		})
	}
}
