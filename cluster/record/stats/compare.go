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
	// Undecided: one of several points none of which is shown to be slower.
	Undecided Word = "not distinguishable from the fastest"
	// Slower: another point is faster.
	Slower Word = "slower"
	// Unjudged: there are too few repeats to compare.
	Unjudged Word = TooFew
)

// Power is the chance with which Verdict.Repeats would decide.
const Power = 0.8

// MostRepeats is the largest number of repeats that is asked for.
const MostRepeats = 10_000

// Verdict says whether a point belongs to the set of best.
type Verdict struct {
	// Word is empty where there is nothing to compare: a single point, or no run that arrived.
	Word Word
	// Pairs is how many seeds this point has in common with the leader: the point of the set of
	// best whose runs take the least time in the mean.
	Pairs int
	// Leader says that the point is the leader.
	Leader bool
	// P is the one-sided p-value of the leader being faster than this point, before the correction
	// for many points; NaN for the leader.
	P float64
	// Finer says that the difference is smaller than the time between evaluations: more repeats
	// decide nothing.
	Finer bool
	// Longer says that runs of this point or of the leader ended without an arrival. A later end may
	// then decide with fewer repeats, or where no number of repeats does.
	Longer bool

	open []func() int // repeats of the comparisons that decided nothing, which are found once
}

// Repeats is how many repeats would separate the point from the leader with 80 % power if the
// difference is as large as it looks, and for the leader all points from it; 0 where the verdict is
// clear, or no number up to MostRepeats would do. To find it takes longer than to judge.
func (v *Verdict) Repeats() (most int) {
	for _, find := range v.open {
		most = max(most, find())
	}
	return most
}

// Judge finds the set of best (Gupta 1956; Hsu, Annals of Statistics 1984). A point is slower, and
// out of the set, if any other point of the set is faster in a one-sided test at the level Error ÷
// (points in the set − 1). So the chance that the best point is called slower by mistake is at most
// 5 %, whichever point it is. A point that is left alone is the fastest.
//
// The test is Student's t of the paired differences of log times, a pair for each common seed, in
// the worst case of the arrivals between two evaluations. A run that did not arrive takes at least the
// time that it ran. In the test whether its point is slower, this lower bound counts. In the test
// whether its point is faster, the pair counts as lost by the largest difference of any pair, or as
// equal if the other run did not arrive either and did not end earlier. The faster point must also
// win more than half of the pairs, so that a few extreme runs decide nothing. A point never puts
// out a point that arrives in a greater share of its runs.
func Judge(points []Sample) []Verdict {
	verdicts := make([]Verdict, len(points))
	for i := range verdicts {
		verdicts[i].P = math.NaN()
	}
	arrived := slices.ContainsFunc(points, func(s Sample) bool { return s.count(Arrived) > 0 })
	if len(points) < 2 || !arrived {
		return verdicts
	}
	f := newField(points)
	slower := f.slower()
	leader := f.order[slices.IndexFunc(f.order, func(i int) bool { return !slower[i] })]
	first := Verdict{Word: Fastest, Leader: true, Pairs: len(points[leader]), P: math.NaN()}
	short := true
	for i := range points {
		if i == leader {
			continue
		}
		v := f.verdict(leader, i, slower[i])
		verdicts[i] = v
		short = short && v.Word == Unjudged
		if v.Word != Slower {
			first.Word = Undecided
			first.open, first.Finer = append(first.open, v.open...), first.Finer || v.Finer
		}
	}
	if short {
		first.Word = Unjudged
	}
	verdicts[leader] = first
	return verdicts
}

// Horizon returns the earliest end of a run that did not arrive, if the verdicts depend on it: a
// point of the set of best has a run that did not arrive, or one that arrived after that end. It
// returns 0 otherwise.
func Horizon(points []Sample, verdicts []Verdict) float64 {
	ended, missed, last := math.Inf(1), false, 0.0
	for i, s := range points {
		best := verdicts[i].Word == Fastest || verdicts[i].Word == Undecided
		for _, a := range s {
			switch {
			case a.Fate == Censored:
				ended, missed = min(ended, a.At), missed || best
			case a.Fate == Arrived && best:
				last = max(last, a.At)
			}
		}
	}
	if math.IsInf(ended, 1) || !missed && last <= ended {
		return 0
	}
	return ended
}

