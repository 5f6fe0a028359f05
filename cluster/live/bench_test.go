package live_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/protos"
)

// burn computes for about as long as a training step of a small network takes.
func burn() any {
	x := float32(1)
	for range 1 << 22 {
		x = float32(x*0.999) + 1
	}
	return x
}

// keep keeps n jobs going.
func keep(ctx actor.Context, env actors.Env, job actors.Job, n int) {
	job.Do = burn
	switch ctx.Message().(type) {
	case *actor.Started:
		for range n {
			env.Compute(job)
		}
	case float32:
		env.Compute(job)
	}
}

// BenchmarkLateness measures how much later than asked the messages of a ping-pong over 1 ms links
// are handled, while nothing else goes on, while every core computes steps, and while every core
// computes steps and evaluations. One iteration is a run of three seconds.
func BenchmarkLateness(b *testing.B) {
	for _, load := range []struct {
		name               string
		steps, evaluations int
	}{{"idle", 0, 0}, {"steps", runtime.NumCPU(), 0}, {"steps+evaluations", runtime.NumCPU(), 2 * runtime.NumCPU()}} {
		b.Run(load.name, func(b *testing.B) { benchmarkLateness(b, load.steps, load.evaluations) })
	}
}

func benchmarkLateness(b *testing.B, nodes, evaluations int) {
	const delay = time.Millisecond
	var late []time.Duration
	var recorded time.Duration
	for b.Loop() {
		s := stage{end: 3 * time.Second, profile: world.Unlimited,
			edge: link.Config{Delay: link.Constant{Delay: delay}}}
		var sent, handled [2]time.Duration // by node; each is written before a message leaves and read after it
		for i := range 2 {
			s.handlers = append(s.handlers, func(ctx actor.Context, env actors.Env) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					if i == 1 {
						return
					}
				case *protos.Message:
					handled[i] = env.Now()
					late = append(late, handled[i]-sent[1-i]-delay)
					m.Release()
				default:
					return
				}
				sent[i] = env.Now()
				ctx.Send(pid(env, 1-i), chunk(0))
			})
		}
		for range nodes { // a step computes on each core, and another waits for it
			s.handlers = append(s.handlers, func(ctx actor.Context, env actors.Env) { keep(ctx, env, actors.Job{}, 2) })
		}
		s.lead = func(ctx actor.Context, env actors.Env) { keep(ctx, env, actors.Job{Lag: delay}, evaluations) }
		r, err := s.world(b).Run(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		recorded = max(recorded, r.Messages.P99)
	}
	slices.Sort(late)
	at := func(q float64) float64 { return late[int(q*float64(len(late)-1))].Seconds() * 1e3 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(recorded.Seconds()*1e3, "recorded-p99-ms")
	b.ReportMetric(float64(len(late)), "messages")

}
