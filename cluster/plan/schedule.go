package plan

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// What a change may do to a link besides setting its values.
const (
	Down = "down" // an outage begins
	Up   = "up"   // an outage ends
)

// What a change may do to a node.
const (
	Crash = "crash" // it is gone at once, and the others learn of it after the plan's Detect
	Leave = "leave" // it is gone, and the others learn of it at once
	Join  = "join"  // it is there, and knows nothing
	Pause = "pause" // it handles nothing for a while
)

// MaxNodeEvents bounds what a schedule does to nodes, groups counted by their members.
const MaxNodeEvents = 1 << 20

// Change is something that happens at an instant of the run: to links, to a node, or to the
// topology. What is nil, or empty, stays as it is.
type Change struct {
	At unit.Duration `plan:"at,required" doc:"when it happens, from the start of the run"`
	// Link names two ends, both directions; or From and To name one direction, as in [Ends].
	Link  []string     `plan:"link,omitzero" doc:"the two ends of the links that change, both directions"`
	From  string       `plan:"from,omitzero" doc:"the end that sends, for one direction"`
	To    string       `plan:"to,omitzero" doc:"the end that receives, for one direction"`
	Delay *syntax.Node `plan:"delay" names:"delay" doc:"the delay from then on"`
	Rate  *Rate        `plan:"rate" doc:"the rate from then on"`
	Loss  *Loss        `plan:"loss" doc:"the loss from then on"`
	// Node is the name of the node to which something happens, or a group, which means all its
	// members. One that joins before anything else happens to it is absent when the run begins.
	// [Coordinator] can crash, leave or pause too.
	Node string `plan:"node,omitzero" doc:"the node, or group, to which something happens; the coordinator too"`
	// Do is Down or Up for links, and Crash, Leave, Join or Pause for a node.
	Do string `plan:"do,omitzero" doc:"down or up for links; crash, leave, join or pause for a node"`
	// For is how long a Pause lasts.
	For unit.Duration `plan:"for,omitzero" doc:"how long a pause lasts"`
	// Topology replaces the network's. The catalog reads it.
	Topology *syntax.Node `plan:"topology" names:"topology" doc:"the topology from then on"`
	// Source is the syntax that the change was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// Ends are the ends of the links that change.
func (c Change) Ends() Ends { return Ends{Between: c.Link, From: c.From, To: c.To} }

// OfLinks reports whether the change is one of links.
func (c Change) OfLinks() bool { return c.Node == "" && c.Topology == nil }

// NodeEvent is what the schedule does to one node.
type NodeEvent struct {
	At   unit.Duration
	Node int // position in the plan's nodes; the coordinator's is their number
	Do   string
	For  unit.Duration // of a pause
	// Source is the change that says so.
	Source *syntax.Node
}

// NodeEvents lists what the schedule does to nodes in the order of time, and of one instant in the
// order of the schedule; the members of a group one after the other.
func (p *Plan) NodeEvents() []NodeEvent {
	named := p.Names()
	named[Coordinator] = []int32{int32(len(p.Nodes))}
	var events []NodeEvent
	for _, c := range p.Schedule {
		for _, i := range named[c.Node] {
			events = append(events, NodeEvent{At: c.At, Node: int(i), Do: c.Do, For: c.For, Source: c.Source})
		}
	}
	slices.SortStableFunc(events, func(a, b NodeEvent) int { return cmp.Compare(a.At, b.At) })
	return events
}

// Absent says of each node whether it is not there when the run begins: the first that happens to
// it is that it joins.
func (p *Plan) Absent() []bool {
	absent := make([]bool, len(p.Nodes)+1)
	seen := make([]bool, len(p.Nodes)+1)
	for _, e := range p.NodeEvents() {
		if !seen[e.Node] {
			seen[e.Node], absent[e.Node] = true, e.Do == Join
		}
	}
	return absent[:len(p.Nodes)]
}

func (c *check) schedule(p *Plan) {
	before := len(c.errs)
	topologies := map[unit.Duration]*syntax.Node{}
	for _, change := range p.Schedule {
		n := change.Source
		switch node, ofNode := n.Get("node"); {
		case ofNode:
			c.alone(n, "node", "do", "for")
			c.nodeChange(node, change)
		case change.Topology != nil:
			c.alone(n, "topology")
			if first, twice := topologies[change.At]; twice {
				c.errorf(n, "the topology changes twice at %s; it does already in line %d", change.At, first.Pos.Line)
			}
			topologies[change.At] = n
		default:
			c.linkChange(change)
		}
	}
	if len(c.errs) == before {
		c.nodeEvents(p)
	}
}

// alone checks that a change of the kind that the key says has no keys but its instant, this one
// and those besides.
func (c *check) alone(n *syntax.Node, key string, besides ...string) {
	for _, f := range n.Fields {
		if f.Key != "at" && f.Key != key && !slices.Contains(besides, f.Key) {
			c.errs = append(c.errs, syntax.KeyErrorf(n, f,
				"%s does not go with %s; give what happens to links, to a node and to the topology as changes of "+
					"their own", f.Key, key))
			return
		}
	}
}

func (c *check) linkChange(change Change) {
	n := change.Source
	c.ends(n, change.Ends(), "link")
	if change.For != 0 {
		c.errorf(n.At("for"), "for is how long a pause of a node lasts; a link has do: down and do: up")
	}
	c.delay(n)
	if change.Do != "" && change.Do != Down && change.Do != Up {
		c.errs = append(c.errs, syntax.UnknownWord(n.At("do"), "change", []string{Down, Up}))
	}
	if change.Delay == nil && change.Rate == nil && change.Loss == nil && change.Do == "" {
		c.errorf(n, "this changes nothing; give one of delay, rate, loss and do")
	}
}

func (c *check) nodeChange(node *syntax.Node, change Change) {
	if change.Node != Coordinator {
		c.named(node)
	}
	do, given := change.Source.Get("do")
	switch known := []string{Crash, Leave, Join, Pause}; {
	case !given:
		c.errorf(change.Source, "what happens to %s is missing; give do: crash, leave, join or pause", change.Node)
	case !slices.Contains(known, change.Do):
		c.errs = append(c.errs, syntax.UnknownWord(do, "change of a node", known))
	case change.Do == Join && change.Node == Coordinator:
		c.errorf(do,
			"a run has its coordinator from the beginning, and none joins; accepted are crash, leave and pause")
	case change.Do == Pause && change.For == 0:
		c.errorf(change.Source, "how long the pause of %s lasts is missing; give for: 15s", change.Node)
	case change.Do != Pause && change.For != 0:
		c.errorf(change.Source.At("for"), "for is how long a pause lasts; it does not go with do: %s", change.Do)
	}
}

// happened says in errors what a node's event was.
var happened = map[string]string{Crash: "crashed", Leave: "left", Join: "joined"}

// nodeEvents checks that what happens to each node can happen to it, one thing at a time.
func (c *check) nodeEvents(p *Plan) {
	count, members := 0, map[string]int{}
	for _, n := range p.Nodes {
		members[n.Group]++
	}
	for _, change := range p.Schedule {
		if change.Node != "" {
			count += max(1, members[change.Node])
		}
		if count > MaxNodeEvents {
			c.errorf(change.Source,
				"up to here the schedule changes nodes more than %d times, groups counted by their members",
				MaxNodeEvents)
			return
		}
	}
	last := make([]*NodeEvent, len(p.Nodes)+1)
	told := map[*syntax.Node]bool{} // the changes that an error was told of: one for a group is enough
	events := p.NodeEvents()
	for i := range events {
		e := &events[i]
		before, name := last[e.Node], Coordinator
		if e.Node < len(p.Nodes) {
			name = p.Nodes[e.Node].Name
		}
		if e.Do != Pause {
			last[e.Node] = e
		}
		if before == nil || told[e.Source] || e.Do == Pause && before.Do == Join {
			continue
		}
		told[e.Source] = true
		switch at := e.Source.At("node"); {
		case before.At == e.At:
			c.errorf(at, "two things happen to node %s at %s; the other one stands in line %d", name, e.At,
				before.Source.Pos.Line)
		case e.Do == Join && before.Do == Join:
			c.errorf(at, "node %s is there at %s already: it joined at %s (line %d)", name, e.At, before.At,
				before.Source.Pos.Line)
		case e.Do != Join && before.Do != Join:
			c.errorf(at, "node %s is not there at %s: it %s at %s (line %d)", name, e.At, happened[before.Do],
				before.At, before.Source.Pos.Line)
		default:
			delete(told, e.Source)
		}
	}
}
