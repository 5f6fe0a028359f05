package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// remissions are the weeks of the 21 patients with 6-MP and of the 21 with a placebo until their
// leukaemia came back, negative where it had not yet (Freireich and others, Blood 1963; the example
// of most textbooks).
var (
	treated = []float64{6, 6, 6, -6, 7, -9, 10, -10, -11, 13, 16, -17, -19, -20, 22, 23, -25, -32, -32, -34, -35}
	placebo = []float64{1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23}
)

// sampleOf makes a sample of times, negative where they are censored.
func sampleOf(times []float64) Sample {
	s := make(Sample, len(times))
	for i, t := range times {
		s[i] = Arrival{Seed: uint64(i), At: math.Abs(t), Early: t, Late: t}
		if t < 0 {
			s[i].Fate = Censored
		}
	}
	return s
}

func TestKaplanMeierGivesTheTextbooksCurveOfTheLeukaemiaPatients(t *testing.T) {
	curve := kaplanMeier(sampleOf(treated).at(middle))
	want := []struct {
		at, left float64
		atRisk   int
	}{{6, 0.8571, 21}, {7, 0.8067, 17}, {10, 0.7529, 15}, {13, 0.6902, 12}, {16, 0.6275, 11}, {22, 0.5378, 7},
		{23, 0.4482,
			6}}
	if len(curve) != len(want) {
		t.Fatalf("%d steps, want %d", len(curve), len(want))
	}
	for i, w := range want {
		if s := curve[i]; s.at != w.at || math.Abs(s.left-w.left) > 5e-5 || s.atRisk != w.atRisk {
			t.Errorf("step %d: %+v, want %+v", i, s, w)
		}
	}
	// Of 21 times the 6th and the 16th are around the median in 97.3 %.
	if e := Estimated(sampleOf(treated)); e.Median != 23 || e.Reached != 9 || e.Censored != 12 || e.Horizon != 35 ||
		e.Method != OrderStatistics || e.Low != 9 || !math.IsInf(e.High, 1) {
		t.Errorf("treated: %+v", e)
	}
	if e := Estimated(sampleOf(placebo)); e.Median != 8 || math.Abs(e.Mean-182.0/21) > 1e-12 || e.Low != 4 ||
		e.High != 12 {
		t.Errorf("placebo: %+v", e)
	}
	// The restricted mean of the treated up to week 35, as R's survival prints it.
	if mean := restricted(curve, 35); math.Abs(mean-23.29) > 0.005 {
		t.Errorf("restricted mean %g", mean)
	}
}

func TestHeapsAreSeenWhereAGapIsMuchWiderThanOthers(t *testing.T) {
	for _, c := range []struct {
		values []float64
		lower  int
	}{
		{[]float64{1, 1.02, 1.05, 1.1, 4}, 4}, {[]float64{1, 1.05, 2, 2.1, 2.2, 2.3}, 2},
		{[]float64{1, 1.1, 1.2, 1.4, 1.5}, 0},
		{[]float64{1, 2, 4, 8, 16}, 0}, {[]float64{1, 1, 1, 4}, 0}, {[]float64{1, 1, 1, 1, 1}, 0}, {nil, 0},
		{[]float64{1, 1, 1, 1, 4}, 4}, {[]float64{1, 1.6, 1.7, 1.8, 9}, 4},
	} {
		if got := Heaps(c.values); got != c.lower {
			t.Errorf("%v: %d in the lower heap, want %d", c.values, got, c.lower)
		}
	}
}

// drawSample draws a sample of all fates, many at the same instants.
func drawSample(t *rapid.T, name string) Sample {
	n := rapid.IntRange(1, 12).Draw(t, name)
	s := make(Sample, n)
	for i := range s {
		at := float64(rapid.IntRange(1, 9).Draw(t, "at"))
		s[i] = Arrival{Seed: uint64(i), Fate: Fate(rapid.IntRange(0, 2).Draw(t, "fate")), At: at, Early: at - 0.5,
			Late: at + 0.25}
	}
	return s
}

