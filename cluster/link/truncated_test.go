package link

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTruncatedMeansAgreeWithIntegration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(-8, 8).Draw(t, "a")
		b := a + math.Pow(10, rapid.Float64Range(-9, 1).Draw(t, "log width"))
		got := truncatedNormalMean(a, b)
		if a > 0 {
			got = -truncatedNormalMean(-b, -a) // as Normal.Start mirrors it
		}
		want := meanByIntegration(a, b, func(x float64) float64 { return -x * x / 2 })
		if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("normal on [%v, %v]: mean %v, want %v", a, b, got, want)
		}
		x := math.Pow(10, rapid.Float64Range(-9, 1.5).Draw(t, "log x"))
		want = meanByIntegration(0, x, func(x float64) float64 { return -x })
		if got := truncatedExponentialMean(x); math.Abs(got-want) > 1e-7*want {
			t.Fatalf("exponential on [0, %v]: mean %v, want %v", x, got, want)
		}
	})
}

// meanByIntegration is Simpson's rule for ∫x·exp(g) / ∫exp(g), with x counted from a to keep its
// digits.
func meanByIntegration(a, b float64, g func(float64) float64) float64 {
	const cells = 2000
	h := (b - a) / cells
	peak := math.Max(g(a), g(b))
	if a < 0 && b > 0 {
		peak = 0
	}
	var mass, moment float64
	for i := 0; i <= cells; i++ {
		weight := 4.0
		if i%2 == 0 {
			weight = 2
		}
		if i == 0 || i == cells {
			weight = 1
		}
		offset := float64(i) * h
		w := weight * math.Exp(g(a+offset)-peak)
		mass += w
		moment += w * offset
	}
	return a + moment/mass
}
