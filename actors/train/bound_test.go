package train

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// exactly is the probability that at most k of n samples drawn from a set, of which a number is
// right, are right, as a fraction of whole numbers.
func exactly(samples, right, n, k int) *big.Rat {
	sum := new(big.Int)
	for i := 0; i <= k; i++ {
		ways := new(big.Int).Binomial(int64(right), int64(i))
		if i > right || n-i > samples-right {
			continue
		}
		sum.Add(sum, ways.Mul(ways, new(big.Int).Binomial(int64(samples-right), int64(n-i))))
	}
	return new(big.Rat).SetFrac(sum, new(big.Int).Binomial(int64(samples), int64(n)))
}

func TestBoundIsTheExactOneOfDrawsThatAreNotPutBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		samples := rapid.IntRange(1, 500).Draw(r, "samples")
		target := rapid.Float64Range(0.001, 1).Draw(r, "target")
		b := NewBound(samples, target)
		right := needed(samples, target)
		if right > samples || float64(right)/float64(samples) < target ||
			right > 0 && float64(right-1)/float64(samples) >= target {
			r.Fatalf("%d of %d samples are needed for %v", right, samples, target)
		}
		for _, s := range b.steps {
			if s.samples%boundUnit != 0 || s.samples >= samples {
				r.Fatalf("a look after %d of %d samples", s.samples, samples)
			}
			// Nearly so much is rounding.
			least := big.NewRat(int64(1e9-1), int64(1e18)*int64(len(b.steps)))
			most := big.NewRat(int64(1e9+1), int64(1e18)*int64(len(b.steps)))
			if s.most >= 0 && exactly(samples, right, s.samples, s.most).Cmp(most) > 0 {
				r.Fatalf("%+v of %d samples, %d are needed: too many", s, samples, right)
			}
			if exactly(samples, right, s.samples, s.most+1).Cmp(least) < 0 {
				r.Fatalf("%+v of %d samples, %d are needed: too few", s, samples, right)
			}
			// With more wrong answers than the target leaves there is no doubt.
			if sure := s.samples - (samples - right) - 1; s.most < sure {
				r.Fatalf("%+v of %d samples, %d are needed: %d are not enough for sure", s, samples, right, sure)
			}
		}
	})
}

func TestBoundStopsSoonFarFromTheTarget(t *testing.T) {
	b := NewBound(10_000, 0.9)
	for accuracy, want := range map[float64]int{0.1: 64, 0.5: 128, 0.8: 1024, 0.85: 4000} {
		seen := 10_000
		for _, s := range b.steps {
			if float64(s.most) >= accuracy*float64(s.samples) {
				seen = s.samples
				break
			}
		}
		if seen > want {
			t.Errorf("a model of accuracy %v takes %d samples, more than %d", accuracy, seen, want)
		}
	}
}
