package drill

import (
	"cmp"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/goodput"
)

// Cost is what a fault cost. Times are in seconds from its beginning; nil stands for never, within
// the run. What is compared with the undisturbed run is counted from the fault's beginning to that
// of the next fault, or to the end: what faults cost that overlap is told of the later one.
type Cost struct {
	goodput.Fault
	// AfterEnd says that the run ended before the fault, so it has no costs.
	AfterEnd bool `json:"after_end,omitempty"`
	// Noticed is when the coordinator heard of it; nil for faults that nobody is told of.
	Noticed *float64 `json:"noticed_s"`
	// Served is when each node that was struck made a step, or took in or handed on an update again
	// after the fault; where it does not come back, when another node did.
	Served *float64 `json:"served_s"`
	// Regained is when the accuracy was back at that of the last evaluation before the fault; 0 if
	// it never fell below.
	Regained *float64 `json:"regained_s"`
	// Samples are those that the undisturbed run processed more.
	Samples int64 `json:"samples_fewer"`
	// Updates are those that models of the undisturbed run took in more.
	Updates int64 `json:"updates_fewer"`
	// Bytes are those that this run sent more, between the evaluations around.
	Bytes int64 `json:"bytes_more"`
	// Repeats are messages that sessions, and pushes that workers, sent again in this run more.
	Repeats int64 `json:"repeats_more"`
	// Pushes are those that workers sent to a parameter server and no model took in, of this run
	// more; those under way at its end do not count. It is nil where there are none, or links may
	// lose them.
	Pushes *int64 `json:"pushes_lost_more"`
}

// costs are what faults cost.
func costs(w *Watch, p *experiment.Point, all []goodput.Fault) []Cost {
	costs := make([]Cost, len(all))
	run, calm := progressOf(w.Run), progressOf(w.Calm)
	for i, f := range all {
		next := w.Run.End.Seconds()
		if i+1 < len(all) {
			next = min(all[i+1].At, next)
		}
		c := &costs[i]
		c.Fault = f
		if c.AfterEnd = f.At >= w.Run.End.Seconds(); c.AfterEnd {
			continue
		}
		c.Noticed = noticed(&f, p)
		c.Served = served(w.Run, p.Spec.Plan, &f)
		c.Regained = regained(w.Run.Data.Curve, f.At)
		c.Samples = calm.samples(f.At, next) - run.samples(f.At, next)
		c.Updates = calm.updates(f.At, next) - run.updates(f.At, next)
		c.Repeats = between(run.repeats, f.At, next) - between(calm.repeats, f.At, next)
		if len(w.Run.Audit.Pushes) > 0 && w.Run.Stage.Deployment.Reliable {
			c.Pushes = new(between(run.lost, f.At, next) - between(calm.lost, f.At, next))
		}
		c.Bytes = int64(bytes(w.Run.Data.Curve, f.At, next) - bytes(w.Calm.Data.Curve, f.At, next))
	}
	return costs
}

// noticed is when the coordinator hears of a node's end.
func noticed(f *goodput.Fault, p *experiment.Point) *float64 {
	after := 0.0
	switch f.What {
	case plan.Crash, plan.Restart:
		after = time.Duration(p.Spec.Plan.Detect).Seconds()
		if f.Until > 0 {
			after = min(after, f.Until-f.At)
		}
	case plan.Leave, plan.Preempt:
	default:
		return nil
	}
	return &after
}

// served is when all nodes that a fault struck are heard of again, or any other if they stay away.
func served(t *experiment.Trial, p *plan.Plan, f *goodput.Fault) *float64 {
	waiting := map[int]bool{}
	sides := p.Sides(plan.Cut{f.Nodes})
	for i := range sides {
		waiting[i] = sides[i] == 1
	}
	stays := f.Until == 0
	left := 1
	if !stays {
		left = 0
		for _, w := range waiting {
			if w {
				left++
			}
		}
	}
	begins := max(f.At, f.Until)
	for i := range t.Events {
		e := &t.Events[i]
		at := e.At.Seconds()
		if at <= begins || e.Node >= len(sides) {
			continue
		}
		for _, node := range who(e) {
			if waiting[node] != stays {
				waiting[node] = stays
				left--
			}
		}
		if left <= 0 {
			after := at - f.At
			return &after
		}
	}
	return nil
}

// who are the nodes whose work an event tells of.
func who(e *world.Recorded) []int {
	switch e.Kind {
	case actors.StepDone:
		return []int{e.Node}
	case actors.UpdateApplied, actors.Merged:
		return []int{e.Node, e.Origin}
	}
	return nil
}

// regained is when the accuracy is back at that before an instant.
func regained(curve []record.Evaluation, at float64) *float64 {
	before, fell := record.Float(0), false
	for _, e := range curve {
		switch {
		case e.Time <= at:
			before = e.Accuracy
		case e.Accuracy < before:
			fell = true
		case fell:
			after := e.Time - at
			return &after
		default:
			return new(float64)
		}
	}
	if fell {
		return nil
	}
	return new(float64)
}

// counters are what a run has come to, by the instants of its steps and of its updates.
type counters struct {
	steps         []mark
	taken         []float64
	repeats, lost []time.Duration
}

// mark is the samples up to an instant.
type mark struct {
	at      float64
	samples int64
}

func progressOf(t *experiment.Trial) (c counters) {
	for i := range t.Events {
		switch e := &t.Events[i]; e.Kind {
		case actors.StepDone:
			c.steps = append(c.steps, mark{e.At.Seconds(), int64(e.Samples)})
		case actors.UpdateApplied:
			c.taken = append(c.taken, e.At.Seconds())
		}
	}
	c.repeats, c.lost = t.Audit.Repeats, lost(t) // sorted
	slices.Sort(c.taken)
	slices.SortStableFunc(c.steps, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	for i := 1; i < len(c.steps); i++ {
		c.steps[i].samples += c.steps[i-1].samples
	}
	return c
}

// samples are those from an instant to before another.
func (c counters) samples(from, to float64) int64 {
	until := func(at float64) int64 {
		n, _ := slices.BinarySearchFunc(c.steps, at, func(m mark, at float64) int { return cmp.Compare(m.at, at) })
		if n == 0 {
			return 0
		}
		return c.steps[n-1].samples
	}
	return until(to) - until(from)
}

// updates are those from an instant to before another.
func (c counters) updates(from, to float64) int64 {
	a, _ := slices.BinarySearch(c.taken, from)
	b, _ := slices.BinarySearch(c.taken, to)
	return int64(b - a)
}

// between is how many instants are from one to before another.
func between(instants []time.Duration, from, to float64) int64 {
	until := func(at float64) int {
		n, _ := slices.BinarySearchFunc(instants, at, func(d time.Duration, at float64) int {
			return cmp.Compare(d.Seconds(), at)
		})
		return n
	}
	return int64(until(to) - until(from))
}

// bytes are those sent from an instant to another, evenly between two evaluations.
func bytes(curve []record.Evaluation, from, to float64) float64 {
	until := func(at float64) float64 {
		n, _ := slices.BinarySearchFunc(curve, at, func(e record.Evaluation, at float64) int {
			return cmp.Compare(e.Time, at)
		})
		before := record.Evaluation{}
		if n > 0 {
			before = curve[n-1]
		}
		if n == len(curve) {
			return float64(before.Bytes)
		}
		share := (at - before.Time) / (curve[n].Time - before.Time)
		return float64(before.Bytes) + share*float64(curve[n].Bytes-before.Bytes)
	}
	return until(to) - until(from)
}
