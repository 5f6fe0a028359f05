package stats

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Word is the verdict on a point.
type Word string

// The verdicts. They are about points that share a target.
const (
	// Fastest: every other point is slower.
	Fastest Word = "fastest"
	// Undecided: the point that looks fastest, or one that may be as fast.
	Undecided Word = "not distinguishable from the fastest"
	// Slower: than the point that looks fastest.
	Slower Word = "slower"
	// Unjudged: there are too few repeats to compare.
	Unjudged Word = TooFew
)

// Power is the chance with which Verdict.Repeats would decide.
const Power = 0.8

// MostRepeats is the largest number of repeats that is asked for.
const MostRepeats = 10_000

// Verdict says how a point compares with the one that looks fastest.
type Verdict struct {
	// Word is empty where there is nothing to compare: a single point, or no run that arrived.
	Word Word
	// Pairs is how many seeds this point has in common with the one that looks fastest.
	Pairs int
	// P is the two-sided p-value of that comparison before the correction for many; NaN for the one
	// that looks fastest.
	P float64
	// Finer says that the difference is smaller than the time between evaluations: more repeats
	// decide nothing.
	Finer bool
	// Longer says that runs of one of the two points ended without arriving before others of the
	// two arrived: to watch them longer may decide with fewer repeats, or where no number of
	// repeats does.
	Longer bool

	open []func() int // repeats of the comparisons that decided nothing, which are found once
}

// Repeats is how many repeats would decide with 80 % power if the difference is as large as it
// looks; 0 where the verdict is clear, or no number up to MostRepeats does. To find it takes longer
// than to judge.
func (v *Verdict) Repeats() (most int) {
	for _, find := range v.open {
		most = max(most, find())
	}
	return most
}

// Judge compares points. Runs of the same seed are pairs, and Student's t test of their differences
// has to hold in the worst case of what lies between evaluations. Runs that did not arrive count up
// to the shortest time at which one of the two points' runs was no longer watched. The tests are
// corrected for all pairs of points by Holm's method (Scandinavian Journal of Statistics 1979), so
// that the chance of any wrong "fastest" or "slower" is Error.
func Judge(points []Sample) []Verdict {
	verdicts := make([]Verdict, len(points))
	for i := range verdicts {
		verdicts[i].P = math.NaN()
	}
	arrived := slices.ContainsFunc(points, func(s Sample) bool { return s.count(Arrived) > 0 })
	if len(points) < 2 || !arrived {
		return verdicts
	}
	best := candidate(points)
	all := against(points, best)
	for range maxCandidates { // a point that is faster for certain takes the candidate's place
		faster := slices.IndexFunc(all, func(d difference) bool { return d.certain && d.sign < 0 })
		if faster < 0 {
			break
		}
		best = all[faster].other
		all = against(points, best)
	}
	others := make([]Verdict, len(all))
	for i, d := range all {
		others[i] = d.verdict()
		verdicts[d.other] = others[i]
	}
	verdicts[best] = champion(len(points[best]), others)
	return verdicts
}

// maxCandidates is how often a point that looked fastest makes room for one that is faster: seldom
// once, as it was the one of the smallest mean.
const maxCandidates = 8

// champion is the verdict on the point that looks fastest, of those on all others.
func champion(n int, others []Verdict) Verdict {
	v := Verdict{Word: Fastest, Pairs: n, P: math.NaN()}
	short := true
	for _, other := range others {
		short = short && other.Word == Unjudged
		if other.Word != Slower {
			v.Word = Undecided
			v.open, v.Finer = append(v.open, other.open...), v.Finer || other.Finer
		}
	}
	if short {
		v.Word = Unjudged
	}
	return v
}

// candidate is the point that looks fastest: by the mean restricted to what is known of all, if a
// run is censored, then by how many arrived, then by the mean alone. Points of enough repeats come
// before others.
func candidate(points []Sample) (best int) {
	horizon := math.Inf(1)
	for _, s := range points {
		if s.count(Censored) > 0 {
			horizon = min(horizon, s.watched())
		}
	}
	type rank struct {
		few, within, missed, mean float64 // the less, the faster
	}
	ranks := make([]rank, len(points))
	for i, s := range points {
		r, curve := &ranks[i], kaplanMeier(s.at(middle))
		if len(s) < LeastRepeats {
			r.few = 1
		}
		if !math.IsInf(horizon, 1) {
			r.within, _ = restricted(curve, horizon)
		}
		r.missed = 1 - float64(s.count(Arrived))/float64(len(s))
		r.mean, _ = restricted(curve, s.watched())
		b := &ranks[best]
		if cmp.Or(cmp.Compare(r.few, b.few), cmp.Compare(r.within, b.within),
			cmp.Compare(r.missed, b.missed), cmp.Compare(r.mean, b.mean)) < 0 {
			best = i
		}
	}
	return best
}

