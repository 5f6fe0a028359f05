package record

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/record/stats"
)

// Spread describes the values of several runs.
type Spread struct {
	// N counts the values.
	N    int   `json:"n"`
	Mean Float `json:"mean"`
	// Std is the sample standard deviation (n − 1); NaN, in JSON null, for a single value.
	Std    Float `json:"std"`
	Min    Float `json:"min"`
	Median Float `json:"median"`
	Max    Float `json:"max"`
	// Low and High are the 95 % confidence interval of the median; NaN where Method is "too few
	// repeats". It assumes independent repeats, and nothing about how they are distributed.
	Low  Float `json:"low"`
	High Float `json:"high"`
	// Method says how the interval was made: "order statistics" or "too few repeats". Older records
	// have intervals of the mean, by "t" and "Kaplan–Meier, t", which are made anew when they are
	// read.
	Method string `json:"method"`
}

// SpreadOf describes values; nil if there are none.
func SpreadOf(values []float64) *Spread {
	if len(values) == 0 {
		return nil
	}
	m := stats.MeanOf(values)
	return &Spread{
		N: m.N, Mean: Float(m.Mean), Std: Float(m.Std),
		Min: Float(slices.Min(values)), Median: Float(m.Median), Max: Float(slices.Max(values)),
		Low: Float(m.Low), High: Float(m.High), Method: m.Method,
	}
}

// Arrivals describes when the runs of a point reach the target.
type Arrivals struct {
	// Spread has the mean, the deviation and the ends of the runs that reached the target alone,
	// and counts all. Low and High are the interval of the Median below, of all runs, wide enough
	// for what lies between evaluations; High is +Inf where too few runs arrived to bound it.
	Spread
	// Reached counts the runs that arrived, and Censored those that ended before; the others
	// failed.
	Reached  int `json:"reached"`
	Censored int `json:"censored"`
	// Median is when half of the runs have arrived by the Kaplan–Meier curve; NaN where that is not
	// known.
	Median Float `json:"median"`
	// Restricted is the mean in which runs that did not arrive, or later, count as if they had at
	// the Horizon: how long a run was watched at most.
	Restricted Float `json:"restricted_mean"`
	Horizon    Float `json:"horizon"`
}

// Group sums up the runs of a point: an element of groups in summary.json.
type Group struct {
	Point Point `json:"point"`
	// Circumstances are the settings of the point that it has in common with those that it is
	// compared with.
	Circumstances Point `json:"circumstances,omitempty"`
	// N is the number of runs, Reached how many of them arrived at the target.
	N       int `json:"n"`
	Reached int `json:"reached"`
	// Done, Degraded and Failed count the runs by their outcome.
	Done     int `json:"done"`
	Degraded int `json:"degraded"`
	Failed   int `json:"failed"`
	// Resumed is the number of runs that were resumed from a checkpoint; see Run.Resumed.
	Resumed int `json:"resumed,omitempty"`
	// Counted is the number of counting runs; no other figure includes them.
	Counted int `json:"counted,omitempty"`
	// Of is what is judged, and Target the accuracy that the runs end at; nil if there is none. A
	// point whose runs have a single model, of which all four accuracies are the same, takes the Of
	// of the points that it is compared with.
	Of     Of       `json:"of"`
	Target *float64 `json:"target,omitempty"`
	// TimeToTarget, in seconds, and EpochsToTarget are nil if no run arrived.
	TimeToTarget   *Arrivals `json:"time_to_target_s"`
	EpochsToTarget *Arrivals `json:"epochs_to_target"`
	// FinalAccuracy is over all runs that did not fail; nil if there are none.
	FinalAccuracy *Spread `json:"final_accuracy"`
	// Verdict compares the times to the target with the other points of the same Of and
	// Target, by runs of equal seeds; empty where there are none, or no run of any of them arrived.
	// The points that are not "slower" are the set of best.
	Verdict stats.Word `json:"verdict,omitempty"`
	// Pairs is how many seeds the point has in common with the one of the set of best that looks
	// fastest.
	Pairs int `json:"pairs,omitempty"`
	// Leader says that the point looks fastest in the set of best.
	Leader bool `json:"looks_fastest,omitempty"`
	// Repeats is how many repeats would separate the point from the one that looks fastest with 80
	// % power, where the verdict does not; 0 if no number that anybody would run. Finer says that
	// the difference is less than what lies between evaluations: these must come more often.
	Repeats int  `json:"repeats_needed,omitempty"`
	Finer   bool `json:"evaluate_more_often,omitempty"`
	// Longer says that runs ended without an arrival: with a later bound, fewer repeats may decide.
	Longer bool `json:"run_longer,omitempty"`
	// ComparedUpTo is the earliest end, in seconds, of a run without an arrival among all points of the
	// comparison, if the verdicts depend on it: a run of the set of best did not arrive, or arrived
	// later. It is 0 otherwise.
	ComparedUpTo Float `json:"compared_up_to_s,omitempty"`
}

