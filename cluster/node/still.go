package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/experiment"
)

// steps are how the nodes of a run make theirs.
type steps map[int]*pace

// pace is how a node makes its steps.
type pace struct {
	last    time.Duration // its latest step, or from when on it could make one
	longest time.Duration // between two steps that follow each other
	count   int           // of steps since it could
	waited  bool          // it has waited for others, and went on
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
			p.longest = max(p.longest, e.at-p.last)
		}
		p.last = max(p.last, e.at)
		p.count++
	case actors.Waited:
		s.of(e.node).waited = true
	}
}

func (s steps) interrupt(at time.Duration, nodes ...int) {
	for node, p := range s {
		if len(nodes) == 0 || slices.Contains(nodes, node) {
			p.last, p.count = max(p.last, at), 0
		}
	}
}

// A node that waits stands still if its latest step is stillFactor times as long ago as it ever took to the next one,
// and leastStill at least.
const leastStill = time.Second

// still reports whether a node that waits at an instant stands still. Without a pause between two steps of its own, the
// longest of any node counts. A node that has not waited for others before has not shown how long that takes:
// whether it stands still is then only known if something was lost that it can wait for.
func (p *pace) still(at, longest time.Duration, lost bool) bool {
	if p.longest > 0 {
		longest = p.longest
	}
	return at-p.last >= leastStill && at-p.last > experiment.StillFactor*longest && (lost || p.waited)
}

// waits are what nodes wait for at the end of a run.
type waits struct {
	causes map[int]string // by node; those that wait, and say for what
	lost   bool           // messages were lost that somebody may wait for
	losses string         // on emulated links
}

// waits gathers what the nodes of all processes waited for when their worlds ended.
func (c *conductor) waits() waits {
	w := waits{causes: map[int]string{}}
	if world := c.world.Load(); world != nil {
		causes, losses := world.Waits()
		maps.Copy(w.causes, causes)
		w.losses = losses
	}
	c.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(c.parties)) {
		q := c.parties[name]
		w.lost = w.lost || q.err != nil || q.first != nil || q.lives > 0
		if q.state == nil {
			continue
		}
		for node, cause := range q.state.Waits {
			w.causes[int(node)] = cause
		}
		w.losses += q.state.Losses
		for _, peer := range q.state.Peers {
			w.lost = w.lost || peer.Lost > 0
		}
	}
	c.mu.Unlock()
	w.lost = w.lost || w.losses != ""
	return w
}

// stoodStill takes down which of the nodes that are there have stood still at the end of the run. In a run in which
// nothing moved any more all those have that wait.
func (c *conductor) stoodStill(at, stalled time.Duration, w waits) {
	for node := range c.deployment.Nodes {
		cause, waiting := w.causes[node]
		if !c.roles[node].Trains || !c.history.there(at, node) {
			continue
		}
		p, longest := c.events.pace(node)
		still := p.still(at, longest, w.lost)
		switch {
		case waiting && (still || stalled > 0):
			cause = "waits for " + cause
		case !waiting && still && (stalled > 0 || w.lost): // its actor does not say what it waits for
			cause = "made no step any more"
		default:
			continue
		}
		what := fmt.Sprintf("stood still from %s on: %s", seconds(p.last), cause)
		c.history.add(p.last, c.deployment.Nodes[node].Name, what, true)
	}
}
