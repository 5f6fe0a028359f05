package node

import (
	"fmt"
	"maps"
	"time"

	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/record"
)

// waits are what nodes wait for at the end of a run.
type waits struct {
	causes map[int]string // by node; those that wait, and say for what
	lost   bool           // messages were lost that somebody may wait for
	losses string         // on emulated links
}

// waits gathers what the nodes of all processes waited for when their worlds ended.
func (c *conductor) waits() waits {
	w := waits{causes: map[int]string{}}
	if world := c.World(); world != nil {
		causes, losses := world.Waits()
		maps.Copy(w.causes, causes)
		w.losses = losses
	}
	c.mu.Lock()
	for _, name := range c.names {
		q := c.parties[name]
		w.lost = w.lost || q.missed()
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

// leastStill is how long a node of a run on several processes stands still at least.
const leastStill = time.Second

// stoodStill takes down which of the nodes that are there have stood still when they were halted.
// In a run in which nothing moved at the end, all nodes that wait stood still. It returns the
// instant of the last step of all; 0 if somebody was about to make another.
func (c *conductor) stoodStill(at, stalled time.Duration, w waits) (from time.Duration) {
	paces, longest := c.stage.Collector.Paces()
	all, there := true, false
	for node, p := range paces {
		cause, waiting := w.causes[node]
		if !c.stage.Point.Spec.Roles[node].Trains {
			continue
		}
		from = max(from, p.Last)
		p.Last = max(p.Last, c.stage.Deployment.Since(node, at))
		if !c.history.Present(at, node) {
			continue
		}
		still := p.StoodStill(at, longest, leastStill, w.lost)
		all, there = all && waiting && (still || stalled > 0), true
		switch {
		case waiting && (still || stalled > 0):
			cause = "waits for " + cause
		case !waiting && still && (stalled > 0 || w.lost): // its actor does not say what it waits for
			cause = "made no more steps"
		default:
			continue
		}
		what := fmt.Sprintf("stalled from %s on: %s", journal.Seconds(p.Last), cause)
		c.history.Add(p.Last, c.stage.Names[node], what, record.ToAll)
	}
	if all && (there || stalled > 0) {
		return from
	}
	return 0
}