// Summary is summary.json.
type Summary struct {
	// Version is the version of the record's files.
	Version int `json:"version"`
	// Plan is the plan's name.
	Plan  string `json:"plan"`
	Build Build  `json:"build"`
	// Wall is the seconds that all runs took together.
	Wall float64 `json:"wall_s"`
	// Target is the accuracy at which runs end, as a fraction; nil if the plan has none.
	Target *float64 `json:"target,omitempty"`
	// Complete says that all planned runs are there and done, RunsPlanned how many these are.
	Complete    bool `json:"complete"`
	RunsPlanned int  `json:"runs_planned"`
	// Data are the files of samples, by their names; none of generated samples.
	Data []DataFile `json:"data,omitempty"`
	// Notes tell what of the plan means something else than it seems to, such as units that differ
	// between its points; none where nothing does.
	Notes []string `json:"notes,omitempty"`
	// Tunings are how settings of the points were chosen, and what that has cost beside the runs;
	// none where nothing was.
	Tunings []Tuning `json:"tunings,omitempty"`
	Runs    []Run    `json:"runs"`
	Groups  []Group  `json:"groups"`
}

// choices are the sections of a plan that somebody chooses; the others are what he meets.
var choices = []string{"architecture", "model", "train", "tune"}

// circumstances are the settings of a point that say what the question is, where others say what is
// chosen: points are compared only where these are equal. Where a sweep varies nothing that is
// chosen, its values are what is compared.
func circumstances(p Point) Point {
	var met Point
	for _, s := range p {
		section, _, _ := strings.Cut(s.Key, ".")
		if !slices.Contains(choices, section) {
			met = append(met, s)
		}
	}
	if len(met) == len(p) {
		return nil
	}
	return met
}

// GroupRuns groups runs by point, in order of first occurrence. It compares the points that have the same
// target, Of and circumstances. Comparisons and the statistics of a group leave resumed runs out, except
// those with ComparedIfResumed. The statistics of a group with resumed runs only are of these.
// The given target is for runs that name none, neither themselves nor in their points; nil if there is none.
func GroupRuns(runs []Run, target *float64) []Group {
	groups := []Group{}
	members := map[string][]Run{}
	places := map[string]int{}
	for _, r := range runs {
		key := r.Point.Key()
		at, known := places[key]
		if !known {
			at = len(groups)
			places[key] = at
			groups = append(groups, Group{Point: r.Point, Of: r.Of, Circumstances: circumstances(r.Point)})
		}
		if r.Counted {
			groups[at].Counted++
			continue
		}
		if members[key] == nil {
			groups[at].Of, groups[at].Target = r.Of, r.targetOr(target)
		}
		members[key] = append(members[key], r)
	}
	alignOf(groups, members)
	for i := range groups {
		key := groups[i].Point.Key()
		all := members[key]
		members[key] = slices.DeleteFunc(slices.Clone(all), func(r Run) bool {
			return r.Resumed > 0 && !r.ComparedIfResumed
		})
		if len(members[key]) > 0 {
			groups[i].sum(members[key])
		} else {
			groups[i].sum(all)
		}
		for _, r := range all {
			if r.Resumed > 0 {
				groups[i].Resumed++
			}
		}
	}
	families := map[string][]int{}
	var order []string
	for i, g := range groups {
		if g.Target == nil || len(members[g.Point.Key()]) == 0 {
			continue
		}
		family := fmt.Sprint(g.Of, *g.Target, g.Circumstances.Key())
		if families[family] == nil {
			order = append(order, family)
		}
		families[family] = append(families[family], i)
	}
	for _, family := range order {
		judge(groups, families[family], members)
	}
	return groups
}

