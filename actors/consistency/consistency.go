// Package consistency says when a worker that trains beside others may go on: how far apart their
// clocks may be.
//
// A worker's clock is the number of rounds that it has finished: of gradients, or of sums of them,
// that whoever keeps the clocks has had from it. Each model bounds how many rounds a worker may be
// ahead of the slowest one when it begins a round, from bulk-synchronous (0) to asynchronous (no
// bound). [Clocks] keeps the clocks of a run by a model, and checks the bound.
package consistency

import (
	"math"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Unbounded is the bound of a model that has none.
const Unbounded = math.MaxUint64

// Model is a model of consistency.
type Model interface {
	// Bound is how many rounds a worker may be ahead of the slowest one when it begins a round.
	// With 0 nobody sees a round of which the gradients are not all there.
	Bound() uint64
	// Ahead is how many of a worker's own rounds may be unanswered when it begins the next.
	Ahead() uint64
	// Admits reports whether one more round of a worker is finished, so that the worker hears of
	// it: the one with which its clock becomes clock. Pushed tells that the worker has just pushed
	// it; otherwise it has waited, and the slowest clock has moved.
	Admits(c *Clocks, worker int, clock uint64, pushed bool) bool
}

// ASP is asynchronous: nobody waits for anybody. See J. Dean et al., "Large Scale Distributed Deep
// Networks", NIPS 2012, section 4.1.
type ASP struct{}

// Bound is none.
func (ASP) Bound() uint64 { return Unbounded }

// Ahead is 0: a worker goes on with the answer to its push.
func (ASP) Ahead() uint64 { return 0 }

// Admits everybody.
func (ASP) Admits(*Clocks, int, uint64, bool) bool { return true }

// BSP is bulk-synchronous: a round begins when all workers have finished the one before (L. G.
// Valiant, "A Bridging Model for Parallel Computation", Communications of the ACM 33(8), 1990).
type BSP struct{}

// Bound is 0.
func (BSP) Bound() uint64 { return 0 }

// Ahead is 0.
func (BSP) Ahead() uint64 { return 0 }

// Admits a worker when the slowest is as far.
func (BSP) Admits(c *Clocks, _ int, clock uint64, _ bool) bool { return clock <= c.slowest }

// SSP is stale-synchronous: a worker begins a round if the slowest is no more than Bound rounds
// behind. What it reads then has all updates that others have made up to Bound + 1 rounds before,
// perhaps later ones, and always its own. A bound of 0 is BSP (Q. Ho et al., "More Effective
// Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, section 3).
type SSP struct {
	Rounds uint64 `plan:"bound,required" range:"0..1048576" counts:"lead=rounds" doc:"rounds that a worker may be ahead of the slowest; 0 is bsp"`
}

// Bound is the number of rounds.
func (m SSP) Bound() uint64 { return m.Rounds }

// Ahead is 0.
func (SSP) Ahead() uint64 { return 0 }

// Admits a worker when the slowest is near enough.
func (m SSP) Admits(c *Clocks, _ int, clock uint64, _ bool) bool { return clock <= c.slowest+m.Rounds }

// Validate returns an error about a bound out of range.
func (m SSP) Validate() error { return field.Check(m) }

// BoundedDelay is over tasks: a task is one round of all workers, and it is finished when the
// gradients of all of them have been applied. A worker does not wait for the answers to its pushes:
// it begins a round, with the latest parameters that it has, when all tasks more than Tasks before
// have finished. 0 is sequential, which is BSP, and no bound is eventual (M. Li et al., "Scaling
// Distributed Machine Learning with the Parameter Server", OSDI 2014, sections 3.4 and 5.1).
type BoundedDelay struct {
	// Tasks is the bound; −1 stands for none.
	Tasks int64 `plan:"bound" range:"0..1048576" none:"-1" counts:"lead=rounds of all workers" doc:"tasks, each a round of all workers, that may be unfinished when a worker begins the next; 0 is sequential; left out: any number, eventual"`
}

// Bound is the number of tasks.
func (m BoundedDelay) Bound() uint64 {
	if m.Tasks < 0 {
		return Unbounded
	}
	return uint64(m.Tasks)
}

// Ahead is the number of tasks.
func (m BoundedDelay) Ahead() uint64 { return m.Bound() }

// Admits a worker's round when all workers have finished it; with no bound at once.
func (m BoundedDelay) Admits(c *Clocks, _ int, clock uint64, _ bool) bool {
	return m.Tasks < 0 || clock <= c.slowest
}

// Validate returns an error about a bound out of range.
func (m BoundedDelay) Validate() error { return field.Check(m) }
