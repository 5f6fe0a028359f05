package faults

import (
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// Tally counts the samples of a run that count, and hands on what it observes. Its methods may be
// called from many goroutines.
//
// Two runs are compared by what happened before an instant, see [Tally.Before]: which of the steps
// of one instant come before the end of a run depends on what ends it.
//
// A sample counts when it is processed. It is lost if its node crashes or leaves for good, or comes
// back as one that knows nothing, before another node took in what came of it: an UpdateApplied of
// its node after the step, or a Merged of a model that had it. Where nodes take in joint updates
// alone, as in an all-reduce, and no node's events tell of others, a node's own UpdateApplied says
// so. All samples are lost that were processed before an instant at which no node was there that
// holds a model.
type Tally struct {
	to       world.Observer
	schedule []world.NodeChange
	holds    []bool

	mu      sync.Mutex
	until   time.Duration // events from then on do not count; 0 for all
	next    int           // change of the schedule
	there   []bool
	holders int
	nodes   []worked
	foreign bool // some node's event tells of another's work
	shed    counts
	total   uint64
}

// counts are samples, by what the run's events tell of: other nodes' work, or a node's own alone.
type counts struct{ foreign, own uint64 }

// worked is what a node has processed and nobody else has taken in, as far as is known.
type worked struct {
	steps []batch    // the latest, by rising step
	last  [2]stamped // instants of the latest steps
	own   uint64     // samples since its own latest update
	gone  bool       // and when it joins it knows nothing of this
}

// batch are steps, one after the other, of as many samples each.
type batch struct {
	first, count uint64
	samples      uint64
}

var _ world.Observer = (*Tally)(nil)

// stamped are samples of one instant. A node that spends time in a handler records what follows at
// a later one than the present, and does nothing else until then.
type stamped struct {
	at      time.Duration
	samples uint64
}

// stamp notes the instant of a step.
func (w *worked) stamp(at time.Duration, samples uint64) {
	if at > w.last[1].at {
		w.last = [2]stamped{w.last[1], {at: at}}
	}
	w.last[1].samples += samples
}

// NewTally returns a tally of a deployment, of whose nodes some hold a model, that hands what it
// observes on.
func NewTally(to world.Observer, d *world.Deployment, holders []int) *Tally {
	n := len(d.Nodes)
	t := &Tally{to: to, schedule: d.Schedule, holds: make([]bool, n), there: make([]bool, n), nodes: make([]worked, n)}
	for _, h := range holders {
		t.holds[h] = true
	}
	for i := range d.Nodes {
		if t.there[i] = !d.Nodes[i].Absent; t.there[i] && t.holds[i] {
			t.holders++
		}
	}
	return t
}

// Until has the tally count nothing that happens at an instant or later.
func (t *Tally) Until(at time.Duration) { t.until = at }

// Observe counts an event and hands it on.
func (t *Tally) Observe(at time.Duration, node int, event actors.Event) {
	t.to.Observe(at, node, event)
	switch event.Kind {
	case actors.StepDone, actors.UpdateApplied, actors.Merged:
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until > 0 && at >= t.until {
		return
	}
	t.pass(at)
	if node < 0 || node >= len(t.nodes) {
		return
	}
	switch event.Kind {
	case actors.StepDone:
		samples := uint64(max(event.Samples, 0))
		t.total += samples
		t.nodes[node].step(event.Step, samples)
		t.nodes[node].stamp(at, samples)
	case actors.UpdateApplied:
		if event.Origin == node {
			t.nodes[node].own = 0
		} else {
			t.taken(event.Origin, 1<<63)
		}
	case actors.Merged:
		if event.Origin != node {
			t.taken(event.Origin, event.Step)
		}
	}
}

// taken notes that another node has taken in what came of a node's steps up to one.
func (t *Tally) taken(node int, step uint64) {
	if node < 0 || node >= len(t.nodes) {
		return
	}
	t.foreign = true
	w := &t.nodes[node]
	for len(w.steps) > 0 {
		b := &w.steps[0]
		if b.first > step {
			return
		}
		if last := b.first + b.count - 1; last > step {
			b.first, b.count = step+1, last-step
			return
		}
		w.steps = w.steps[1:]
	}
}

// step adds a step of some samples.
func (w *worked) step(number, samples uint64) {
	w.own += samples
	if n := len(w.steps); n > 0 {
		b := &w.steps[n-1]
		if b.samples == samples && b.first+b.count == number {
			b.count++
			return
		}
	}
	w.steps = append(w.steps, batch{first: number, count: 1, samples: samples})
}

// lose adds what nobody has taken in to what is lost; t.mu is held.
func (t *Tally) lose(w *worked) {
	for _, b := range w.steps {
		t.shed.foreign += b.count * b.samples
	}
	t.shed.own += w.own
	*w = worked{}
}

// pass carries out the schedule up to an instant; t.mu is held.
func (t *Tally) pass(at time.Duration) {
	for ; t.next < len(t.schedule) && t.schedule[t.next].At <= at; t.next++ {
		c := &t.schedule[t.next]
		if c.Node >= len(t.nodes) {
			continue // the coordinator
		}
		w := &t.nodes[c.Node]
		switch {
		case c.Ends() && t.there[c.Node]:
			w.gone = true
			t.appear(c.Node, false)
		case c.Do == world.Join && !t.there[c.Node]:
			t.lose(w)
			t.appear(c.Node, true)
		}
	}
}

// appear notes that a node is there or not; t.mu is held.
func (t *Tally) appear(node int, there bool) {
	t.there[node] = there
	switch {
	case !t.holds[node]:
	case there:
		t.holders++
	default:
		if t.holders--; t.holders == 0 { // the model is gone with all that went into it
			t.shed = counts{t.total, t.total}
			for i := range t.nodes {
				t.nodes[i] = worked{gone: t.nodes[i].gone}
			}
		}
	}
}

// Close returns the samples that count at the end of the run, at an instant, and those that were
// lost.
func (t *Tally) Close(at time.Duration) (counted, lost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.close(at)
}

// Before is Close without the steps of the last instant of the run, and without what happened to
// nodes then.
func (t *Tally) Before(last time.Duration) (counted, lost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	counted, lost = t.close(last - 1)
	for i := range t.nodes {
		for _, s := range t.nodes[i].last {
			if s.at >= last {
				counted -= s.samples
			}
		}
	}
	return counted, lost
}

// close is Close with t.mu held.
func (t *Tally) close(at time.Duration) (counted, lost uint64) {
	t.pass(at)
	for i := range t.nodes {
		if t.nodes[i].gone {
			t.lose(&t.nodes[i])
		}
	}
	lost = t.shed.own
	if t.foreign {
		lost = t.shed.foreign
	}
	return t.total - lost, lost
}
