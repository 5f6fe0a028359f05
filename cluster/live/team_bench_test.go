package live_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// window is how many steps are timed at a time: a round of a team of two.
const window = 2 * local.Turns

// pace times windows of steps, and ends a run after some.
type pace struct {
	windows, steps int
	began          time.Time
	best           time.Duration
	finish         func()
}

func (p *pace) Observe(_ time.Duration, _ int, e actors.Event) {
	if e.Kind != actors.StepDone {
		return
	}
	if p.steps++; p.steps%window != 0 {
		return
	}
	now := time.Now()
	if took := now.Sub(p.began); p.steps > window && (p.best == 0 || took < p.best) {
		p.best = took
	}
	p.began = now
	if p.steps == p.windows*window {
		p.finish()
	}
}

// quickest is how long one worker of some threads took for a window, on so many threads of the
// pool, when it was quickest: other programs only make it slower.
func quickest(b *testing.B, task train.Task, threads, pool, windows int) time.Duration {
	b.Helper()
	task.Threads, task.Cores = []int{threads}, []int{threads}
	p := &pace{windows: windows}
	profile := world.Profile{Cores: threads, Speed: world.Unlimited.Speed}
	d := &world.Deployment{Seed: 1, Observer: p, Nodes: []world.Node{{Name: "n0", Role: "peer", Profile: profile,
		Kind: local.Architecture{}.Kind(&task, train.Place{})}}}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		p.finish = control.Finish
		return actor.ReceiveFunc(func(ctx actor.Context) {
			if started(ctx) {
				ctx.Send(pid(env, 0), protos.NewMessage(&protos.Start{View: 1}))
			}
		}), nil
	}
	w, err := live.New(live.Config{Deployment: d, Network: link.New(1, []string{"n0", actors.Coordinator}),
		Threads: pool})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		b.Fatal(err)
	}
	return p.best
}

// BenchmarkThreads compares, in turns, a worker of one thread, a team of two that has one core, and
// one that has two. The ratio is the one of the teams.
func BenchmarkThreads(b *testing.B) {
	for _, layers := range [][]int{{93, 21, 5}, {784, 32, 10}, {784, 128, 10}} {
		for _, batch := range []int{32, 256} {
			task := simtest.Task(simtest.Perceptron(layers...), []int{4096}, batch,
				optim.SGD{Rate: optim.Constant(0.01)})
			windows := max(1<<26/(layers[0]*layers[1]*batch), 10)
			b.Run(fmt.Sprint(layers, batch), func(b *testing.B) {
				best := [3]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
				for b.Loop() {
					for i, x := range []struct{ threads, pool int }{{1, 1}, {2, 1}, {2, 2}} {
						best[i] = min(best[i], quickest(b, *task, x.threads, x.pool, windows))
					}
				}
				samples := float64(window * batch)
				b.ReportMetric(samples/best[0].Seconds(), "alone/s")
				b.ReportMetric(samples/best[1].Seconds(), "one-core/s")
				b.ReportMetric(samples/best[2].Seconds(), "two-cores/s")
				b.ReportMetric(best[1].Seconds()/best[2].Seconds(), "ratio")
			})
		}
	}
}