// redistributed is Kaplan–Meier by another way: each run weighs 1/n, and what a censored one weighs
// goes in equal parts to those after it (Efron, Fifth Berkeley Symposium 1967).
func redistributed(s Sample, horizon float64) (mean float64) {
	s = slices.Clone(s)
	// at one instant arrivals come first; arrivals without an instant come last
	slices.SortStableFunc(s, func(a, b Arrival) int {
		key := func(a Arrival) float64 {
			switch a.Fate {
			case Never:
				return math.Inf(1)
			case Censored:
				return a.At + 0.01
			}
			return a.At
		}
		switch x, y := key(a), key(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	weight := make([]float64, len(s))
	for i := range weight {
		weight[i] = 1 / float64(len(s))
	}
	for i, a := range s {
		if after := len(s) - i - 1; a.Fate == Censored && after > 0 {
			for k := i + 1; k < len(s); k++ {
				weight[k] += weight[i] / float64(after)
			}
			weight[i] = 0
		}
	}
	for i, a := range s {
		if a.Fate == Arrived {
			mean += weight[i] * min(a.At, horizon)
		} else {
			mean += weight[i] * horizon
		}
	}
	return mean
}

func TestRestrictedMeanIsThatOfMassMovedToTheRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t, "runs")
		e := Estimated(s)
		if e.Reached == 0 {
			if !math.IsNaN(e.Mean) || e.Method != TooFew {
				t.Fatalf("nobody arrived: %+v", e)
			}
			return
		}
		if want := redistributed(s, e.Horizon); math.Abs(e.Mean-want) > 1e-9 {
			t.Fatalf("%g, want %g of %+v", e.Mean, want, s)
		}
		if e.Method != TooFew && !(e.Low <= e.High) || e.Median > e.High || e.Reached == e.N && e.Median < e.Low {
			t.Fatalf("%+v", e)
		}
	})
}

func TestWhereEverybodyArrivesTheIntervalIsThatOfTheValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		values := make([]float64, 3+rng.IntN(30))
		for i := range values {
			values[i] = 1 + rng.Float64()
		}
		e, m := Estimated(sampleOf(values)), MeanOf(values)
		if e.Method != m.Method || m.Method != TooFew && (e.Low != m.Low || e.High != m.High) ||
			math.Abs(e.Mean-m.Mean) > 1e-12 || math.Abs(e.Median-m.Median) > 1e-12 {
			t.Fatalf("%+v, want %+v", e, m)
		}
	}
}

func TestRanksAreThoseOfTheTables(t *testing.T) { // as in Conover, Practical Nonparametric Statistics
	for n, want := range map[int]int{0: 0, 3: 0, 5: 0, 6: 1, 8: 1, 9: 2, 10: 2, 20: 6, 50: 18, 10_000: 4902} {
		if r := Rank(n); r != want {
			t.Errorf("%d values: rank %d, want %d", n, r, want)
		}
	}
}

func TestFailedRunsCountAsNeverThere(t *testing.T) {
	s := sampleOf([]float64{1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2})
	for i := range 2 {
		s = append(s, Arrival{Seed: uint64(100 + i), Fate: Never})
	}
	e := Estimated(s)
	if want := (4.0 + 16 + 4) / 14; e.N != 14 || e.Reached != 12 || e.Censored != 0 || e.Median != 2 ||
		math.Abs(e.Mean-want) > 1e-12 || e.Horizon != 2 {
		t.Errorf("%+v, want a mean of %g up to 2", e, want)
	}
}

// F3 of an experiment that was evaluated once an epoch: all arrive in the first one, where the
// truth is 0.44.
func TestTheTimeBetweenEvaluationsIsPartOfTheInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	coarse, other := make(Sample, 20), make(Sample, 20)
	for i := range coarse {
		coarse[i] = Arrival{Seed: uint64(i), At: 0.985 + 0.01*rng.Float64(), Early: 0, Late: 1}
		other[i] = coarse[i]
		other[i].At -= 0.3
	}
	if e := Estimated(coarse); e.Low != 0 || e.High != 1 {
		t.Errorf("%+v does not hold 0.44", e)
	}
	for _, v := range Judge([]Sample{coarse, other}) {
		if v.Word != Undecided || !v.Finer || v.Repeats() != 0 {
			t.Errorf("0.69 and 0.99 between evaluations at 0 and 1: %+v", v)
		}
	}
}

