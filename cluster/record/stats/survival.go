package stats

import (
	"cmp"
	"math"
	"slices"
)

// Fate says how a run ended.
type Fate int

// The fates.
const (
	// Arrived: the target was reached.
	Arrived Fate = iota
	// Censored: the run ended before it reached the target; it may have reached it later.
	Censored
	// Never: the run failed, and would not have reached the target however long it had gone on.
	Never
)

// Arrival is what a run says about the time, or the epochs, to its target.
type Arrival struct {
	Seed uint64
	Fate Fate
	// At is when the run arrived, or when it ended without; of no meaning with Never.
	At float64
	// Early and Late are the evaluations around an arrival, between which it happened.
	Early, Late float64
}

// Sample has the arrivals of a point, one for each seed.
type Sample []Arrival

// count returns how many arrivals have a fate.
func (s Sample) count(fate Fate) (n int) {
	for _, a := range s {
		if a.Fate == fate {
			n++
		}
	}
	return n
}

// at returns the times of a sample, read as early, late or in the middle, and which of them are
// arrivals.
func (s Sample) at(read func(Arrival) float64) []moment {
	all := make([]moment, len(s))
	for i, a := range s {
		switch a.Fate {
		case Arrived:
			all[i] = moment{read(a), true}
		case Censored:
			all[i] = moment{a.At, false}
		case Never:
			all[i] = moment{math.Inf(1), false}
		}
	}
	slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return all
}

func middle(a Arrival) float64 { return a.At }

// moment is an instant at which one run arrived, or was no longer watched.
type moment struct {
	at      float64
	arrived bool
}

// step is an instant at which the survival curve falls to left, because some of the runs that were
// at risk arrived.
type step struct {
	at, left float64
	atRisk   int
}

// kaplanMeier is the curve of the share that has not arrived yet (Kaplan and Meier, Journal of the
// American Statistical Association 1958). Moments are sorted by their instants; at one instant
// arrivals come before the others.
func kaplanMeier(moments []moment) (curve []step) {
	left, atRisk := 1.0, len(moments)
	for i := 0; i < len(moments); {
		at, arrived, gone := moments[i].at, 0, 0
		for ; i < len(moments) && moments[i].at == at; i++ {
			gone++
			if moments[i].arrived {
				arrived++
			}
		}
		if arrived > 0 {
			left *= 1 - float64(arrived)/float64(atRisk)
			curve = append(curve, step{at: at, left: left, atRisk: atRisk})
		}
		atRisk -= gone
	}
	return curve
}

// median is the instant by which half have arrived, in the middle between two arrivals where
// exactly half arrived before the later one; NaN if it is not known.
func median(curve []step) float64 {
	const rounding = 1e-12
	for i, s := range curve {
		switch {
		case s.left > 0.5+rounding:
		case s.left >= 0.5-rounding && i+1 < len(curve):
			return (s.at + curve[i+1].at) / 2
		default:
			return s.at
		}
	}
	return math.NaN()
}

// restricted is the area under the curve up to a horizon, which is the mean of the arrivals with
// those after it counted as if they were at it (Klein and Moeschberger, Survival Analysis, 2003,
// section 4.5).
func restricted(curve []step, horizon float64) (mean float64) {
	left, from := 1.0, 0.0
	for _, s := range curve {
		if s.at >= horizon {
			break
		}
		mean += (s.at - from) * left
		left, from = s.left, s.at
	}
	return mean + (horizon-from)*left
}

// Estimate sums up when the runs of a point arrive.
type Estimate struct {
	// N counts the runs: those that Reached the target, those that were Censored, and those that
	// never will.
	N, Reached, Censored int
	// Median is the instant by which half have arrived by the Kaplan–Meier curve; NaN if that is
	// not known.
	Median float64
	// Mean is restricted to Horizon: runs that arrive later, or never, count as if they arrived
	// there. The horizon is how long it is known what happened: the longest that a run was watched.
	// Where all arrive it is plainly the mean.
	Mean, Horizon float64
	// Low and High are the 95 % interval of the median, wide enough for what lies between
	// evaluations. High is +Inf where too many runs did not arrive to bound it. Both are NaN where
	// Method is TooFew.
	Low, High float64
	Method    string
}

// Estimated sums a sample up. All but the counts are NaN where nobody arrived.
func Estimated(s Sample) Estimate {
	e := Estimate{
		N: len(s), Reached: s.count(Arrived), Censored: s.count(Censored),
		Median: math.NaN(), Mean: math.NaN(), Horizon: math.NaN(), Low: math.NaN(), High: math.NaN(), Method: TooFew,
	}
	if e.Reached == 0 {
		return e
	}
	e.Horizon = s.watched()
	curve := kaplanMeier(s.at(middle))
	e.Median = median(curve)
	e.Mean = restricted(curve, e.Horizon)
	if r := Rank(e.N); r > 0 {
		earliest, latest := s.bounds()
		e.Low, e.High, e.Method = min(earliest[r-1], e.Horizon), latest[e.N-r], OrderStatistics
	}
	return e
}

// bounds are the earliest and the latest times at which the runs can have arrived, both sorted. A
// run that ended without arriving has no latest time.
func (s Sample) bounds() (earliest, latest []float64) {
	for _, a := range s {
		low, high := math.Inf(1), math.Inf(1)
		switch a.Fate {
		case Arrived:
			low, high = a.Early, a.Late
		case Censored:
			low = a.At
		case Never:
		}
		earliest, latest = append(earliest, low), append(latest, high)
	}
	slices.Sort(earliest)
	slices.Sort(latest)
	return earliest, latest
}

// watched is the longest that a run of the sample was watched.
func (s Sample) watched() (longest float64) {
	for _, a := range s {
		if a.Fate != Never {
			longest = max(longest, a.At)
		}
	}
	return longest
}
