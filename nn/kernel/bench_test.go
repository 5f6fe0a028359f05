package kernel

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// measure reports the rate of the fastest of many repetitions, because other programs use the
// machine as well. An operation is repeated for about 20 ms at a time.
func measure(b *testing.B, operations int, f func()) {
	b.ReportAllocs()
	f()
	n, least := 1, time.Duration(0)
	for begin := time.Now(); time.Since(begin) < time.Millisecond; {
		begin = time.Now()
		for range n {
			f()
		}
		if time.Since(begin) < time.Millisecond {
			n *= 2
		}
	}
	for b.Loop() {
		begin := time.Now()
		for range n {
			f()
		}
		if took := time.Since(begin); least == 0 || took < least {
			least = took
		}
	}
	b.ReportMetric(float64(operations)*float64(n)/float64(least.Nanoseconds()), "GFLOP/s")
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range shapes {
		p := sample(rand.New(rand.NewPCG(1, 1)), s.transA, s.transB, s.m, s.n, s.k, 0, 1, 0)
		b.Run(fmt.Sprintf("%v/%s", s, Name()), func(b *testing.B) {
			measure(b, 2*s.m*s.n*s.k, func() {
				Gemm(p.transA, p.transB, p.m, p.n, p.k, 1, p.a, p.lda, p.b, p.ldb, 0, p.c, p.ldc)
			})
		})
		b.Run(fmt.Sprintf("%v/gonum", s), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // gonum computes on all
			tA, tB := blas.NoTrans, blas.NoTrans
			if s.transA {
				tA = blas.Trans
			}
			if s.transB {
				tB = blas.Trans
			}
			measure(b, 2*s.m*s.n*s.k, func() {
				gonum.Implementation{}.Sgemm(tA, tB, p.m, p.n, p.k, 1, p.a, p.lda, p.b, p.ldb, 0, p.c, p.ldc)
			})
		})
	}
}

func BenchmarkAxpy(b *testing.B) {
	for _, n := range []int{2084, 21840, 1_199_882} {
		x, y := make([]float32, n), make([]float32, n)
		b.Run(fmt.Sprintf("%d/%s", n, Name()), func(b *testing.B) {
			measure(b, 2*n, func() { Axpy(y, 1e-3, x, y) })
		})
		b.Run(fmt.Sprintf("%d/gonum", n), func(b *testing.B) {
			measure(b, 2*n, func() { gonum.Implementation{}.Saxpy(n, 1e-3, x, 1, y, 1) })
		})
	}
}
