package fluid

import (
	"errors"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// State declares the active flows and the current rate of each resource. Restoring leaves the resources
// without rate processes: see Restart.
func (f *Flows) State(s *state.State) {
	known := make([]bool, len(f.bounds))
	for i := range known {
		known[i] = f.bounds[i].known
	}
	if state.Bools(s, "known", &known); s.Restoring() {
		f.bounds = make([]bound, len(known))
		for i := range known {
			f.bounds[i].known = known[i]
		}
		f.network = Network{resources: make([]resource, len(known))}
	}
	state.Column(s, "until", state.Pointers(f.bounds), func(b *bound) *time.Duration { return &b.until })
	state.Ints(s, "vacant", &f.vacant)
	state.Ints(s, "set", &f.set)
	state.Ints(s, "owners", &f.owners)
	state.Int(s, "now", &f.now)
	s.Part("network", &f.network)
	f.due.Declare(s, "due", func(s *state.State, e *event) {
		over := e.over[:]
		state.Ints(s, "over", &over)
		copy(e.over[:], over)
		state.Int(s, "count", &e.count)
		state.Float(s, "bytes", &e.bytes)
		state.Int(s, "resource", &e.resource)
		state.Int(s, "owner", &e.owner)
	})
	f.ended.Declare(s, "ended", func(s *state.State, e *Ended) { state.Exported(s, e) })
}

// Process returns the rate process of a resource; nil if the resource has no bound.
func (f *Flows) Process(r int32) rate.Process { return f.bounds[r].process }

// Restart sets the rate process of a restored resource, which starts from the beginning of the run.
func (f *Flows) Restart(r int32, p rate.Process) { f.bounds[r].process = p }

// State declares the active flows. The caller restores the number of resources first.
func (n *Network) State(s *state.State) {
	state.FloatColumn(s, "capacity", state.Pointers(n.resources), func(r *resource) *float64 { return &r.capacity })
	state.Ints(s, "vacant", &n.vacant)
	state.Ints(s, "heap", &n.heap)
	state.Int(s, "started", &n.started)
	state.List(s, "flows", &n.flows, func(s *state.State, f *flow) {
		crossed, at := f.crossed[:], f.at[:]
		state.Ints(s, "crossed", &crossed)
		state.Ints(s, "at", &at)
		copy(f.crossed[:], crossed)
		copy(f.at[:], at)
		state.Int(s, "count", &f.count)
		state.Int(s, "number", &f.number)
		state.Float(s, "bytes", &f.bytes)
		state.Float(s, "since", &f.since)
		state.Float(s, "rate", &f.rate)
		state.Float(s, "end", &f.end)
	})
	if s.Restoring() {
		s.Fail(n.rebuild())
	}
}

// rebuild lists the restored flows at the resources that they cross, in the saved order.
func (n *Network) rebuild() error {
	wrong := errors.New("the flows under way contradict each other")
	for place, id := range n.heap {
		if id < 0 || int(id) >= len(n.flows) || n.flows[id].count < 1 || n.flows[id].count > MaxCrossed {
			return wrong
		}
		f := &n.flows[id]
		f.place = int32(place)
		for slot := range f.count {
			r, at := f.crossed[slot], int(f.at[slot])
			if r < 0 || int(r) >= len(n.resources) || at < 0 || at >= len(n.heap) {
				return wrong
			}
			of := &n.resources[r]
			for len(of.crossing) <= at {
				of.crossing = append(of.crossing, crossing{flow: -1})
			}
			if of.crossing[at].flow >= 0 {
				return wrong
			}
			of.crossing[at] = crossing{id, slot}
		}
	}
	for i := range n.resources {
		if slices.ContainsFunc(n.resources[i].crossing, func(c crossing) bool { return c.flow < 0 }) {
			return wrong
		}
	}
	return nil
}
