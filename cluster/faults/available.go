package faults

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// available are the joins and leaves of the nodes that come and go by themselves, in the order of
// time, up to the plan's stop. Who joins before it leaves is absent at first; so that this is
// known, one that never comes before the stop joins after it. The phase of a node is drawn from a
// stream of the seed and its name alone.
func available(p *plan.Plan, seed uint64) (changes []plan.Change) {
	devices := map[string]int{} // that have been taken of each file
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Available == nil {
			continue
		}
		phase, end := unit.Duration(0), p.Stop.Time
		if phases := n.Available.Phases(); phases > 0 {
			phase = unit.Duration(rand.New(actors.Source(seed, n.Name, "available")).Int64N(phases))
		}
		add := func(at unit.Duration, do string) {
			changes = append(changes, plan.Change{At: at, Node: n.Name, Do: do, Source: n.Available.Source})
		}
		for k, t := range n.Available.Times(devices[n.Available.File], phase, end) {
			if t.On > 0 && (t.On < end || k == 0) {
				add(t.On, plan.Join)
			}
			if t.Off < end {
				add(t.Off, plan.Leave)
			}
		}
		devices[n.Available.File]++
	}
	slices.SortStableFunc(changes, func(a, b plan.Change) int { return cmp.Compare(a.At, b.At) })
	return changes
}

// comingAndGoing are the names of the nodes of a plan that come and go by themselves; nil for none.
func comingAndGoing(p *plan.Plan) (names map[string]bool) {
	for i := range p.Nodes {
		if p.Nodes[i].Available != nil {
			if names == nil {
				names = map[string]bool{}
			}
			names[p.Nodes[i].Name] = true
		}
	}
	return names
}
