package world

import (
	"cmp"
	"time"

	"github.com/gradwire/gradwire/actors/state"
)

// Pace says when a node made its steps.
type Pace struct {
	// Last is the instant of its latest step, or of a later interruption; 0 if there was neither.
	Last time.Duration
	// Longest is the longest time between two of its steps.
	Longest time.Duration
	// Waited says that it has waited for others, and went on.
	Waited bool

	count int // of steps since it was interrupted
}

// Step takes note that the node has made a step.
func (p *Pace) Step(at time.Duration) {
	if p.count > 0 {
		p.Longest = max(p.Longest, at-p.Last)
	}
	p.Last = max(p.Last, at)
	p.count++
}

// Interrupt takes note that the node makes no steps now for a reason that is known: until then, and
// after it, its steps say nothing of how long one takes. A node that has done nothing yet stands
// still from the beginning, whatever interrupts it.
func (p *Pace) Interrupt(at time.Duration) {
	if *p != (Pace{}) {
		p.Last, p.count = max(p.Last, at), 0
	}
}

// StillFactor is how many times as long as its longest step a node that stands still has made none.
const StillFactor = 10

// MostOf reports whether a part is most of the whole time of a run or a node: at least nine tenths.
func MostOf(part, whole time.Duration) bool { return float64(part) >= 0.9*float64(whole) }

// StoodStill reports whether a node that waits at an instant has stood still since its last step:
// for more than StillFactor times as long as it ever took from one step to the next, and for least
// or more. A node that has not made two steps has shown no such time, and longest stands in for it,
// the longest that any node of the run took. A node that has never waited for others has not shown
// how long that takes: it stands still only if a message was lost, or if it waits for most of the
// run while other nodes make steps.
func (p *Pace) StoodStill(at, longest, least time.Duration, lost bool) bool {
	pause := at - p.Last
	longest = cmp.Or(p.Longest, longest)
	return (lost || p.Waited || longest > 0 && MostOf(pause, at)) && pause > StillFactor*longest && pause >= least
}

// State declares the pace so far.
func (p *Pace) State(s *state.State) {
	state.Int(s, "last", &p.Last)
	state.Int(s, "longest", &p.Longest)
	s.Bool("waited", &p.Waited)
	state.Int(s, "count", &p.count)
}
