package link

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*math.Abs(want)
}

func TestLogAndExpAgreeWithPackageMath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1).Draw(t, "x")
		if got, want := log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Fatalf("log(%v) = %v, want %v", x, got, want)
		}
		y := rapid.Float64Range(-700, 0).Draw(t, "y")
		if got, want := exp(y), math.Exp(y); !near(got, want, 1e-15) {
			t.Fatalf("exp(%v) = %v, want %v", y, got, want)
		}
	})
	if got := exp(math.Inf(-1)); got != 0 {
		t.Errorf("exp(-Inf) = %v, want 0", got)
	}
}

func TestNormalCDFKeepsItsDigitsInBothTails(t *testing.T) {
	for x := -36.0; x <= 36; x += 0.0625 {
		want := 0.5 * math.Erfc(-x/math.Sqrt2)
		if got := normalCDF(x); !near(got, want, 2e-13) {
			t.Errorf("Φ(%v) = %v, want %v", x, got, want)
		}
		if got, want := normalDensity(x), distuv.UnitNormal.Prob(x); !near(got, want, 2e-13) {
			t.Errorf("φ(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestNormalQuantileInvertsTheDistribution(t *testing.T) {
	for x := -36.0; x < 7; x += 0.0625 {
		p := normalCDF(x)
		if got, want := normalQuantile(p), mathext.NormalQuantile(p); !near(got, want, 1e-14) && math.Abs(got) > 1e-12 {
			t.Errorf("quantile(%v) = %v, gonum has %v", p, got, want)
		}
		// Above the median p itself has lost what x asks for.
		if got := normalQuantile(p); x < 1 && math.Abs(got-x) > 2e-14*(1+math.Abs(x)) {
			t.Errorf("quantile(Φ(%v)) = %v", x, got)
		}
	}
}

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
		if got := truncatedExponentialMean(x); !near(got, want, 1e-7) {
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

// The golden checksum holds for every processor: .ci/run compares it on amd64 and, in an emulator,
// on arm64, whose compiler fuses products and sums where it may.
func TestFunctionsHaveTheSameBitsOnEveryProcessor(t *testing.T) {
	const golden = 0xcba1525b8108bb94
	r := rand.New(rand.NewPCG(1, 2))
	hash := fnv.New64a()
	for range 20_000 {
		u := 1 - r.Float64()
		x := 70 * (u - 0.5)
		for _, v := range []float64{
			log(u), log(u * 1e-200), exp(x), exp(-700 * u), normalDensity(x), normalCDF(x), normalQuantile(u),
		} {
			_ = binary.Write(hash, binary.LittleEndian, math.Float64bits(v)) // a hash returns no error
		}
	}
	if got := hash.Sum64(); got != golden {
		t.Errorf("checksum %#x, want %#x", got, uint64(golden))
	}
}
