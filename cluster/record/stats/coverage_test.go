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
	tight := func(r *rand.Rand) float64 { return (10 + 0.1*r.NormFloat64()) * float64(1+r.IntN(2)) }
	tenth := func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return 4 * normal(r)
		}
		return normal(r)
	}
	bounded := func(r *rand.Rand) float64 { return 12 - 4*math.Pow(r.Float64(), 6) }
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
			world{"two tight heaps", tight, nil, every},
			world{"one in ten 4 times as long", tenth, nil, every},
			world{"bounded", bounded, nil, every},
			world{"one in ten 4 times as long, ends at 14", tenth, at(14), every},
			world{"exponential, ends at 20", func(r *rand.Rand) float64 { return 10 * r.ExpFloat64() }, at(20), every},
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

// tolerated is how far the share of 1,000 experiments may be below 95 %.
const tolerated = 0.93

// medianOf is the median of a world's times.
func medianOf(w *world, r *rand.Rand) float64 {
	truth := make([]float64, 20_001)
	for i := range truth {
		truth[i] = w.time(r)
	}
	slices.Sort(truth)
	return truth[len(truth)/2]
}

func TestIntervalsHoldTheTruthOrSayThatTheRepeatsAreTooFew(t *testing.T) {
	t.Parallel()
	for k, w := range worlds() {
		r := rand.New(rand.NewPCG(7, uint64(k)))
		truth := medianOf(&w, r)
		for _, n := range []int{5, 6, 10, 20} {
			held, given := 0, 0
			for range experiments {
				e := Estimated(w.sample(r, n))
				if e.Method == TooFew {
					continue
				}
				given++
				if truth >= e.Low && truth <= e.High {
					held++
				}
			}
			t.Logf("%s, evaluated every %g, %d repeats: %d of %d hold it", w.name, w.every, n, held, given)
			if float64(held) < tolerated*float64(given) {
				t.Errorf("%s, evaluated every %g, %d repeats: %d of %d intervals hold the truth",
					w.name, w.every, n, held, given)
			}
			if want := map[bool]int{true: experiments}[n >= LeastForInterval]; w.end == nil && given != want {
				t.Errorf("%s, %d repeats: %d intervals, want %d", w.name, n, given, want)
			}
		}
	}
}

// Where the record of ten repeats is such that all arrived before their bound.
func TestIntervalsOfRunsThatAllArrivedBeforeABoundHoldTheTruth(t *testing.T) {
	w := world{"lognormal 0.5", lognormal(0.5), func(*rand.Rand) float64 { return 16 }, 0.01}
	r := rand.New(rand.NewPCG(13, 1))
	truth, held, given := medianOf(&w, r), 0, 0
	for given < experiments {
		if e := Estimated(w.sample(r, 10)); e.Reached == 10 {
			given++
			if truth >= e.Low && truth <= e.High {
				held++
			}
		}
	}
	if held < tolerated*experiments {
		t.Errorf("%d of %d", held, given)
	}
}

func TestIntervalsOfPlainValuesHoldTheirMedian(t *testing.T) {
	for k, w := range worlds()[:7] {
		for _, n := range []int{6, 10, 20} {
			r := rand.New(rand.NewPCG(9, uint64(k)))
			truth, held := medianOf(&w, r), 0
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

func TestAmongEqualsHardlyAnyIsCalledFastestOrSlower(t *testing.T) {
	t.Parallel()
	for k, w := range worlds() {
		if w.every == 1 {
			continue
		}
		r := rand.New(rand.NewPCG(8, uint64(k)))
		for _, c := range []struct{ points, repeats int }{{2, 5}, {2, 20}, {5, 5}} {
			fastest, slower := 0, 0
			for range experiments {
				samples := make([]Sample, c.points)
				for i := range samples {
					samples[i] = w.sample(r, c.repeats)
				}
				for _, v := range Judge(samples) {
					switch v.Word {
					case Fastest:
						fastest++
					case Slower:
						slower++
					}
				}
			}
			if fastest > experiments/8 || slower > c.points*experiments*6/100 {
				t.Errorf("%s, evaluated every %g, %d points of %d repeats: %d of %d call one fastest, %d are slower",
					w.name, w.every, c.points, c.repeats, fastest, experiments, slower)
			}
		}
	}
}
