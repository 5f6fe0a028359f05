package nn_test

import (
	"fmt"
	"testing"

	"github.com/gradwire/gradwire/nn"
)

// BenchmarkStep is a step of stochastic gradient descent.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name  string
		model *nn.Network
	}{{"small", nn.SmallCNN()}, {"big", nn.BigCNN()}} {
		for _, n := range []int{32, 222, 667} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/batch=%d/threads=%d", c.name, n, threads), func(b *testing.B) {
					params, batch := start(1, c.model, n)
					grad, w := make([]float32, len(params)), c.model.NewParallelWorkspace(n, threads)
					b.ReportAllocs()
					for b.Loop() {
						w.Gradient(params, grad, batch)
						nn.AddScaled(params, -0.01, grad)
					}
					b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "samples/s")
				})
			}
		}
	}
}

// BenchmarkForward is the evaluation of a test set.
func BenchmarkForward(b *testing.B) {
	const n = 10_000
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("small/images=%d/threads=%d", n, threads), func(b *testing.B) {
			m := nn.SmallCNN()
			params, batch := start(1, m, n)
			w := m.NewParallelWorkspace(n, threads)
			b.ReportAllocs()
			for b.Loop() {
				w.Evaluate(params, batch)
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
