package ps_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

const ms = time.Millisecond

func rated(rate float64) optim.Method { return optim.SGD{Rate: optim.Constant(rate)} }

// cycles runs the 93-21-5 network, batch 32, over two unequal links until the stopwatch has seen
// its last step. The workers have threads, one each if none are given.
func cycles(tb testing.TB, a ps.Architecture, watch *simtest.Stopwatch, threads ...int) {
	task := newTask(tb, 1, []int{93, 21, 5}, 32, 4000, "fast", "slow")
	if threads != nil {
		task.Threads = slices.Repeat(threads, 2)
	}
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

// BenchmarkUpdate is what a server does with a gradient while another worker still reads the answer
// before: the workers compute nothing, and their links take so long that one answer is always under
// way.
func BenchmarkUpdate(b *testing.B) {
	for _, inputs := range []int{2183, 24_999, 119_999} {
		b.Run(fmt.Sprintf("params=%d", 10*inputs+10), func(b *testing.B) {
			watch := &updates{last: b.N + 10}
			s := &stage{
				task: newTask(b, 1, []int{inputs, 10}, 1, 2, "near", "far"), arch: ps.Architecture{Scale: ps.Sum},
				server: world.Profile{Cores: 1, Speed: math.Inf(1)}, observer: watch, worker: echo,
				steps:  []time.Duration{0, 0},
				delays: []time.Duration{time.Millisecond, 1500 * time.Microsecond},
			}
			s.coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
				watch.start, watch.stop = b.ResetTimer, func() {
					b.StopTimer()
					control.Finish()
				}
				return starter(math.MaxInt64)(env, control)
			}
			b.ReportAllocs()
			if _, err := s.world(b).Run(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// idle is a model whose gradients are zero and cost nothing.
type idle struct{ nn.Model }

func (m idle) NewWorkspace(most int) nn.Workspace { return idleSpace{m.Model.NewWorkspace(most)} }

type idleSpace struct{ nn.Workspace }

func (idleSpace) Gradient(_, grad []float32, _ nn.Batch) float64 {
	clear(grad)
	return 0
}

// BenchmarkReplicas is what pushes and answers of 21,780 values of 4 workers take on 2 servers,
// with and without a copy of each shard: ns/op is per step of a worker.
func BenchmarkReplicas(b *testing.B) {
	for _, model := range []consistency.Model{consistency.ASP{}, consistency.BSP{}} {
		for _, number := range []int{1, 48} {
			for replicas := range 2 {
				b.Run(fmt.Sprintf("%T/shards=%d/replicas=%d", model, number, replicas), func(b *testing.B) {
					a := replicated(ps.Architecture{Consistency: model, Scale: ps.Sum}, replicas)
					a.Servers.Shard = int64(4 * ((21_780 + number - 1) / number))
					s := &site{arch: a, servers: 2, workers: 4, delay: ms, layers: []int{2177, 10}, idle: true,
						steps: b.N}
					b.ReportAllocs()
					s.must(b)
				})
			}
		}
	}
}

// updates calls functions after the tenth and the last update.
type updates struct {
	made, last  int
	start, stop func()
}

func (u *updates) Observe(_ time.Duration, _ int, e actors.Event) {
	if e.Kind != actors.UpdateApplied {
		return
	}
	switch u.made++; u.made {
	case 10:
		u.start()
	case u.last:
		u.stop()
	}
}

// echo is a worker that pushes the same gradient whenever it gets parameters.
func echo(env actors.Env) (actor.Actor, error) {
	var gradient *protos.Tensor
	return actor.ReceiveFunc(func(ctx actor.Context) {
		m, ok := ctx.Message().(*protos.Message)
		if !ok {
			return
		}
		if head, ok := m.Head.(*protos.Parameters); ok {
			if gradient == nil {
				gradient = protos.NewTensor(slices.Repeat([]float32{1e-6}, len(m.Tensors[0].Data)))
			}
			push := &protos.Push{Node: int32(env.Node()), Version: head.Version, Life: head.Life}
			ctx.Send(env.View().Members[0].PID, protos.NewMessage(push, gradient.Retain()))
		}
		m.Release()
	}), nil
}