// alignOf gives groups of single models the Of of groups of several models and the same target
// where these have but one. Where they have more a group keeps its own if it is one of these; all
// others take the first group's.
func alignOf(groups []Group, members map[string][]Run) {
	single := func(g *Group) bool {
		return !slices.ContainsFunc(members[g.Point.Key()], func(r Run) bool { return r.Models > 1 })
	}
	kinds, first := map[float64][]Of{}, map[float64]Of{}
	for i := range groups {
		g := &groups[i]
		switch {
		case g.Target == nil:
		case single(g):
			if first[*g.Target] == "" {
				first[*g.Target] = g.Of
			}
		case !slices.Contains(kinds[*g.Target], g.Of):
			kinds[*g.Target] = append(kinds[*g.Target], g.Of)
		}
	}
	for i := range groups {
		g := &groups[i]
		switch {
		case g.Target == nil || !single(g):
		case len(kinds[*g.Target]) == 1:
			g.Of = kinds[*g.Target][0]
		case slices.Contains(kinds[*g.Target], g.Of):
		default:
			g.Of = first[*g.Target]
		}
	}
}

// judge compares the groups of one family.
func judge(groups []Group, family []int, members map[string][]Run) {
	samples := make([]stats.Sample, len(family))
	for k, i := range family {
		samples[k] = arrivals(members[groups[i].Point.Key()], overTime)
	}
	verdicts := stats.Judge(samples)
	horizon := Float(stats.Horizon(samples, verdicts))
	for k, v := range verdicts {
		g := &groups[family[k]]
		g.ComparedUpTo, g.Leader = horizon, v.Leader
		g.Verdict, g.Pairs, g.Repeats, g.Finer, g.Longer = v.Word, v.Pairs, v.Repeats(), v.Finer, v.Longer
	}
}

// targetOr returns the run's target; what it is where the run does not say is given.
func (r *Run) targetOr(given *float64) *float64 {
	if r.Target != nil {
		return r.Target
	}
	text, percent := strings.CutSuffix(r.Point.Value("stop.target"), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err == nil && within(v, 0, 1) {
		return &v
	}
	return given
}

func (g *Group) sum(runs []Run) {
	var final []float64
	for _, r := range runs {
		g.N++
		switch r.Outcome {
		case Failed:
			g.Failed++
		case Degraded:
			g.Degraded++
		default:
			g.Done++
		}
		if r.Reached {
			g.Reached++
		}
		if v := float64(r.FinalAccuracy); r.Outcome != Failed && !math.IsNaN(v) {
			final = append(final, v)
		}
	}
	g.FinalAccuracy = SpreadOf(final)
	g.TimeToTarget = arrivalsOf(arrivals(runs, overTime))
	g.EpochsToTarget = arrivalsOf(arrivals(runs, overEpochs))
}

// overTime and overEpochs read when a run arrived, between which evaluations, and when it ended.
func overTime(r *Run) (at *float64, after, before, end float64) {
	if b := r.Bracket; b != nil {
		after, before = b.TimeAfter, b.TimeBefore
	}
	return r.TimeToTarget, after, before, r.Duration
}

func overEpochs(r *Run) (at *float64, after, before, end float64) {
	if b := r.Bracket; b != nil {
		after, before = b.EpochsAfter, b.EpochsBefore
	}
	return r.EpochsToTarget, after, before, r.Epochs
}

// arrivals says when each run of a point arrived.
func arrivals(runs []Run, read func(*Run) (at *float64, after, before, end float64)) stats.Sample {
	s := make(stats.Sample, len(runs))
	for i := range runs {
		r := &runs[i]
		at, after, before, end := read(r)
		s[i] = stats.Arrival{Seed: r.Seed, Fate: stats.Censored, At: end}
		switch {
		case r.Reached && at != nil && r.Bracket != nil:
			s[i].Fate, s[i].At, s[i].Early, s[i].Late = stats.Arrived, *at, min(after, *at), max(before, *at)
		case r.Reached && at != nil:
			s[i].Fate, s[i].At, s[i].Early, s[i].Late = stats.Arrived, *at, *at, *at
		case r.Outcome == Failed:
			s[i].Fate = stats.Never
		}
	}
	return s
}

// arrivalsOf sums a sample up; nil if nobody arrived.
func arrivalsOf(s stats.Sample) *Arrivals {
	var values []float64
	for _, a := range s {
		if a.Fate == stats.Arrived {
			values = append(values, a.At)
		}
	}
	spread := SpreadOf(values)
	if spread == nil {
		return nil
	}
	e := stats.Estimated(s)
	spread.N, spread.Low, spread.High, spread.Method = e.N, Float(e.Low), Float(e.High), e.Method
	return &Arrivals{
		Spread: *spread, Reached: e.Reached, Censored: e.Censored,
		Median: Float(e.Median), Restricted: Float(e.Mean), Horizon: Float(e.Horizon),
	}
}
