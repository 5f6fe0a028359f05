package consistency

import (
	"fmt"
	"slices"
	"time"
)

// Clocks are the clocks of a run's workers, by the positions of their nodes. They belong to one
// actor. Their methods take time in proportion to the number of workers at most.
type Clocks struct {
	model   Model
	bound   uint64
	ahead   uint64
	workers []clock
	slowest uint64 // of those that are there; the last one while nobody is
	present int
	bottom  int  // workers at the slowest clock
	moved   bool // the slowest clock has, since Ready was asked
	pushed  int  // the worker that has just pushed, or −1
	ready   []int
}

// clock is that of one worker.
type clock struct {
	there          bool
	rounds         uint64 // that it has pushed
	finished       uint64 // that it has heard of, at most as many
	last, previous time.Duration
	pushes         int
	granted        uint64 // see DSSP
}

// New returns the clocks of as many nodes as a run has, of which none is there yet.
func New(m Model, nodes int) *Clocks {
	return &Clocks{model: m, bound: m.Bound(), ahead: m.Ahead(), workers: make([]clock, nodes), pushed: -1}
}

// Join has a worker begin at the slowest clock.
func (c *Clocks) Join(worker int) {
	c.Leave(worker)
	c.workers[worker] = clock{there: true, rounds: c.slowest, finished: c.slowest}
	c.present++
	c.bottom++
}

// Leave has a worker hold nobody back from now on.
func (c *Clocks) Leave(worker int) {
	w := &c.workers[worker]
	if !w.there {
		return
	}
	w.there = false
	c.present--
	if w.rounds == c.slowest {
		c.bottom--
		c.settle()
	}
}

// Return has a worker that has left after a push wait for what it waited for then; it takes the
// slowest clock if its own is below that.
func (c *Clocks) Return(worker int) {
	w := &c.workers[worker]
	w.there = true
	w.rounds = max(w.rounds, c.slowest)
	w.finished = min(w.finished, w.rounds-1)
	c.present++
	switch {
	case c.present == 1: // the others are not back yet, and are at least as far as the slowest
		c.slowest, c.bottom = w.rounds, 1
	case w.rounds == c.slowest:
		c.bottom++
	case w.rounds < c.slowest: // of others that have returned before
		c.slowest, c.bottom = w.rounds, 1
	}
	c.moved = true
}

// settle finds the slowest clock when nobody is at the one that was.
func (c *Clocks) settle() {
	if c.bottom > 0 || c.present == 0 {
		return
	}
	least := uint64(Unbounded)
	for i := range c.workers {
		switch w := &c.workers[i]; {
		case !w.there || w.rounds > least:
		case w.rounds == least:
			c.bottom++
		default:
			least, c.bottom = w.rounds, 1
		}
	}
	c.moved = c.moved || least > c.slowest
	c.slowest = least
}

// Push has a worker finish a round at an instant. It returns a [*Violation] if the worker was too
// far ahead to have begun that round.
func (c *Clocks) Push(worker int, at time.Duration) error {
	w := &c.workers[worker]
	if w.there {
		if err := c.check(worker, w.rounds); err != nil {
			return err
		}
	}
	if w.rounds-w.finished > c.ahead {
		return &Violation{Worker: worker, Clock: w.rounds, Other: worker, Slowest: w.finished, Bound: c.ahead}
	}
	w.rounds++
	w.previous, w.last = w.last, at
	w.pushes++
	c.pushed = worker
	if w.there && w.rounds-1 == c.slowest {
		c.bottom--
		c.settle()
	}
	return nil
}

// Skip ends the round of those that are slowest without them, if all but a number of workers have
// finished it. It reports whether it did.
func (c *Clocks) Skip(backup int) bool {
	if backup == 0 || c.present == 0 || c.bottom > backup || c.bottom == c.present {
		return false
	}
	for i := range c.workers {
		if w := &c.workers[i]; w.there && w.rounds == c.slowest {
			if w.rounds++; w.finished == w.rounds-1 { // it computes, and need not hear of this
				w.finished++
			}
		}
	}
	c.bottom = 0
	c.settle()
	return true
}