// field has all points that are compared with each other.
type field struct {
	points []point
	// typical is the median of the deviations of all pairs of points with few common seeds.
	typical float64
	// order has the indices of the points, the one that looks fastest first.
	order []int
	// level is the level of each test, and critical the t value at that level by degrees of
	// freedom.
	level    float64
	critical map[int]float64
	scratch  []float64 // differences of one comparison
}

// point is a sample on the scale of the comparison.
type point struct {
	runs []reading // by rising seeds
	// share is the fraction of the runs that arrived.
	share float64
	// ended is the earliest end of a run that was still under way, +Inf if there is none; latest
	// the latest of all known times, −Inf if there is none.
	ended, latest float64
}

// reading is a run: its time to the target is between low and high.
type reading struct {
	seed           uint64
	low, mid, high float64
	cell           float64 // high − low of an arrival, 0 of other runs
}

func (r *reading) arrived() bool { return !math.IsInf(r.high, 1) }

// resolution is the finest time between evaluations, in seconds, that a comparison of log times
// counts on: a clock's tick.
const resolution = 1e-9

// newField puts samples on the scale of log times. What is shorter than the finest time between
// evaluations is unknown, so the scale is linear below it.
func newField(points []Sample) *field {
	unit := math.Inf(1)
	for _, s := range points {
		for _, a := range s {
			if a.Fate == Arrived {
				unit = min(unit, a.Late-a.Early)
			}
		}
	}
	unit = max(unit, resolution)
	scale := func(t float64) float64 { return math.Log(t + unit) }
	f := &field{points: make([]point, len(points)), order: rank(points, scale), critical: map[int]float64{}}
	for i, s := range points {
		f.points[i] = pointOf(s, scale)
	}
	f.typical = f.deviation()
	return f
}

