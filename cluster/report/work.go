package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// maxWorkers is how many workers of a record are told apart; those of larger ones are
// counted together.
const maxWorkers = 64

// bin counts values of at least low and, where these differ, less than high.
type bin struct {
	low, high    float64
	count, total float64
}

// counts is a distribution: bins by rising low.
type counts []bin

// workload is what a worker did in all runs of a group.
type workload struct {
	group int
	node  string // record.Everyone where all are counted together
	// seconds is how long its runs took, updates how many of its updates were applied.
	seconds, updates float64
	// staleness is in versions, waiting in seconds, age, of the models that were merged, in steps of their node.
	staleness, waiting, age counts
	// serverless says that several nodes hold models and none has versions: there is no staleness.
	serverless bool
}

// workloads pools the counts of runs.
type workloads struct {
	of    []map[string]*workload // by group
	order []*workload
	bins  map[*workload]*[3]map[[2]float64]bin
}

func newWorkloads(groups int) *workloads {
	return &workloads{of: make([]map[string]*workload, groups), bins: map[*workload]*[3]map[[2]float64]bin{}}
}

// add counts the workers of a run of so many seconds.
func (w *workloads) add(group int, seconds float64, updates []record.Update) {
	if w.of[group] == nil {
		w.of[group] = map[string]*workload{}
	}
	for _, u := range updates {
		name := u.Node
		if len(updates) > maxWorkers || w.of[group][name] == nil && len(w.of[group]) >= maxWorkers {
			name = record.Everyone
		}
		one := w.of[group][name]
		if one == nil {
			one = &workload{group: group, node: name}
			w.of[group][name] = one
			w.order = append(w.order, one)
			w.bins[one] = &[3]map[[2]float64]bin{{}, {}, {}}
		}
		one.seconds += seconds
		one.updates += float64(u.Updates)
		putCounts(w.bins[one][0], u.Staleness.Counts)
		if u.Age != nil {
			putCounts(w.bins[one][2], u.Age.Counts)
		}
		for _, cause := range u.Waiting {
			for _, b := range cause.Buckets {
				put(w.bins[one][1], bin{b.Low, b.High, float64(b.Count), b.Total})
			}
		}
	}
}

func putCounts(all map[[2]float64]bin, counts []record.Count) {
	for _, c := range counts {
		v := float64(c.Value)
		put(all, bin{v, v, float64(c.Count), float64(v * float64(c.Count))})
	}
}

func put(all map[[2]float64]bin, b bin) {
	key := [2]float64{b.low, b.high}
	known := all[key]
	all[key] = bin{b.low, b.high, known.count + b.count, known.total + b.total}
}

// sorted returns the workloads by group, and within one in the order of the nodes.
func (w *workloads) sorted() []*workload {
	for _, one := range w.order {
		one.staleness, one.waiting, one.age = countsOf(w.bins[one][0]), countsOf(w.bins[one][1]), countsOf(w.bins[one][2])
	}
	slices.SortStableFunc(w.order, func(a, b *workload) int { return cmp.Compare(a.group, b.group) })
	return w.order
}

func countsOf(bins map[[2]float64]bin) counts {
	var c counts
	for _, b := range bins {
		c = append(c, b)
	}
	slices.SortFunc(c, func(a, b bin) int { return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high)) })
	return c
}

// pool adds distributions up.
func pool(all []counts) counts {
	bins := map[[2]float64]bin{}
	for _, c := range all {
		for _, b := range c {
			put(bins, b)
		}
	}
	return countsOf(bins)
}

func (c counts) count() (n float64) {
	for _, b := range c {
		n += b.count
	}
	return n
}

func (c counts) total() (sum float64) {
	for _, b := range c {
		sum += b.total
	}
	return sum
}

// mean is NaN where there is nothing.
func (c counts) mean() float64 { return c.total() / c.count() }

// quantile returns the smallest value that a share of all do not exceed. Values in a bin count as its mean, as they do
// in the mean of all, so that this and quantiles agree; NaN where there is nothing.
func (c counts) quantile(share float64) float64 {
	rank := share * c.count()
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
func workers(work []*workload) (names []string) {
	for _, w := range work {
		if !slices.Contains(names, w.node) {
			names = append(names, w.node)
		}
	}
	return names
}

// together pools the workers of each group.
func together(work []*workload) (all []*workload) {
	for i := 0; i < len(work); {
		one := &workload{group: work[i].group, node: record.Everyone}
		var ages, waits, merged []counts
		for ; i < len(work) && work[i].group == one.group; i++ {
			one.seconds += work[i].seconds
			one.updates += work[i].updates
			one.serverless = one.serverless || work[i].serverless
			ages, waits, merged = append(ages, work[i].staleness), append(waits, work[i].waiting), append(merged, work[i].age)
		}
		one.staleness, one.waiting, one.age = pool(ages), pool(waits), pool(merged)
		all = append(all, one)
	}
	return all
}

// nodeName says what a workload is of.
func (w *workload) nodeName() string {
	if w.node == record.Everyone {
		return "all"
	}
	return strings.TrimSpace(w.node)
}
