package figure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// maxWorkers is how many workers of a record are counted one by one; more are counted together.
const maxWorkers = 64

// bin counts values of at least low and, where these differ, less than high.
type bin struct {
	low, high    float64
	count, total float64
}

// Counts is a distribution: bins by rising low.
type Counts []bin

// Workload is what a worker did in all runs of a group.
type Workload struct {
	Group int
	node  string // record.Everyone where all are counted together
	// Seconds is how long its runs took, Updates how many of its updates were applied.
	Seconds, Updates float64
	// Staleness is in versions, Waiting in seconds. Age is how old merged models were, in steps of
	// their node.
	Staleness, Waiting, Age Counts
	// Serverless says that several nodes hold models and none has versions, so there is no
	// staleness.
	Serverless bool
}

// Workloads pools the counts of runs.
type Workloads struct {
	of    []map[string]*Workload // by group
	order []*Workload
	bins  map[*Workload]*[3]map[[2]float64]bin
}

// NewWorkloads makes an empty pool for the runs of a number of groups.
func NewWorkloads(groups int) *Workloads {
	return &Workloads{of: make([]map[string]*Workload, groups), bins: map[*Workload]*[3]map[[2]float64]bin{}}
}

// Add counts the workers of a run of a group; seconds is how long the run took.
func (w *Workloads) Add(group int, seconds float64, updates []record.Update) {
	if w.of[group] == nil {
		w.of[group] = map[string]*Workload{}
	}
	for _, u := range updates {
		name := u.Node
		if len(updates) > maxWorkers || w.of[group][name] == nil && len(w.of[group]) >= maxWorkers {
			name = record.Everyone
		}
		one := w.of[group][name]
		if one == nil {
			one = &Workload{Group: group, node: name}
			w.of[group][name] = one
			w.order = append(w.order, one)
			w.bins[one] = &[3]map[[2]float64]bin{{}, {}, {}}
		}
		one.Seconds += seconds
		one.Updates += float64(u.Updates)
		putCounts(w.bins[one][0], u.Staleness.Counts)
		if u.Age != nil {
			putCounts(w.bins[one][2], u.Age.Counts)
		}
		for _, cause := range u.Waiting {
			for _, b := range cause.Buckets {
				addBin(w.bins[one][1], bin{b.Low, b.High, float64(b.Count), b.Total})
			}
		}
	}
}

func putCounts(all map[[2]float64]bin, counts []record.Count) {
	for _, c := range counts {
		v := float64(c.Value)
		addBin(all, bin{v, v, float64(c.Count), float64(v * float64(c.Count))})
	}
}

func addBin(all map[[2]float64]bin, b bin) {
	key := [2]float64{b.low, b.high}
	known := all[key]
	all[key] = bin{b.low, b.high, known.count + b.count, known.total + b.total}
}

// Sorted returns the workloads by group, and within a group in the order of the nodes.
func (w *Workloads) Sorted() []*Workload {
	for _, one := range w.order {
		one.Staleness, one.Waiting, one.Age = countsOf(w.bins[one][0]), countsOf(w.bins[one][1]),
			countsOf(w.bins[one][2])
	}
	slices.SortStableFunc(w.order, func(a, b *Workload) int { return cmp.Compare(a.Group, b.Group) })
	return w.order
}

func countsOf(bins map[[2]float64]bin) Counts {
	var c Counts
	for _, b := range bins {
		c = append(c, b)
	}
	slices.SortFunc(c, func(a, b bin) int { return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high)) })
	return c
}

// sumCounts adds distributions up.
func sumCounts(all []Counts) Counts {
	bins := map[[2]float64]bin{}
	for _, c := range all {
		for _, b := range c {
			addBin(bins, b)
		}
	}
	return countsOf(bins)
}

// Count returns how many values there are.
func (c Counts) Count() (n float64) {
	for _, b := range c {
		n += b.count
	}
	return n
}

// Total returns the sum of the values.
func (c Counts) Total() (sum float64) {
	for _, b := range c {
		sum += b.total
	}
	return sum
}

// Mean returns the mean of the values; NaN if there are none.
func (c Counts) Mean() float64 { return c.Total() / c.Count() }

// Quantile returns the smallest value that a share of all do not exceed; NaN if there are none. The
// values of a bin count as the bin's mean, as they do in Mean, so that the two agree.
func (c Counts) Quantile(share float64) float64 {
	rank := share * c.Count()
	last := math.NaN()
	for _, b := range c {
		if b.count == 0 {
			continue
		}
		if last = min(max(b.total/b.count, b.low), b.high); rank <= b.count {
			return last
		}
		rank -= b.count
	}
	return last
}

// workers returns the names of the workers that some group has, in the order in which they occur.
func workers(work []*Workload) (names []string) {
	for _, w := range work {
		if !slices.Contains(names, w.node) {
			names = append(names, w.node)
		}
	}
	return names
}

// poolWorkers pools the workers of each group.
func poolWorkers(work []*Workload) (all []*Workload) {
	for i := 0; i < len(work); {
		one := &Workload{Group: work[i].Group, node: record.Everyone}
		var ages, waits, merged []Counts
		for ; i < len(work) && work[i].Group == one.Group; i++ {
			one.Seconds += work[i].Seconds
			one.Updates += work[i].Updates
			one.Serverless = one.Serverless || work[i].Serverless
			ages, waits, merged = append(ages, work[i].Staleness), append(waits, work[i].Waiting),
				append(merged, work[i].Age)
		}
		one.Staleness, one.Waiting, one.Age = sumCounts(ages), sumCounts(waits), sumCounts(merged)
		all = append(all, one)
	}
	return all
}

// NodeName names the worker; "all" stands for all workers together.
func (w *Workload) NodeName() string {
	if w.node == record.Everyone {
		return "all"
	}
	return strings.TrimSpace(w.node)
}
