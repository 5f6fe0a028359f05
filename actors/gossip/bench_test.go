package gossip_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/protos"
)

// stopwatch starts the measurement after some steps of all peers, and ends it and the run
// after some more.
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

// cycles lets peers train until the stopwatch has stopped.
func (s *stage) cycles(tb testing.TB, watch *stopwatch) {
	tb.Helper()
	s.observer, s.lax = watch, true
	stop := watch.stop
	w := s.world(tb, func(env actors.Env, control actors.Control) (actor.Actor, error) {
		watch.stop = func() {
			stop()
			control.Finish()
		}
		return actor.ReceiveFunc(func(ctx actor.Context) {
			switch m := ctx.Message().(type) {
			case *actor.Started:
				members := env.View().Members
				for i := range members {
					ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
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
				b.ReportAllocs()
				s := crowd(peers, one(exchange, true))
				first := 50 * peers
				s.cycles(b, &stopwatch{first: first, last: first + b.N, start: b.ResetTimer, stop: b.StopTimer})
			})
		}
	}
}

// BenchmarkCrowd is a whole run of 100 cycles of all peers on a complete topology, with the making of its world,
// data excepted.
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
					s.cycles(b, &stopwatch{last: cycles * peers, stop: func() { runtime.ReadMemStats(&m) }})
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
	for _, rules := range []gossip.Architecture{one(gossip.Push, true), all(gossip.Push, false), one(gossip.Pull, true), latency, clocked} {
		var before, after runtime.MemStats
		s := crowd(peers, rules)
		s.cycles(t, &stopwatch{
			first: warm, last: warm + steps,
			start: func() { runtime.ReadMemStats(&before) }, stop: func() { runtime.ReadMemStats(&after) },
		})
		// The runtime itself now and then allocates something.
		if n := after.Mallocs - before.Mallocs; n > steps/100 {
			t.Errorf("%+v: %d allocations in %d steps", rules, n, steps)
		}
	}
}