// deviation is the median of the deviations of all pairs of points with few common seeds, 0 if
// there are none.
func (f *field) deviation() float64 {
	var all []float64
	for i := range f.points {
		if n := len(f.points[i].runs); n < LeastRepeats || n >= fewRepeats {
			continue
		}
		for k := range f.points {
			if d := f.compare(i, k); k != i && d.pairs >= LeastRepeats && !math.IsNaN(d.std) {
				all = append(all, d.std)
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func pointOf(s Sample, scale func(float64) float64) point {
	p := point{ended: math.Inf(1), latest: math.Inf(-1)}
	if len(s) > 0 {
		p.share = float64(s.count(Arrived)) / float64(len(s))
	}
	for _, a := range s {
		r := reading{seed: a.Seed, low: math.Inf(1), mid: math.Inf(1), high: math.Inf(1)}
		switch a.Fate {
		case Arrived:
			r.low, r.mid, r.high = scale(a.Early), scale(a.At), scale(a.Late)
			r.cell = r.high - r.low
			p.latest = max(p.latest, r.high)
		case Censored:
			r.low, r.mid = scale(a.At), scale(a.At)
			p.ended, p.latest = min(p.ended, r.low), max(p.latest, r.low)
		case Never:
		}
		p.runs = append(p.runs, r)
	}
	slices.SortStableFunc(p.runs, func(a, b reading) int { return cmp.Compare(a.seed, b.seed) })
	return p
}

// rank orders points by how fast they look: by the mean of log times restricted to what is known of
// all, if a run is censored, then by the share of runs that arrived, then by the mean alone. Points
// of enough repeats come before others.
func rank(points []Sample, scale func(float64) float64) []int {
	horizon := math.Inf(1)
	for _, s := range points {
		if s.count(Censored) > 0 {
			horizon = min(horizon, s.watched())
		}
	}
	type looks struct {
		few, within, missed, mean float64 // less is faster
	}
	all, order := make([]looks, len(points)), make([]int, len(points))
	for i, s := range points {
		moments := s.at(middle)
		for k := range moments {
			moments[k].at = scale(moments[k].at)
		}
		l, curve := &all[i], kaplanMeier(moments)
		order[i] = i
		if len(s) < LeastRepeats {
			l.few = 1
		}
		if !math.IsInf(horizon, 1) {
			l.within = restricted(curve, scale(horizon))
		}
		l.missed = 1 - float64(s.count(Arrived))/float64(len(s))
		l.mean = restricted(curve, scale(s.watched()))
	}
	slices.SortStableFunc(order, func(i, k int) int {
		a, b := all[i], all[k]
		return cmp.Or(cmp.Compare(a.few, b.few), cmp.Compare(a.within, b.within),
			cmp.Compare(a.missed, b.missed), cmp.Compare(a.mean, b.mean))
	})
	return order
}

// slower says which points are out of the set of best. A point that is out puts no other out, so
// the tests are repeated among those that are left, at a level for so many, until none leaves.
// Samples without common seeds or with different horizons can be faster than each other in a
// circle: then all of them stay.
func (f *field) slower() []bool {
	out := make([]bool, len(f.points))
	left := slices.DeleteFunc(slices.Clone(f.order), func(i int) bool { return len(f.points[i].runs) < LeastRepeats })
	for len(left) > 1 {
		f.level = Error / float64(len(left)-1)
		clear(f.critical)
		var stay, leave []int
		for _, i := range left {
			if slices.ContainsFunc(left, func(k int) bool { return k != i && f.faster(k, i) }) {
				leave = append(leave, i)
			} else {
				stay = append(stay, i)
			}
		}
		if len(stay) == 0 || len(leave) == 0 {
			break
		}
		for _, i := range leave {
			out[i] = true
		}
		left = stay
	}
	return out
}

// faster reports whether a point puts another out.
func (f *field) faster(fast, slow int) bool {
	d := f.compare(fast, slow)
	return f.significant(&d)
}

// difference is the evidence that one point is faster than another.
type difference struct {
	// In wins pairs, the first point's run arrived before the other run can have arrived. In missed
	// pairs, it did not arrive; in ties pairs, neither run arrived, and the other did not end earlier.
	pairs, wins, missed, ties int
	// mean and std are of the paired differences in the worst case, the mean positive where even
	// then the first point is faster; plain is the mean without the worst case.
	mean, std, plain float64
	// lead counts how many more runs of the first point arrived, whenever runs ended. In behind pairs,
	// the other run arrived first; in ahead pairs, only the first point's run arrived, or it did first.
	lead, ahead, behind int
	// rarer says that the first point arrived in a smaller share of its runs, so it cannot put the
	// other out.
	rarer bool
	// censored says that a run of either point is censored.
	censored bool
}

// compare gathers the evidence that a point is faster than another.
func (f *field) compare(fast, slow int) difference {
	a, b := &f.points[fast], &f.points[slow]
	d := difference{rarer: a.share < b.share, censored: !math.IsInf(min(a.ended, b.ended), 1)}
	latest := max(a.latest, b.latest)
	if math.IsInf(latest, -1) {
		return d
	}
	least, cells, largest := f.scratch[:0], 0.0, 0.0
	for i, k := 0, 0; i < len(a.runs) && k < len(b.runs); {
		x, y := &a.runs[i], &b.runs[k]
		switch {
		case x.seed < y.seed:
			i++
			continue
		case x.seed > y.seed:
			k++
			continue
		}
		i, k = i+1, k+1
		d.add(x, y)
		if !x.arrived() {
			continue
		}
		worst := min(y.low, latest) - x.high
		least, largest = append(least, worst), max(largest, math.Abs(worst))
		d.plain += min(y.mid, latest) - x.mid
		cells += x.cell*x.cell + y.cell*y.cell
	}
	for k := range d.missed {
		lost := -largest
		if k < d.ties {
			lost = 0
		}
		least, d.plain = append(least, lost), d.plain+lost
	}
	f.scratch = least
	if d.pairs < 2 {
		return d
	}
	d.plain /= float64(d.pairs)
	d.mean, d.std = stat.MeanStdDev(least, nil)
	// Times in the same cells have no spread, though the times within the cells have one: at least
	// that of an even distribution.
	d.std = max(d.std, math.Sqrt(cells/12/float64(d.pairs)))
	if d.pairs < fewRepeats {
		// So few runs can all be of one heap, and then look more alike than they are.
		d.std = max(d.std, f.typical/2)
	}
	return d
}

// add counts a pair of runs.
func (d *difference) add(x, y *reading) {
	d.pairs++
	switch {
	case y.arrived() && y.low <= x.high:
		d.behind++
	case x.arrived():
		d.ahead++
	}
	if y.arrived() {
		d.lead--
	}
	if x.arrived() {
		d.lead++
		if y.low > x.high {
			d.wins++
		}
		return
	}
	if d.missed++; !y.arrived() && y.low >= x.low {
		d.ties++
	}
}

// t is Student's t of a difference, infinite where all differences are the same.
func (d *difference) t() float64 { return d.mean / stat.StdErr(d.std, float64(d.pairs)) }

// chance bounds the probability that one of two equal points arrives in at least lead more of its n
// runs within the same time. The probability is greatest if half of all runs arrive (Barnard,
// Biometrika 1947).
func chance(n, lead int) float64 {
	return distuv.Binomial{N: float64(2 * n), P: 0.5}.Survival(float64(n + lead - 1))
}

// arrivesMoreOften reports whether the first point arrives more often at a level, and is ahead in
// enough pairs that the other's early arrivals do not matter. A run that ended never arrives, so it
// does not matter when the other's runs ended.
func (d *difference) arrivesMoreOften(level float64) bool {
	return d.lead > 0 && (d.behind == 0 || passesSignTest(d.ahead, d.behind)) && chance(d.pairs, d.lead) <= level
}

// signLevel is the level of the sign test: four wins and no loss pass it, or eight wins and two
// losses.
const signLevel = 1.0 / 16

// passesSignTest reports whether a point that is no faster would hardly ever win so many pairs.
func passesSignTest(won, lost int) bool {
	return won > 0 && distuv.Binomial{N: float64(won + lost), P: 0.5}.Survival(float64(won-1)) <= signLevel
}

// significant reports whether a difference puts the slower point out.
func (f *field) significant(d *difference) bool {
	if d.pairs < LeastRepeats || d.rarer {
		return false
	}
	if d.arrivesMoreOften(f.level) {
		return true
	}
	if 2*d.wins <= d.pairs-d.ties || d.missed > 0 && !passesSignTest(d.wins, d.pairs-d.ties-d.wins) {
		return false
	}
	critical, known := f.critical[d.pairs]
	if !known {
		critical = student(d.pairs - 1).Quantile(1 - f.level)
		f.critical[d.pairs] = critical
	}
	return d.mean > 0 && d.t() >= critical
}

// p is the one-sided p-value of a difference.
func (d *difference) p() float64 {
	p := 1.0
	if d.pairs >= LeastRepeats && d.mean > 0 {
		p = student(d.pairs - 1).Survival(d.t())
	}
	if d.pairs >= LeastRepeats && d.arrivesMoreOften(1) {
		p = min(p, chance(d.pairs, d.lead))
	}
	return p
}

// verdict is that on a point beside the leader.
func (f *field) verdict(leader, i int, slower bool) Verdict {
	d := f.compare(leader, i)
	v := Verdict{Pairs: d.pairs, P: d.p()}
	switch {
	case slower:
		v.Word = Slower
	case d.pairs < LeastRepeats:
		v.Word, v.open = Unjudged, []func() int{func() int { return LeastRepeats }}
	default:
		if d.plain < 0 { // it looks faster in the common pairs
			d = f.compare(i, leader)
		}
		v.Word, v.Finer, v.Longer = Undecided, d.plain > 0 && d.mean <= 0 && d.missed == 0, d.censored
		v.open = []func() int{sync.OnceValue(func() int { return f.repeats(&d) })}
	}
	return v
}

// repeats is how many pairs would make a difference significant.
func (f *field) repeats(d *difference) (n int) {
	if d.rarer {
		return 0
	}
	if d.mean > 0 {
		n = repeats(d.mean/d.std, f.level, d.pairs)
	}
	if d.lead == d.pairs { // by their number alone
		enough := max(d.pairs+1, int(math.Ceil(math.Log(1/f.level)/math.Log(4))))
		if n == 0 || enough < n {
			n = enough
		}
	}
	return n
}

// exactPower is up to how many pairs the power of a t test is taken from the noncentral t.
const exactPower = 100

// repeats is how many pairs a t test at this one-sided level needs to find a difference, effect
// standard deviations large, with 80 % power: at least one more than there are; 0 if more than
// MostRepeats.
func repeats(effect, level float64, present int) int {
	low, high := max(present, LeastRepeats-1), exactPower // too few, enough
	if low >= high || power(effect, level, high) < Power {
		// Guenther (The American Statistician 1981).
		a, b := distuv.UnitNormal.Quantile(1-level), distuv.UnitNormal.Quantile(Power)
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

// power is the chance that a one-sided t test of n pairs finds a difference that is effect standard
// deviations large.
func power(effect, level float64, n int) float64 {
	critical, shift := student(n-1).Quantile(1-level), effect*math.Sqrt(float64(n))
	if shift > 30 && shift > 2*critical {
		return 1 // where the series of the noncentral t ends
	}
	return 1 - distuv.NoncentralT{Nu: float64(n - 1), Mu: shift}.CDF(critical)
}
