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

// Counts is a distribution: bins by rising low and high.
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
	of  []map[string]*Workload // by group
	all []*Workload
}

// NewWorkloads makes an empty pool for the runs of a number of groups.
func NewWorkloads(groups int) *Workloads { return &Workloads{of: make([]map[string]*Workload, groups)} }

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
			w.all = append(w.all, one)
		}
		one.Seconds += seconds
		one.Updates += float64(u.Updates)
		one.Staleness.addValues(u.Staleness.Counts)
		if u.Age != nil {
			one.Age.addValues(u.Age.Counts)
		}
		for _, cause := range u.Waiting {
			for _, b := range cause.Buckets {
				one.Waiting.add(bin{b.Low, b.High, float64(b.Count), b.Total})
			}
		}
	}
}

// Sorted returns the workloads by group, and within a group in the order of the nodes.
func (w *Workloads) Sorted() []*Workload {
	slices.SortStableFunc(w.all, func(a, b *Workload) int { return cmp.Compare(a.Group, b.Group) })
	return w.all
}

// add adds a bin to the one of the same bounds.
func (c *Counts) add(b bin) {
	i, found := slices.BinarySearchFunc(*c, b, func(a, b bin) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high))
	})
	if !found {
		*c = slices.Insert(*c, i, bin{low: b.low, high: b.high})
	}
	(*c)[i].count += b.count
	(*c)[i].total += b.total
}

func (c *Counts) addValues(counts []record.Count) {
	for _, n := range counts {
		v := float64(n.Value)
		c.add(bin{v, v, float64(n.Count), float64(v * float64(n.Count))})
	}
}

func (c *Counts) addAll(other Counts) {
	for _, b := range other {
		c.add(b)
	}
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
	for i, w := range work {
		if i == 0 || w.Group != work[i-1].Group {
			all = append(all, &Workload{Group: w.Group, node: record.Everyone})
		}
		one := all[len(all)-1]
		one.Seconds += w.Seconds
		one.Updates += w.Updates
		one.Serverless = one.Serverless || w.Serverless
		one.Staleness.addAll(w.Staleness)
		one.Waiting.addAll(w.Waiting)
		one.Age.addAll(w.Age)
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
