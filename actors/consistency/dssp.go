package consistency

import (
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// DSSP is SSP whose bound moves between Low and High with the speeds of the workers: the fastest
// one, if it is Low rounds ahead, is granted as many more as let it wait least for the slowest, by
// the intervals between their last pushes (X. Zhao et al., "Dynamic Stale Synchronous Parallel
// Distributed Training for Deep Learning", ICDCS 2019, algorithms 1 and 2). Equal bounds are SSP.
type DSSP struct {
	Low  uint64 `plan:"low,required" range:"0..65536" counts:"lead=rounds" doc:"rounds that any worker may be ahead of the slowest"`
	High uint64 `plan:"high,required" range:"0..65536" counts:"lead=rounds" doc:"rounds that the fastest worker may be granted to be ahead"`
}

// Bound is the higher one.
func (m DSSP) Bound() uint64 { return m.High }

// Ahead is 0.
func (DSSP) Ahead() uint64 { return 0 }

// Validate returns an error about the first bound that makes no sense.
func (m DSSP) Validate() error {
	if err := field.Check(m); err != nil {
		return err
	}
	if m.High < m.Low {
		return field.Errorf(m, "High", "at least low, which is %d", m.Low)
	}
	return nil
}

// Admits a worker that is near enough, that has been granted a round, or that is granted some now.
func (m DSSP) Admits(c *Clocks, worker int, clock uint64, pushed bool) bool {
	granted := &c.workers[worker].granted
	switch {
	case clock > c.slowest+m.High:
		return false
	case pushed && *granted > 0:
		*granted--
		return true
	case clock <= c.slowest+m.Low:
		return true
	case !pushed || !c.fastest(worker):
		return false
	}
	rounds := m.rounds(c, worker)
	if rounds == 0 {
		return false
	}
	*granted = rounds - 1
	return true
}

// rounds is how many more rounds let the worker wait least: both go on at the pace of their last
// interval, and it is to push shortly before or after the slowest does. It is 0 while one of them
// has pushed less than twice.
func (m DSSP) rounds(c *Clocks, worker int) (best uint64) {
	own, before, known := c.pushes(worker)
	slow, slowBefore, also := c.pushes(c.behind())
	if !known || !also {
		return 0
	}
	least := time.Duration(-1)
	for n := range m.High - m.Low + 1 {
		at := own + time.Duration(n)*(own-before)
		if wait := m.wait(at, slow, slow-slowBefore); least < 0 || wait < least {
			least, best = wait, n
		}
	}
	return best
}

// wait is how far an instant is from the nearest of the slowest worker's next pushes, the first of
// which comes one interval after its last.
func (m DSSP) wait(at, last, interval time.Duration) time.Duration {
	k := time.Duration(1)
	if interval > 0 {
		k = min(max((at-last+interval/2)/interval, 1), time.Duration(m.High-m.Low+1))
	}
	return (at - last - k*interval).Abs()
}
