package link

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/cluster/link/rate"
)

// State declares the queues, the counters, the messages in flight, and the state of each edge. Restore it
// into a new network with the same nodes and configuration, after the same scheduled changes. A delay
// process of another package that depends on earlier messages must implement [state.Declared].
func (n *Network) State(s *state.State) {
	edges := n.declareEdges(s)
	lanes := n.lanes(edges)
	processes := n.processes(lanes)
	state.Column(s, "free", lanes, func(q *lane) *time.Duration { return &q.free })
	state.FloatColumn(s, "carry", lanes, func(q *lane) *float64 { return &q.carry })
	state.Column(s, "resource", lanes, func(q *lane) *int32 { return &q.resource })
	var varied []*varying
	for _, q := range lanes {
		if q.varying != nil {
			varied = append(varied, q.varying)
		}
	}
	state.FloatColumn(s, "taken", varied, func(v *varying) *float64 { return &v.taken })
	state.BoolColumn(s, "begun", varied, func(v *varying) *bool { return &v.known })
	if n.declareLate(s); n.shared != nil {
		s.Group("shared", n.declareShared)
	}
	if !s.Restoring() || n.shared == nil {
		return
	}
	for i, q := range lanes {
		if q.resource > 0 {
			n.shared.flows.Restart(q.resource-1, processes[i])
		}
	}
}

// lanes returns all queues: each node's uplink and downlink, then each edge's.
func (n *Network) lanes(edges []*Edge) []*lane {
	lanes := make([]*lane, 0, 2*len(n.nodes)+len(edges))
	for i := range n.nodes {
		lanes = append(lanes, &n.nodes[i].uplink, &n.nodes[i].downlink)
	}
	for _, e := range edges {
		lanes = append(lanes, &e.line)
	}
	return lanes
}

// processes returns the rate process of each lane; nil for a lane without a shared limit.
func (n *Network) processes(lanes []*lane) []rate.Process {
	all := make([]rate.Process, len(lanes))
	for i, q := range lanes {
		if q.resource > 0 {
			all[i] = n.shared.flows.Process(q.resource - 1)
		}
	}
	return all
}

// declareEdges declares all edges, and returns them by source and destination.
func (n *Network) declareEdges(s *state.State) []*Edge {
	bySender := n.sums != nil
	if s.Bool("by-sender", &bySender); bySender && n.sums == nil {
		n.countBySender()
	}
	var edges []*Edge
	var from, to []int32
	if !s.Restoring() {
		edges = n.all()
		for _, e := range edges {
			from, to = append(from, e.source), append(to, e.destination)
		}
	}
	state.Ints(s, "from", &from)
	if state.Ints(s, "to", &to); s.Restoring() {
		if len(from) != len(to) {
			s.Fail(fmt.Errorf("edges from %d nodes to %d", len(from), len(to)))
			return nil
		}
		for i := range from {
			edges = append(edges, n.restoredEdge(from[i], to[i]))
		}
	}
	state.Column(s, "last", edges, func(e *Edge) *time.Duration { return &e.last })
	state.Column(s, "underway", edges, func(e *Edge) *int32 { return &e.underway })
	state.Column(s, "oldest", edges, func(e *Edge) *int32 { return &e.oldest })
	state.Column(s, "newest", edges, func(e *Edge) *int32 { return &e.newest })
	state.Column(s, "channel", edges, func(e *Edge) *channel { return &e.channel })
	state.BoolColumn(s, "used", edges, func(e *Edge) *bool { return &e.used })
	stats := state.Pointers(n.sums)
	if n.sums == nil {
		for _, e := range edges {
			stats = append(stats, e.stats)
		}
	}
	s.Group("counts", func(s *state.State) { declareStats(s, stats) })
	declareProcesses(s, edges)
	return edges
}

// all returns all edges by source and destination.
func (n *Network) all() (edges []*Edge) {
	for i := range n.nodes {
		first := len(edges)
		for _, e := range n.nodes[i].out.slots {
			if e != nil {
				edges = append(edges, e)
			}
		}
		slices.SortFunc(edges[first:], func(a, b *Edge) int { return cmp.Compare(a.destination, b.destination) })
	}
	return edges
}

