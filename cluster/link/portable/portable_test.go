package portable

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
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Fatalf("Log(%v) = %v, want %v", x, got, want)
		}
		y := rapid.Float64Range(-700, 0).Draw(t, "y")
		if got, want := Exp(y), math.Exp(y); !near(got, want, 1e-15) {
			t.Fatalf("Exp(%v) = %v, want %v", y, got, want)
		}
	})
	if got := Exp(math.Inf(-1)); got != 0 {
		t.Errorf("Exp(-Inf) = %v, want 0", got)
	}
}

func TestNormalCDFKeepsItsDigitsInBothTails(t *testing.T) {
	for x := -36.0; x <= 36; x += 0.0625 {
		want := 0.5 * math.Erfc(-x/math.Sqrt2)
		if got := NormalCDF(x); !near(got, want, 2e-13) {
			t.Errorf("Φ(%v) = %v, want %v", x, got, want)
		}
		if got, want := NormalDensity(x), distuv.UnitNormal.Prob(x); !near(got, want, 2e-13) {
			t.Errorf("φ(%v) = %v, want %v", x, got, want)
		}
	}
}

func TestNormalQuantileInvertsTheDistribution(t *testing.T) {
	for x := -36.0; x < 7; x += 0.0625 {
		p := NormalCDF(x)
		if got, want := NormalQuantile(p), mathext.NormalQuantile(p); !near(got, want, 1e-14) && math.Abs(got) > 1e-12 {
			t.Errorf("quantile(%v) = %v, gonum has %v", p, got, want)
		}
		// Above the median p itself has lost what x asks for.
		if got := NormalQuantile(p); x < 1 && math.Abs(got-x) > 2e-14*(1+math.Abs(x)) {
			t.Errorf("quantile(Φ(%v)) = %v", x, got)
		}
	}
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
			Log(u), Log(u * 1e-200), Exp(x), Exp(-700 * u), NormalDensity(x), NormalCDF(x), NormalQuantile(u),
		} {
			_ = binary.Write(hash, binary.LittleEndian, math.Float64bits(v)) // a hash returns no error
		}
	}
	if got := hash.Sum64(); got != golden {
		t.Errorf("checksum %#x, want %#x", got, uint64(golden))
	}
}
