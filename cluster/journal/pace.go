package journal

import (
	"cmp"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/record"
)

// steps are how the nodes of a run make theirs.
type steps map[int]*pace

// pace is how a node makes its steps. Its Last may also be the instant from which on it could make
// one.
type pace struct {
	record.Pace
	count  int  // of steps since it could
	waited bool // it has waited for others, and went on
}

func (s steps) of(node int) *pace {
	p := s[node]
	if p == nil {
		p = &pace{}
		s[node] = p
	}
	return p
}

func (s steps) take(e *gathered) {
	switch e.event.Kind {
	case actors.StepDone:
		p := s.of(e.node)
		if p.count > 0 {
			p.Longest = max(p.Longest, e.at-p.Last)
		}
		p.Last = max(p.Last, e.at)
		p.count++
	case actors.Waited:
		s.of(e.node).waited = true
	}
}

func (s steps) interrupt(at time.Duration, nodes ...int) {
	for node, p := range s {
		if len(nodes) == 0 || slices.Contains(nodes, node) {
			p.Last, p.count = max(p.Last, at), 0
		}
	}
}

// StillFactor is how many times as long as its longest step a node that stands still has made none.
const StillFactor = 10

// StoodStill reports whether a node that waits at an instant has stood still since its last step:
// for more than StillFactor times as long as it ever took from one step to the next, and for least
// or more. Of a node that has not made two steps nobody knows that: longest takes its place, as any
// node of the run took.
func StoodStill(p record.Pace, longest, at, least time.Duration) bool {
	pause := at - p.Last
	return pause > StillFactor*cmp.Or(p.Longest, longest) && pause >= least
}

// leastStill is how long a node of a run on several processes stands still at least.
const leastStill = time.Second

// still reports whether a node that waits at an instant stands still. One that has not waited for
// others before has not shown how long that takes: whether it stands still is then only known if
// something was lost that it can wait for.
func (p *pace) still(at, longest time.Duration, lost bool) bool {
	return (lost || p.waited) && StoodStill(p.Pace, longest, at, leastStill)
}
