package train_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/kernel"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// BenchmarkUpdate is a step on parameters that nobody else reads, or that somebody does, as a
// server makes it while an answer is under way. The kernel that adds a multiple of one vector to
// another stands beside it, in place and elsewhere. All three take turns, because other programs
// use the machine as well; the metrics are the fastest turn, and how fast it is as a multiple of
// the kernel's.
func BenchmarkUpdate(b *testing.B) {
	rate := optim.Constant(1e-6)
	for _, m := range []struct {
		name   string
		method optim.Method
	}{
		{"sgd", optim.SGD{Rate: rate}}, {"momentum", optim.Momentum{Rate: rate, Momentum: 0.9}},
		{"adam", optim.NewAdam(rate)},
	} {
		b.Run(m.name+"/alone", func(b *testing.B) { update(b, m.method, false) })
		b.Run(m.name+"/read", func(b *testing.B) { update(b, m.method, true) })
	}
}

// update measures steps on 250,000 parameters.
func update(b *testing.B, method optim.Method, read bool) {
	const n, turn = 250_000, 8
	pool, optimizer, gradient := &protos.TensorPool{}, method.New(n), make([]float32, n)
	params := pool.Get(n)
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	kinds := [3]func(){
		func() {
			if read {
				defer params.Retain().Release()
			}
			params = train.Update(pool, optimizer, params, gradient)
		},
		func() { kernel.Axpy(y, 1e-6, x, y) },
		func() {
			kernel.Axpy(z, 1e-6, x, y)
			y, z = z, y
		},
	}
	least := [3]time.Duration{time.Hour, time.Hour, time.Hour}
	b.ReportAllocs()
	for b.Loop() {
		for i, do := range kinds {
			begin := time.Now()
			for range turn {
				do()
			}
			least[i] = min(least[i], time.Since(begin)/turn)
		}
	}
	b.ReportMetric(float64(least[0].Nanoseconds())/1000, "µs/update")
	b.ReportMetric(float64(least[1])/float64(least[0]), "×axpy-in-place")
	b.ReportMetric(float64(least[2])/float64(least[0]), "×axpy-elsewhere")
}
