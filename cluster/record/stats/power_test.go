package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// race makes up an experiment: points that take factors times as long as the first, whose times
// share an effect of the seed and have one of their own.
func race(r *rand.Rand, factors []float64, seeds int, shared, own func(*rand.Rand) float64) []Sample {
	points := make([]Sample, len(factors))
	for seed := range seeds {
		together := shared(r)
		for i, factor := range factors {
			at := 10 * factor * together * own(r)
			points[i] = append(points[i], Arrival{Seed: uint64(seed), At: at, Early: at, Late: at})
		}
	}
	return points
}

// noise is a factor around 1.
func noise(share float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Exp(share * r.NormFloat64()) }
}

// told counts how often each point is called a word in 1,000 experiments.
func told(word Word, experiment func() []Sample) (shares []float64) {
	for range experiments {
		for i, v := range Judge(experiment()) {
			if i == len(shares) {
				shares = append(shares, 0)
			}
			if v.Word == word {
				shares[i] += 1.0 / experiments
			}
		}
	}
	return shares
}

func TestSlowerPointsAreToldApart(t *testing.T) {
	t.Parallel()
	factors := []float64{1, 1.1, 1.2, 1.4, 1.65, 2, 2.5, 3.4, 4.6}
	r := rand.New(rand.NewPCG(11, 1))
	shares := told(Slower, func() []Sample { return race(r, factors, 5, noise(0.1), noise(0.1)) })
	t.Logf("told apart: %.3f of %g", shares, factors)
	for i, least := range map[int]float64{2: 0.30, 4: 0.97, 6: 1} {
		if shares[i] < least {
			t.Errorf("a point of %g times the fastest is told apart in %.1f %%, want %g %%", factors[i], 100*shares[i],
				100*least)
		}
	}
	if shares[0] > 0.06 {
		t.Errorf("the best is excluded in %.1f %%", 100*shares[0])
	}
}

// shapes are distributions of a run's time around 1.
func shapes() map[string]func(*rand.Rand) float64 {
	heaps := func(share, factor float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 {
			at := noise(0.05)(r)
			if r.Float64() < share {
				at *= factor
			}
			return at
		}
	}
	return map[string]func(*rand.Rand) float64{
		"even": noise(0.1), "skewed": noise(0.6), "one in ten 4 times as long": heaps(0.1, 4),
		"two heaps": heaps(0.5, 2), "exponential": func(r *rand.Rand) float64 { return 0.1 + r.ExpFloat64() },
	}
}

func TestTheBestIsHardlyEverExcludedAmongEquals(t *testing.T) {
	t.Parallel()
	for name, own := range shapes() {
		for _, ends := range []float64{math.Inf(1), 9.8} {
			for _, c := range []struct{ points, repeats int }{{2, 3}, {9, 3}, {9, 5}, {4, 10}} {
				t.Run(fmt.Sprintf("%s/ends at %g/%d points/%d repeats", name, ends, c.points, c.repeats),
					func(t *testing.T) { testEquals(t, own, ends, c.points, c.repeats) })
			}
		}
	}
}

func testEquals(t *testing.T, own func(*rand.Rand) float64, ends float64, points, repeats int) {
	r := rand.New(rand.NewPCG(12, uint64(points*repeats)))
	equal := make([]float64, points)
	for i := range equal {
		equal[i] = 1
	}
	out, alone := 0.0, 0
	for range experiments {
		all := race(r, equal, repeats, noise(0.1), own)
		for _, s := range all {
			for k := range s {
				if s[k].At > ends {
					s[k] = Arrival{Seed: s[k].Seed, Fate: Censored, At: ends}
				}
			}
		}
		for _, v := range Judge(all) {
			switch v.Word {
			case Slower:
				out += 1 / float64(points) / experiments
			case Fastest:
				alone++
			}
		}
	}
	t.Logf("out %.2f %%, alone %.1f %%", out*100, float64(alone)*100/experiments)
	if out > 0.06 || alone > experiments/10 {
		t.Errorf("an equal point is excluded in %.1f %%, and one is called fastest in %.1f %%", 100*out,
			float64(alone)*100/experiments)
	}
}