// seeds has the times of two points whose difference is much smaller than that between seeds: in
// the mean 0.15, with t = 4.6 in pairs and 0.7 without.
func seeds() (a, b Sample) {
	rng := rand.New(rand.NewPCG(2, 3))
	for i := range 20 {
		base := 10 + 0.68*rng.NormFloat64()
		one, two := base, base+0.15+0.146*rng.NormFloat64()
		a = append(a, Arrival{Seed: uint64(i), At: one, Early: one - 0.001, Late: one + 0.001})
		b = append(b, Arrival{Seed: uint64(i), At: two, Early: two - 0.001, Late: two + 0.001})
	}
	return a, b
}

func TestRunsOfOneSeedAreComparedInPairs(t *testing.T) {
	a, b := seeds()
	all := Judge([]Sample{b, a})
	if all[1].Word != Fastest || all[0].Word != Slower || all[0].Pairs != 20 || all[0].P > 0.001 {
		t.Errorf("paired: %+v", all)
	}
	for i := range b { // the same runs of other seeds
		b[i].Seed = uint64((i + 7) % 20)
	}
	for _, v := range Judge([]Sample{b, a}) {
		if v.Word != Undecided || v.Repeats() < 100 {
			t.Errorf("paired with others: %+v", v)
		}
	}
	for i := range b {
		b[i].Seed += 18 // two in common
	}
	for _, v := range Judge([]Sample{b, a}) {
		if v.Word != Unjudged || v.Repeats() != LeastRepeats {
			t.Errorf("two pairs: %+v", v)
		}
	}
}

func TestAPointNoneOfWhoseRunsArrivedIsNotAmongTheFastest(t *testing.T) {
	fast, slow, short := make(Sample, 20), make(Sample, 20), make(Sample, 20)
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range fast {
		seed, x, y := uint64(i), 40+rng.NormFloat64(), 60+rng.NormFloat64()
		fast[i] = Arrival{Seed: seed, At: x, Early: x, Late: x}
		slow[i] = Arrival{Seed: seed, At: y, Early: y, Late: y}
		short[i] = Arrival{Seed: seed, Fate: Censored, At: 10}
	}
	all := Judge([]Sample{short, slow, fast})
	if all[0].Word != Slower || all[1].Word != Slower || all[2].Word != Fastest {
		t.Errorf("ended at 10: %+v", all)
	}
	for i := range short {
		short[i].At = 50
	}
	all = Judge([]Sample{short, slow, fast})
	if all[0].Word != Slower || all[1].Word != Slower || all[2].Word != Fastest {
		t.Errorf("ended at 50: %+v", all)
	}
	for i := range short {
		short[i].Fate = Never
	}
	if all = Judge([]Sample{short, slow, fast}); all[0].Word != Slower || all[2].Word != Fastest {
		t.Errorf("failed: %+v", all)
	}
}

// None of the second point's runs arrived, each of the first did shortly before they ended: their
// number says what their times do not.
func TestPointsOfWhichNoRunArrivedAreOut(t *testing.T) {
	for _, c := range []struct {
		points, repeats int
		fate            Fate
		late            bool // the runs that arrived did so shortly before the end
		word            Word
		repeatsNeeded   int
	}{
		{2, 3, Censored, true, Slower, 0}, {2, 3, Never, true, Slower, 0}, {9, 3, Censored, true, Undecided, 4},
		{9, 4, Censored, true, Slower, 0}, {9, 5, Never, true, Slower, 0}, {9, 3, Censored, false, Slower, 0},
		{2, 2, Censored, false, Unjudged, 3},
	} {
		points := make([]Sample, c.points)
		for i := range points {
			for k := range c.repeats {
				a := Arrival{Seed: uint64(k), Fate: c.fate, At: 60}
				if at := []float64{1, 50}[map[bool]int{true: 1}[c.late]] * (1 + 0.05*float64(k)); i == 0 {
					a = Arrival{Seed: uint64(k), At: at, Early: at - 0.01, Late: at + 0.01}
				}
				points[i] = append(points[i], a)
			}
		}
		all := Judge(points)
		if v := all[1]; v.Word != c.word || v.Repeats() != c.repeatsNeeded {
			t.Errorf("%+v: %+v", c, v)
		}
		want := c.word
		if want == Slower {
			want = Fastest
		}
		if all[0].Word != want {
			t.Errorf("%+v: the point that arrived is %+v", c, all[0])
		}
	}
}

