package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// ulps is the distance of got from want in units of the last place of float32 at want.
func ulps(got float32, want float64) float64 {
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func TestElementaryFunctionsAreAccurate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(name string, x float32, got float32, want, bound float64) {
		if u := ulps(got, want); !(u <= bound) {
			t.Errorf("%s(%v) = %v, want %v: off by %v units", name, x, got, want, u)
		}
	}
	for range 200_000 {
		x := float32((r.Float64()*2 - 1) * math.Exp2(r.Float64()*20-13))
		v := float64(x)
		if want := math.Exp(v); want < math.MaxFloat32 {
			check("exp", x, exp(x), want, 0.59)
		}
		check("tanh", x, tanh(x), math.Tanh(v), 2.5)
		if x > -87 {
			check("sigmoid", x, sigmoid(x), 1/(1+math.Exp(-v)), 2.5)
		}
	}
}

func TestElementaryFunctionsAtTheEdges(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"exp(0)", exp(0), 1}, {"exp(-0)", exp(float32(math.Copysign(0, -1))), 1}, {"exp(-Inf)", exp(-inf), 0},
		{"exp(Inf)", exp(inf), inf}, {"exp(-1e4)", exp(-1e4), 0}, {"exp(1e4)", exp(1e4), inf},
		{"exp(89)", exp(89), inf},
		{"exp(-104)", exp(-104), 0}, {"exp(NaN)", exp(nan), nan},
		{"exp(-NaN)", exp(float32(math.Copysign(math.NaN(), -1))), nan},
		{"tanh(0)", tanh(0), 0}, {"tanh(Inf)", tanh(inf), 1}, {"tanh(-Inf)", tanh(-inf), -1},
		{"tanh(NaN)", tanh(nan), nan},
		{"sigmoid(0)", sigmoid(0), 0.5}, {"sigmoid(Inf)", sigmoid(inf), 1}, {"sigmoid(-Inf)", sigmoid(-inf), 0},
		{"sigmoid(NaN)", sigmoid(nan), nan},
	} {
		if c.got != c.want && !(c.got != c.got && c.want != c.want) {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestExpAllHasTheBitsOfExp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		x, want := make([]float32, n), make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(r.Uint32()) // of any magnitude, NaN and Inf among them
			if r.IntN(2) == 0 {
				x[i] = float32(200 * (r.Float64() - 0.5))
			}
			want[i] = exp(x[i])
		}
		before := slices.Clone(x)
		expAll(x)
		for i := range x {
			if x[i] != want[i] && !(x[i] != x[i] && want[i] != want[i]) {
				t.Fatalf("exp(%v) is %v among %d, alone %v", before[i], x[i], n, want[i])
			}
		}
	}
}

func BenchmarkExp(b *testing.B) {
	x, sum := make([]float32, 1000), float32(0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = float32(-10 * r.Float64())
	}
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			for _, v := range x {
				sum += exp(v)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		y := make([]float32, len(x))
		for b.Loop() {
			copy(y, x)
			expAll(y)
		}
	})
	b.Run("math", func(b *testing.B) {
		for b.Loop() {
			for _, v := range x {
				sum += float32(math.Exp(float64(v)))
			}
		}
	})
	_ = sum
}