// Ready returns the workers that have something to hear since it was last asked, in the order of
// their nodes: their next round may begin, or, if they do not wait for that, a round is finished.
// It is valid until the next call. It returns a [*Violation] if the rule has let one go too far.
func (c *Clocks) Ready() ([]int, error) {
	c.ready = c.ready[:0]
	if c.moved {
		c.moved = false
		for i := range c.workers {
			c.admit(i)
		}
	} else if c.pushed >= 0 {
		c.admit(c.pushed)
	}
	c.pushed = -1
	for _, worker := range c.ready {
		if w := &c.workers[worker]; c.ahead == 0 {
			if err := c.check(worker, w.finished); err != nil {
				return nil, err
			}
		}
	}
	return c.ready, nil
}

// admit lets a worker hear of as many of its rounds as the rule admits.
func (c *Clocks) admit(worker int) {
	w := &c.workers[worker]
	before := w.finished
	for w.there && w.finished < w.rounds && c.model.Admits(c, worker, w.finished+1, worker == c.pushed) {
		w.finished++
	}
	if w.finished > before {
		c.ready = append(c.ready, worker)
	}
}

// check returns a [*Violation] if a worker begins a round with a clock too far above another's. It
// looks at all clocks, and relies on nothing that they were summed up to.
func (c *Clocks) check(worker int, clock uint64) error {
	if c.bound == Unbounded {
		return nil
	}
	for i := range c.workers {
		if w := &c.workers[i]; w.there && i != worker && clock > w.rounds+c.bound {
			return &Violation{Worker: worker, Clock: clock, Other: i, Slowest: w.rounds, Bound: c.bound}
		}
	}
	return nil
}

// Finished is how many rounds of a worker are finished: as many as it may hear of.
func (c *Clocks) Finished(worker int) uint64 { return c.workers[worker].finished }

// Waits reports whether a worker has pushed a round that it has not heard of.
func (c *Clocks) Waits(worker int) bool {
	w := &c.workers[worker]
	return w.there && w.finished < w.rounds
}

// Slowest is the slowest clock.
func (c *Clocks) Slowest() uint64 { return c.slowest }

// fastest reports whether nobody's clock is above a worker's.
func (c *Clocks) fastest(worker int) bool {
	own := c.workers[worker].rounds
	return !slices.ContainsFunc(c.workers, func(w clock) bool { return w.there && w.rounds > own })
}

// behind is the first worker with the slowest clock.
func (c *Clocks) behind() int {
	return slices.IndexFunc(c.workers, func(w clock) bool { return w.there && w.rounds == c.slowest })
}

// pushes are the instants of a worker's last two pushes, if it has made them.
func (c *Clocks) pushes(worker int) (last, previous time.Duration, known bool) {
	w := &c.workers[worker]
	return w.last, w.previous, w.pushes > 1
}

// Violation is a worker that was further ahead than its model of consistency allows.
type Violation struct {
	// Worker is the position of its node, Clock the rounds that it had finished.
	Worker int
	Clock  uint64
	// Other is the position of the worker that was behind it; both are the same where a worker has
	// not waited for the answers to its own rounds. Slowest is the clock there.
	Other   int
	Slowest uint64
	// Bound is how many rounds apart the clocks may be.
	Bound uint64
}

func (v *Violation) Error() string {
	return v.Text(func(node int) string { return fmt.Sprintf("node %d", node) })
}

// Text is the error with the names of the nodes.
func (v *Violation) Text(name func(node int) string) string {
	if v.Other == v.Worker {
		return fmt.Sprintf("the consistency is violated: %s began a round at clock %d with answers up to %d, and %d "+
			"may be missing", name(v.Worker), v.Clock, v.Slowest, v.Bound)
	}
	return fmt.Sprintf("the consistency is violated: %s began a round at clock %d while %s was at %d, and %d apart "+
		"are allowed", name(v.Worker), v.Clock, name(v.Other), v.Slowest, v.Bound)
}
