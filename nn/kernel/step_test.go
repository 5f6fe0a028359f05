package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// rounded does one operation in float64 and rounds the result, which is the operation in float32.
func rounded(x float64) float64 { return float64(float32(x)) }

func flushed(x float64) float32 {
	if math.Abs(x) < 0x1p-126 {
		return 0
	}
	return float32(x)
}

func (m *Momentum) reference(v, p, g float64) (newV float32, newP float64) {
	decay, mu, rate := float64(m.Decay), float64(m.Mu), float64(m.Rate)
	g = rounded(g + rounded(decay*p))
	v = rounded(rounded(mu*v) + g)
	step := v
	if m.Nesterov {
		step = rounded(g + rounded(mu*v))
	}
	return flushed(v), rounded(p - rounded(rate*step))
}

func (a *Adam) reference(m, v, p, g float64) (newM, newV float32, newP float64) {
	g = rounded(g + rounded(float64(a.Decay)*p))
	m = rounded(rounded(float64(a.Beta1)*m) + rounded(float64(a.Rest1)*g))
	v = rounded(rounded(float64(a.Beta2)*v) + rounded(rounded(float64(a.Rest2)*g)*g))
	below := rounded(rounded(rounded(math.Sqrt(v))*float64(a.Root)) + float64(a.Epsilon))
	return flushed(m), flushed(v), rounded(p - rounded(float64(a.Size)*rounded(m/below)))
}

// wild cuts n elements, some of which are unusual numbers.
func wild(r *rand.Rand, n int) (x, whole []float32) {
	unusual := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-40, -1e-44,
		0x1p-126, -0x1p-126, math.MaxFloat32, -math.MaxFloat32, float32(math.NaN())}
	x, whole = cut(r, n)
	for i := range x {
		if r.IntN(4) == 0 {
			x[i] = unusual[r.IntN(len(unusual))]
		}
	}
	return x, whole
}

// same reports whether two numbers have the same bits, or are both NaN.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}

func TestStepsRoundEveryOperationByItself(t *testing.T) {
	withEach(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for n := range 100 {
			p, besideP := wild(r, n)
			g, _ := wild(r, n)
			v, besideV := wild(r, n)
			m, besideM := wild(r, n)
			z, besideZ := wild(r, n)
			oldP, oldM, oldV := slices.Clone(p), slices.Clone(m), slices.Clone(v)
			to := z
			if n%3 == 0 {
				to = p
			}

			momentum := Momentum{Rate: 0.1, Mu: 0.9, Decay: []float32{0, 0.01}[n%2], Nesterov: n%4 < 2}
			momentum.Step(to, v, p, g)
			for i := range to {
				wantV, wantP := momentum.reference(float64(oldV[i]), float64(oldP[i]), float64(g[i]))
				if !same(v[i], wantV) || !same(to[i], float32(wantP)) {
					t.Fatalf("%+v of %d elements: element %d is %v with velocity %v, want %v with %v", momentum, n, i,
						to[i], v[i], wantP, wantV)
				}
			}

			copy(p, oldP)
			copy(v, oldV)
			adam := Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.999, Rest2: 0.001, Size: 0.02, Root: 3.5, Epsilon: 1e-8,
				Decay: momentum.Decay}
			adam.Step(to, m, v, p, g)
			for i := range to {
				wantM, wantV, wantP := adam.reference(float64(oldM[i]), float64(oldV[i]), float64(oldP[i]),
					float64(g[i]))
				if !same(m[i], wantM) || !same(v[i], wantV) || !same(to[i], float32(wantP)) {
					t.Fatalf("%+v of %d elements: element %d is %v with moments %v and %v, want %v with %v and %v",
						adam, n, i, to[i], m[i], v[i], wantP, wantM, wantV)
				}
			}
			if guards(besideP)+guards(besideV)+guards(besideM)+guards(besideZ) != 4*16 {
				t.Fatalf("%d elements: wrote beside them", n)
			}
		}
	})
}