// difference says how another point differs from the candidate.
type difference struct {
	other, pairs int
	// sign is 1 where the other is slower in the mean and -1 where it is faster.
	sign float64
	// mean and std are of the paired differences in the worst case, which are positive where even
	// in it the sign holds.
	mean, std float64
	// plain is the mean without the worst case.
	plain float64
	p     float64
	// level is the error that Holm's method leaves this comparison.
	level   float64
	certain bool
	// cut says that some arrivals are later than the horizon, which both points were watched up to.
	cut bool
}

// against compares all other points with one.
func against(points []Sample, best int) []difference {
	var all []difference
	for i, s := range points {
		if i != best {
			d := paired(points[best], s)
			d.other = i
			all = append(all, d)
		}
	}
	order := make([]*difference, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *difference) int { return cmp.Compare(a.p, b.p) })
	// The comparisons that are not with the candidate are not made: counted as if they all came
	// last, they make Holm's thresholds lower, never higher.
	pairs, open := len(points)*(len(points)-1)/2, true
	for i, d := range order {
		d.level = Error / float64(pairs-i)
		open = open && d.p <= d.level
		d.certain = open
	}
	return all
}

// paired compares two points by the seeds that they have in common.
func paired(best, other Sample) difference {
	horizon, latest := common(best, other)
	seeds := map[uint64]Arrival{}
	for _, a := range best {
		seeds[a.Seed] = a
	}
	var least, most, plain []float64
	for _, b := range other {
		a, ok := seeds[b.Seed]
		if !ok {
			continue
		}
		least = append(least, within(b, early, horizon)-within(a, late, horizon))
		most = append(most, within(b, late, horizon)-within(a, early, horizon))
		plain = append(plain, within(b, middle, horizon)-within(a, middle, horizon))
	}
	d := difference{pairs: len(plain), p: 1, sign: 1, cut: horizon < latest}
	if d.pairs < 2 {
		return d
	}
	if d.plain = stat.Mean(plain, nil); d.plain < 0 {
		d.sign, d.plain = -1, -d.plain
		least = most
	}
	d.mean, d.std = d.sign*stat.Mean(least, nil), stat.StdDev(least, nil)
	if d.pairs < LeastRepeats || d.mean <= 0 {
		return d
	}
	t := d.mean / stat.StdErr(d.std, float64(d.pairs)) // infinite where all differences are the same
	d.p = 2 * student(d.pairs-1).Survival(t)
	return d
}

// common is up to when it is known of every run of two points whether it has arrived, and the
// latest arrival.
func common(a, b Sample) (known, latest float64) {
	known = math.Inf(1)
	for _, s := range []Sample{a, b} {
		for _, r := range s {
			switch r.Fate {
			case Censored:
				known = min(known, r.At)
			case Arrived:
				latest = max(latest, r.Late)
			case Never:
			}
		}
	}
	if math.IsInf(known, 1) {
		known = latest
	}
	return known, latest
}

// within reads an arrival up to a horizon.
func within(a Arrival, read func(Arrival) float64, horizon float64) float64 {
	if a.Fate != Arrived {
		return horizon
	}
	return min(read(a), horizon)
}

// verdict is that on the other point.
func (d *difference) verdict() Verdict {
	v := Verdict{Pairs: d.pairs, P: d.p, open: []func() int{sync.OnceValue(d.repeats)}}
	switch {
	case d.pairs < LeastRepeats:
		v.Word = Unjudged
	case d.certain && d.sign > 0:
		v.Word, v.open = Slower, nil
	default:
		v.Word, v.Finer, v.Longer = Undecided, d.plain > 0 && d.mean <= 0, d.cut
	}
	return v
}

func (d *difference) repeats() int {
	switch {
	case d.pairs < LeastRepeats:
		return LeastRepeats
	case d.mean <= 0:
		return 0
	}
	return repeats(d.mean/d.std, d.level, d.pairs)
}

// exactPower is up to how many pairs the power of a t test is taken from the noncentral t.
const exactPower = 100

// repeats is how many pairs a t test at this two-sided level needs to find a difference, effect
// standard deviations large, with 80 % power: at least one more than there are; 0 if more than
// MostRepeats.
func repeats(effect, level float64, present int) int {
	low, high := max(present, LeastRepeats-1), exactPower // too few, enough
	if low >= high || power(effect, level, high) < Power {
		// Guenther (The American Statistician 1981).
		a, b := distuv.UnitNormal.Quantile(1-level/2), distuv.UnitNormal.Quantile(Power)
		n := math.Ceil((a+b)*(a+b)/(effect*effect) + a*a/2)
		if n > MostRepeats {
			return 0
		}
		return max(int(n), low+1)
	}
	for high-low > 1 {
		if n := (low + high) / 2; power(effect, level, n) < Power {
			low = n
		} else {
			high = n
		}
	}
	return high
}

// power is the chance that a two-sided t test of n pairs finds a difference, in its direction, that
// is effect standard deviations large.
func power(effect, level float64, n int) float64 {
	critical, shift := student(n-1).Quantile(1-level/2), effect*math.Sqrt(float64(n))
	if shift > 30 && shift > 2*critical {
		return 1 // where the series of the noncentral t ends
	}
	return 1 - distuv.NoncentralT{Nu: float64(n - 1), Mu: shift}.CDF(critical)
}