// Half of the runs of one point arrive at once and the others never, those of the other arrive
// always, but late.
func TestAPointThatWinsInFewPairsPutsNoneOut(t *testing.T) {
	var reliable, gamble Sample
	for i := range 20 {
		at := 50 + float64(i)/10
		reliable = append(reliable, Arrival{Seed: uint64(i), At: at, Early: at, Late: at})
		gamble = append(gamble, Arrival{Seed: uint64(i), At: 0.001, Early: 0.001, Late: 0.001})
		if i%2 == 0 {
			gamble[i] = Arrival{Seed: uint64(i), Fate: Censored, At: 60}
		}
	}
	for _, v := range Judge([]Sample{reliable, gamble}) {
		if v.Word != Undecided {
			t.Errorf("%+v", v)
		}
	}
}

// Runs that a clock or a grid of evaluations makes the same have no spread, and still no certainty.
func TestTimesInTheSameCellsAreNoCertainty(t *testing.T) {
	at := func(cell float64) (s Sample) {
		for seed := range uint64(3) {
			s = append(s, Arrival{Seed: seed, At: cell - 0.5, Early: cell - 1, Late: cell})
		}
		return s
	}
	for _, c := range []struct {
		a, b float64
		word Word
	}{{2, 3, Undecided}, {12, 14, Slower}, {2, 31, Slower}} {
		if v := Judge([]Sample{at(c.a), at(c.b)})[1]; v.Word != c.word || v.P < 1e-4 {
			t.Errorf("cells %g and %g: %+v", c.a, c.b, v)
		}
	}
}

func TestNothingIsJudgedWhereThereIsNothingToCompare(t *testing.T) {
	a, _ := seeds()
	ended := sampleOf([]float64{-1, -2, -3})
	for name, points := range map[string][]Sample{"none": nil, "one": {a}, "nobody arrived": {ended, ended}} {
		for _, v := range Judge(points) {
			if v.Word != "" || v.Repeats() != 0 {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
	for _, v := range Judge([]Sample{a[:1], a[1:2]}) {
		if v.Word != Unjudged {
			t.Errorf("of one run each: %+v", v)
		}
	}
}

func TestJudgingSurvivesAnySamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []Sample
		for range rapid.IntRange(0, 6).Draw(t, "points") {
			points = append(points, drawSample(t, "runs"))
		}
		fastest := 0
		for i, v := range Judge(points) {
			if v.Word == Fastest {
				fastest++
			}
			if v.Word == Slower && len(points[i]) < LeastRepeats || v.Repeats() < 0 || v.Repeats() > MostRepeats {
				t.Fatalf("%+v of %+v", v, points[i])
			}
		}
		if fastest > 1 {
			t.Fatalf("%d fastest", fastest)
		}
	})
}

func TestSoManyRepeatsDecideInFourOfFiveExperiments(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, c := range []struct{ effect, level float64 }{{2, 0.04}, {1, 0.04}, {0.6, 0.04 / 10}, {0.25, 0.04}} {
		n := repeats(c.effect, c.level, 2)
		found := map[int]float64{}
		for _, pairs := range []int{n, n * 4 / 5} {
			critical := student(pairs - 1).Quantile(1 - c.level)
			values := make([]float64, pairs)
			for range 4000 {
				for i := range values {
					values[i] = c.effect + rng.NormFloat64()
				}
				if mean, std := stat.MeanStdDev(values, nil); mean/stat.StdErr(std, float64(pairs)) > critical {
					found[pairs] += 1.0 / 4000
				}
			}
		}
		if found[n] < 0.78 || found[n*4/5] > 0.8 {
			t.Errorf("effect %g at level %g: %d repeats, which find it in %v", c.effect, c.level, n, found)
		}
	}
	if n := repeats(0.001, 0.04, 5); n != 0 {
		t.Errorf("%d repeats for a thousandth of a deviation", n)
	}
	if n := repeats(5, 0.04, 30); n != 31 {
		t.Errorf("%d repeats where 30 did not decide, want one more", n)
	}
}
