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

// In each experiment, the first point is the best: no other point is faster or arrives in more runs.
// The times of point i are slower[i] times the first point's, and a share of its runs never arrives.
func TestTheBestIsHardlyEverExcludedWhereRunsNeverArrive(t *testing.T) {
	t.Parallel()
	slower := []float64{1, 1, 1.2, 1.65, 2.5}
	for _, repeats := range []int{3, 5, 10} {
		for _, c := range []struct {
			best   float64   // share of the best point's runs that never arrive
			others []float64 // shares of the other points' runs that never arrive
		}{
			{0, []float64{0.1, 0.3, 0.5, 0.1}}, {0, []float64{0, 0.5, 0, 0.3}}, {0.1, []float64{0.1, 0.1, 0.1, 0.1}},
			{0.3, []float64{0.3, 0.3, 0.5, 0.4}}, {0.5, []float64{0.5, 0.5, 0.5, 0.5}},
			{0.1, []float64{0.5}}, {0.3, []float64{0.3}}, {0.5, []float64{0.5}}, {0.8, []float64{0.8, 0.9, 0.8, 0.8}},
		} {
			for name, own := range shapes() {
				testMissing(t, fmt.Sprintf("%s/%d repeats/%g and %g", name, repeats, c.best, c.others), own, repeats,
					slower[:1+len(c.others)], append([]float64{c.best}, c.others...))
			}
		}
	}
}

func testMissing(t *testing.T, name string, own func(*rand.Rand) float64, repeats int, factors, missing []float64) {
	r := rand.New(rand.NewPCG(13, uint64(repeats)))
	shares := told(Slower, func() []Sample {
		all := race(r, factors, repeats, noise(0.1), own)
		for i, s := range all {
			drop(r, s, missing[i], 200)
		}
		return all
	})
	if shares != nil && shares[0] > 0.06 {
		t.Errorf("%s: the best is excluded in %.1f %%", name, 100*shares[0])
	}
}

// drop replaces a share of the arrivals by runs that end without one.
func drop(r *rand.Rand, s Sample, share, end float64) {
	for k := range s {
		if r.Float64() < share {
			s[k] = Arrival{Seed: s[k].Seed, Fate: Censored, At: end}
		}
	}
}

// A point never puts out a point that arrives in more runs, even if its own arrivals are earlier. So
// no point arrives in more runs than the fastest.
func TestNoPointPutsOutOneThatArrivesMoreOften(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(14, 1))
	for range 2 * experiments {
		factors, missing := make([]float64, 2+r.IntN(5)), 0.0
		for i := range factors {
			factors[i] = math.Exp(2 * r.NormFloat64())
		}
		all := race(r, factors, 3+r.IntN(12), noise(0.1), noise(0.1))
		for i, s := range all {
			if missing = 0; i > 0 {
				missing = r.Float64()
			}
			drop(r, s, missing, 30*(1+r.Float64()))
		}
		verdicts := Judge(all)
		for i, v := range verdicts {
			for k, s := range all {
				if v.Word == Fastest && s.count(Arrived) > all[i].count(Arrived) {
					t.Fatalf("the fastest arrives in %d runs, another in %d", all[i].count(Arrived), s.count(Arrived))
				}
				if always := len(s) == s.count(Arrived); always && verdicts[k].Word == Slower &&
					!matched(all, verdicts, k) {
					t.Fatalf("a point that always arrives is put out, and none that does is left: %+v", verdicts)
				}
			}
		}
	}
}

// matched reports whether a point of the set of best arrives in no fewer runs than point k.
func matched(all []Sample, verdicts []Verdict, k int) bool {
	for i, s := range all {
		if verdicts[i].Word != Slower && s.count(Arrived) >= all[k].count(Arrived) {
			return true
		}
	}
	return false
}

// A point that arrives in one of ten runs is slower than a point that always arrives, even if these
// arrivals are close to the end.
func TestPointsThatHardlyArriveAreOut(t *testing.T) {
	sample := func(arrived int, at float64) (s Sample) {
		for seed := range uint64(10) {
			a := Arrival{Seed: seed, Fate: Censored, At: 60}
			if int(seed) < arrived {
				t := at * (1 + 0.01*float64(seed%4))
				a = Arrival{Seed: seed, At: t, Early: t, Late: t}
			}
			s = append(s, a)
		}
		return s
	}
	for _, c := range []struct {
		name   string
		points []Sample
		want   []Word
	}{
		{"fast in 6 of 10", []Sample{sample(6, 2.1), sample(10, 7.5)}, []Word{Undecided, Undecided}},
		{"one that always arrives", []Sample{sample(8, 3), sample(5, 2), sample(10, 40)},
			[]Word{Undecided, Undecided, Undecided}},
		{"1 of 10", []Sample{sample(1, 2), sample(10, 50), sample(10, 56)}, []Word{Slower, Fastest, Slower}},
		{"1 of 10 beside one of 8", []Sample{sample(1, 2), sample(8, 10), sample(10, 50)},
			[]Word{Slower, Undecided, Undecided}},
		{"1 of 10, ended early", []Sample{early(sample(1, 2), 3), sample(10, 50), sample(10, 56)},
			[]Word{Slower, Fastest, Slower}},
		{"9 of 10 each", []Sample{sample(9, 2), sample(9, 20)}, []Word{Fastest, Slower}},
		{"5 and 0 of 10", []Sample{sample(5, 30), sample(0, 0)}, []Word{Fastest, Slower}},
	} {
		for i, v := range Judge(c.points) {
			if v.Word != c.want[i] {
				t.Errorf("%s: point %d is %q, want %q", c.name, i, v.Word, c.want[i])
			}
		}
	}
}

// early changes when the runs end that do not arrive.
func early(s Sample, end float64) Sample {
	for i := range s {
		if s[i].Fate == Censored {
			s[i].At = end
		}
	}
	return s
}

func TestTheHorizonIsNamedWhereAVerdictRestsOnIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		points []Sample
		want   float64
	}{
		{"all arrive", []Sample{sampleOf([]float64{1, 1.1, 1.2}), sampleOf([]float64{5, 5.1, 5.2})}, 0},
		{"the winner arrives before any other ends",
			[]Sample{sampleOf([]float64{1, 1.1, 1.2}), sampleOf([]float64{-9, -9, -9})}, 0},
		{"a leader misses", []Sample{sampleOf([]float64{1, 1.1, -9}), sampleOf([]float64{5, 5.1, 5.2})}, 9},
		{"another ended before the winner arrived",
			[]Sample{sampleOf([]float64{1, 1.1, 1.2}), sampleOf([]float64{-1.15, -9, -9})}, 1.15},
	} {
		if got := Horizon(c.points, Judge(c.points)); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}