// restoredEdge returns an edge of the saved network. It sweeps none away.
func (n *Network) restoredEdge(src, dst int32) *Edge {
	if e := n.at(src).out.find(dst); e != nil {
		return e
	}
	return n.add(src, dst)
}

func declareStats(s *state.State, all []*Stats) {
	state.Column(s, "sent", all, func(c *Stats) *int64 { return &c.Sent })
	state.Column(s, "delivered", all, func(c *Stats) *int64 { return &c.Delivered })
	state.Column(s, "dropped", all, func(c *Stats) *int64 { return &c.Dropped })
	state.Column(s, "lost", all, func(c *Stats) *int64 { return &c.Lost })
	state.Column(s, "control", all, func(c *Stats) *int64 { return &c.Control })
	state.Column(s, "sent-bytes", all, func(c *Stats) *int64 { return &c.SentBytes })
	state.Column(s, "delivered-bytes", all, func(c *Stats) *int64 { return &c.DeliveredBytes })
	state.Column(s, "dropped-bytes", all, func(c *Stats) *int64 { return &c.DroppedBytes })
	state.Column(s, "control-bytes", all, func(c *Stats) *int64 { return &c.ControlBytes })
	state.Column(s, "delays", all, func(c *Stats) *int64 { return &c.DelayCount })
	state.Column(s, "delay-sum", all, func(c *Stats) *time.Duration { return &c.DelaySum })
	state.Column(s, "delay-max", all, func(c *Stats) *time.Duration { return &c.DelayMax })
	state.Column(s, "took-sum", all, func(c *Stats) *time.Duration { return &c.TookSum })
}

// declareProcesses declares the delay processes that depend on earlier messages.
func declareProcesses(s *state.State, edges []*Edge) {
	var all []state.Declared
	for _, e := range edges {
		if !e.law.remembers {
			continue
		}
		switch p := e.process.(type) {
		case state.Declared:
			all = append(all, p)
		case constant: // drawn from the seed and the names alone
		default:
			s.Fail(fmt.Errorf("a delay that is a %T declares no state", e.law.Delay))
		}
	}
	state.Each(s, "processes", all, func(s *state.State, _ int, p *state.Declared) { (*p).State(s) })
}

// State declares the delay of the next message.
func (w *walk) State(s *state.State) { state.Int(s, "value", &w.value) }

// declareLate declares the number of messages, by edge, that would have arrived after Horizon.
func (n *Network) declareLate(s *state.State) {
	type late struct {
		edge  [2]int32
		count int64
	}
	var all []late
	for edge, count := range n.late {
		all = append(all, late{edge, count})
	}
	slices.SortFunc(all, func(a, b late) int { return slices.Compare(a.edge[:], b.edge[:]) })
	state.List(s, "late", &all, func(s *state.State, x *late) {
		state.Int(s, "from", &x.edge[0])
		state.Int(s, "to", &x.edge[1])
		state.Int(s, "count", &x.count)
	})
	if !s.Restoring() || len(all) == 0 {
		return
	}
	n.late = map[[2]int32]int64{}
	for _, x := range all {
		n.late[x.edge] = x.count
	}
}

// declareShared declares the flows and messages of a network that shares rates.
func (n *Network) declareShared(s *state.State) {
	h := n.shared
	s.Part("flows", &h.flows)
	state.Ints(s, "vacant", &h.vacant)
	state.List(s, "messages", &h.messages, func(s *state.State, m *message) {
		from, to := int32(-1), int32(-1)
		if m.edge != nil {
			from, to = m.edge.source, m.edge.destination
		}
		state.Int(s, "from", &from)
		if state.Int(s, "to", &to); from >= 0 {
			m.edge = n.restoredEdge(from, to)
		}
		state.Int(s, "number", &m.number)
		state.Int(s, "size", &m.size)
		state.Int(s, "tries", &m.tries)
		state.Int(s, "at", &m.at)
		state.Int(s, "after", &m.after)
		s.Bool("ordered", &m.ordered)
		s.Bool("through", &m.through)
		s.Bool("lost", &m.lost)
	})
	h.ready.Declare(s, "ready", func(s *state.State, t *Transit) { state.Exported(s, t) })
}
