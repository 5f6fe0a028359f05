package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/gradwire/gradwire/nn"
)

func TestSharedHoldsWhatIsStored(t *testing.T) {
	for n := range 9 {
		want := make([]float32, n)
		for i := range want {
			want[i] = float32(i+1) * 1.5
		}
		s := nn.NewShared(n)
		s.Store(want)
		got := slices.Repeat([]float32{7}, n)
		if s.Load(got); !slices.Equal(got, want) {
			t.Errorf("%d values: loaded %v, want %v", n, got, want)
		}
	}
	special := []float32{float32(math.Inf(-1)), math.SmallestNonzeroFloat32, float32(math.Copysign(0, -1))}
	s, got := nn.NewShared(3), make([]float32, 3)
	s.Store(special)
	s.Load(got)
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(special[i]) {
			t.Errorf("%v became %v", special[i], got[i])
		}
	}
}

func TestSharedAddsAsAPlainLoopDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 20 {
		s, want, got := nn.NewShared(n), make([]float32, n), make([]float32, n)
		for i := range want {
			want[i] = float32(random.NormFloat64())
		}
		s.Store(want)
		for update := range uint64(30) {
			alpha, x := float32(random.NormFloat64()), make([]float32, n)
			for i := range x {
				if random.IntN(3) > 0 { // many zeros, as of units that are off
					x[i] = float32(random.NormFloat64())
				}
				product := alpha * x[i]
				want[i] += product
			}
			if before := s.AddScaled(alpha, x); before != update {
				t.Errorf("%d updates before update %d", before, update)
			}
		}
		if updates := s.Load(got); !slices.Equal(got, want) || updates != 30 {
			t.Errorf("%d values after %d updates: %v, want %v", n, updates, got, want)
		}
	}
}

// Sums of integers are exact in float32 up to 2²⁴ in every order, so that one addition that is lost
// shows.
func TestSharedLosesNothingThatGoroutinesAdd(t *testing.T) {
	const n, goroutines, updates = 301, 4, 2000
	s := nn.NewShared(n)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			x, seen := make([]float32, n), make([]float32, n)
			for u := range updates {
				for i := range x {
					x[i] = float32((g + u + i) % 3)
				}
				s.AddScaled(-1, x)
				s.Load(seen)
			}
		})
	}
	group.Wait()
	got := make([]float32, n)
	if total := s.Load(got); total != goroutines*updates {
		t.Errorf("%d updates counted, want %d", total, goroutines*updates)
	}
	for i := range got {
		want := 0
		for g := range goroutines {
			for u := range updates {
				want -= (g + u + i) % 3
			}
		}
		if got[i] != float32(want) {
			t.Fatalf("value %d is %v, want %d", i, got[i], want)
		}
	}
}

func TestSharedRefusesOtherLengthsAndAllocatesNothing(t *testing.T) {
	s, x := nn.NewShared(5), make([]float32, 5)
	for name, call := range map[string]func(){
		"Store": func() { s.Store(x[:4]) }, "Load": func() { s.Load(make([]float32, 6)) },
		"AddScaled": func() { s.AddScaled(1, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s accepts another length", name)
				}
			}()
			call()
		}()
	}
	x[0] = 1
	if n := testing.AllocsPerRun(10, func() { s.Store(x); s.AddScaled(2, x); s.Load(x) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkShared(b *testing.B) {
	for _, n := range []int{2_084, 250_000} {
		s, x := nn.NewShared(n), slices.Repeat([]float32{1}, n)
		b.Run(fmt.Sprintf("add/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.AddScaled(0.5, x)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
		b.Run(fmt.Sprintf("load/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.Load(x)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
		})
	}
}
