package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// world makes up experiments: times to the target of a point, how long runs are watched, and how
// often they are evaluated.
type world struct {
	name string
	time func(*rand.Rand) float64
	// end is how long a run is watched; nil for ever.
	end func(*rand.Rand) float64
	// every is the time between evaluations.
	every float64
}

func lognormal(sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return 10 * math.Exp(sigma*r.NormFloat64()) }
}

func normal(r *rand.Rand) float64 { return max(10+2*r.NormFloat64(), 0.1) }

// worlds are even, skewed and in two heaps; with and without censoring; evaluated often and hardly
// ever.
func worlds() []world {
	heaps := func(r *rand.Rand) float64 { return normal(r) + float64(r.IntN(2))*6 }
	at := func(t float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return t } }
	between := func(low, high float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return low + (high-low)*r.Float64() }
	}
	var all []world
	for _, every := range []float64{0.01, 1, 15} {
		all = append(all,
			world{"normal", normal, nil, every},
			world{"lognormal 0.3", lognormal(0.3), nil, every},
			world{"lognormal 0.5", lognormal(0.5), nil, every},
			world{"two heaps", heaps, nil, every},
			world{"normal, ends at 11", normal, at(11), every},
			world{"lognormal 0.5, ends at 12", lognormal(0.5), at(12), every},
			world{"two heaps, ends at 14", heaps, at(14), every},
			world{"normal, ends from 8 to 16", normal, between(8, 16), every},
			world{"lognormal 0.5, ends from 8 to 20", lognormal(0.5), between(8, 20), every},
			world{"lognormal 0.5, ends from 15 to 40", lognormal(0.5), between(15, 40), every},
		)
	}
	return all
}

// arrival is a run of a world as a record has it: known up to the evaluations, and somewhere in
// between in the middle.
func (w *world) arrival(r *rand.Rand, seed uint64) Arrival {
	t := w.time(r)
	cells := math.Floor(t / w.every)
	a := Arrival{Seed: seed, Early: cells * w.every, Late: (cells + 1) * w.every}
	a.At = a.Early + r.Float64()*w.every
	if w.end == nil {
		return a
	}
	if end := w.end(r); a.Late > end {
		return Arrival{Seed: seed, Fate: Censored, At: math.Floor(end/w.every) * w.every}
	}
	return a
}

func (w *world) sample(r *rand.Rand, n int) Sample {
	s := make(Sample, n)
	for i := range s {
		s[i] = w.arrival(r, uint64(i))
	}
	return s
}

const experiments = 1000

// restrictedMeans returns the mean of values of which those beyond a horizon count as if they were
// there.
func restrictedMeans(values []float64) func(horizon float64) float64 {
	slices.Sort(values)
	sums := make([]float64, len(values)+1)
	for i, v := range values {
		sums[i+1] = sums[i] + v
	}
	n := float64(len(values))
	return func(horizon float64) float64 {
		i, _ := slices.BinarySearch(values, horizon)
		if i == len(values) {
			return sums[i] / n
		}
		return (sums[i] + horizon*(n-float64(i))) / n
	}
}

// tolerated is how far the share of 1,000 experiments may be below 95 %.
const tolerated = 0.93

func TestIntervalsHoldTheTruthOrSayThatTheRepeatsAreTooFew(t *testing.T) {
	t.Parallel()
	for k, w := range worlds() {
		r := rand.New(rand.NewPCG(7, uint64(k)))
		truth := make([]float64, 20_000)
		for i := range truth {
			truth[i] = w.time(r)
		}
		mean := restrictedMeans(truth)
		for _, n := range []int{3, 5, 20} {
			held, given := 0, 0
			for range experiments {
				e := Estimated(w.sample(r, n))
				if e.Method == TooFew {
					continue
				}
				given++
				horizon := math.Inf(1)
				if w.end != nil {
					horizon = e.Horizon
				}
				if m := mean(horizon); m >= e.Low && m <= e.High {
					held++
				}
			}
			t.Logf("%s, evaluated every %g, %d repeats: %d of %d hold it", w.name, w.every, n, held, given)
			if given > 0 && float64(held) < tolerated*float64(given) {
				t.Errorf("%s, evaluated every %g, %d repeats: %d of %d intervals hold the truth",
					w.name, w.every, n, held, given)
			}
			if w.end == nil && given < experiments {
				t.Errorf("%s, %d repeats: too few in %d experiments without censoring", w.name, n, experiments-given)
			}
		}
	}
}

func TestIntervalsOfPlainMeansHoldThem(t *testing.T) {
	for k, w := range worlds()[:4] {
		for _, n := range []int{5, 20} {
			r := rand.New(rand.NewPCG(9, uint64(k)))
			truth, held := 0.0, 0
			for range 100_000 {
				truth += w.time(r) / 100_000
			}
			for range experiments {
				values := make([]float64, n)
				for i := range values {
					values[i] = w.time(r)
				}
				if m := MeanOf(values); m.Low <= truth && truth <= m.High {
					held++
				}
			}
			if held < tolerated*experiments {
				t.Errorf("%s, %d repeats: %d of %d", w.name, n, held, experiments)
			}
		}
	}
}

func TestAmongEqualsHardlyAnybodyIsCalledFastestOrSlower(t *testing.T) {
	t.Parallel()
	for k, w := range worlds()[:20] {
		r := rand.New(rand.NewPCG(8, uint64(k)))
		for _, c := range []struct{ points, repeats int }{{2, 5}, {2, 20}, {5, 5}} {
			fastest, slower := 0, 0
			for range experiments {
				samples := make([]Sample, c.points)
				for i := range samples {
					samples[i] = w.sample(r, c.repeats)
				}
				words := map[Word]int{}
				for _, v := range Judge(samples) {
					words[v.Word]++
				}
				fastest += words[Fastest]
				slower += min(words[Slower], 1)
			}
			if fastest > experiments/20 || slower > experiments/20 {
				t.Errorf("%s, evaluated every %g, %d points of %d repeats: %d of %d call one fastest, %d one slower",
					w.name,
					w.every,
					c.points, c.repeats, fastest, experiments, slower)
			}
		}
	}
}
