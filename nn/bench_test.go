package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// denseBatch draws n samples of standard normal inputs.
func denseBatch(r *rand.Rand, m nn.Model, n int) nn.Batch {
	b := nn.Batch{X: make([]float32, n*m.Inputs()), Y: make([]int32, n)}
	for i := range b.X {
		b.X[i] = float32(r.NormFloat64())
	}
	for i := range b.Y {
		b.Y[i] = int32(r.IntN(m.Classes()))
	}
	return b
}

// sparseBatch draws n samples like records of network traffic: one-hot groups of 3, 70 and 11
// columns with the skew of protocols, services and flags, and nine standardised numbers in the last
// columns: 12 of 93 are not zero.
func sparseBatch(r *rand.Rand, m nn.Model, n int) nn.Batch {
	b := denseBatch(r, m, n)
	for i := range n {
		x := b.X[i*93 : (i+1)*93]
		clear(x[:84])
		first := 0
		for _, width := range []int{3, 70, 11} {
			u := r.Float64()
			x[first+int(u*u*float64(width))] = 1
			first += width
		}
	}
	return b
}

func newMLP(tb testing.TB, activation nn.Activation, layers ...int) *nn.MLP {
	tb.Helper()
	m, err := nn.NewMLP(layers, activation)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func BenchmarkGradient(b *testing.B) {
	m := newMLP(b, nn.ReLU, 93, 21, 5)
	for _, inputs := range []struct {
		name string
		draw func(*rand.Rand, nn.Model, int) nn.Batch
	}{{"sparse", sparseBatch}, {"dense", denseBatch}} {
		for _, n := range []int{1, 32, 128, 1024} {
			b.Run(fmt.Sprintf("93-21-5/batch=%d/%s", n, inputs.name), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 2))
				params, grad := make([]float32, m.Params()), make([]float32, m.Params())
				m.Init(params, r)
				// Sixteen different batches, lest the branch predictor learn the only one by heart.
				batches := make([]nn.Batch, 16)
				for i := range batches {
					batches[i] = inputs.draw(r, m, n)
				}
				w := m.NewWorkspace(n)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					w.Gradient(params, grad, batches[i%len(batches)])
					i++
				}
			})
		}
	}
}

// BenchmarkTrainStep measures a training step, Gradient and SGD, repeated on one batch of dense
// inputs. It reports the steps/s of the fastest repetition, because other programs use the machine
// as well.
func BenchmarkTrainStep(b *testing.B) {
	m := newMLP(b, nn.ReLU, 93, 21, 5)
	for _, n := range []int{1, 32, 128, 1024} {
		b.Run(fmt.Sprintf("93-21-5/batch=%d", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			params, grad := make([]float32, m.Params()), make([]float32, m.Params())
			m.Init(params, r)
			batch, w := denseBatch(r, m, n), m.NewWorkspace(n)
			step := optim.SGD{Rate: optim.Constant(0.01)}.New(m.Params())
			least := time.Duration(math.MaxInt64)
			steps := max(1, 2048/n)
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				for range steps {
					w.Gradient(params, grad, batch)
					step.Step(params, params, grad)
				}
				least = min(least, time.Since(begin))
			}
			b.ReportMetric(float64(steps)/least.Seconds(), "steps/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func BenchmarkEvaluate(b *testing.B) {
	m := newMLP(b, nn.ReLU, 93, 21, 5)
	r := rand.New(rand.NewPCG(1, 2))
	params := make([]float32, m.Params())
	m.Init(params, r)
	batch := sparseBatch(r, m, 31493)
	w := m.NewWorkspace(256)
	b.ReportAllocs()
	for b.Loop() {
		w.Evaluate(params, batch)
	}
}
