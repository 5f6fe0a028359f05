package plan

import (
	"cmp"
	"slices"
	"strings"

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
	// Restart: it crashes, and joins again after a while.
	Restart = "restart"
	// Slow: what it computes takes several times as long for a while.
	Slow = "slow"
	// Preempt: it leaves, is killed if it has not left within its notice, and may join again.
	Preempt = "preempt"

	// Killed is the end of a [Preempt]: the node crashes, unless it has left. No schedule says it.
	Killed = "killed"
)

// nodeWords are what a schedule can do to nodes.
var nodeWords = []string{Crash, Leave, Join, Pause, Restart, Slow, Preempt}

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
	// Reorder lets messages overtake each other from then on, or not.
	Reorder *bool `plan:"reorder" doc:"whether a message may overtake one that was sent before it, from then on"`
	// Cut are nodes that are cut off from others for a while.
	Cut Cut `plan:"cut,omitzero" doc:"two sides, between which no message departs for a while, as in an outage: [a, b] or [[a, b], [c]], of nodes, groups or sites; one side alone is cut off from everyone else"`
	// Node is the name of the node to which something happens, or a group, which means all its
	// members. One that joins before anything else happens to it is absent when the run begins.
	// [Coordinator] can crash, leave or pause too, of which the first two end the run.
	Node string `plan:"node,omitzero" doc:"the node, or group, to which something happens; the coordinator too"`
	// Do is Down or Up for links, and for a node Crash, Leave, Join, Pause, Restart, Slow or
	// Preempt.
	Do string `plan:"do,omitzero" doc:"down or up for links; crash, leave, join, pause, restart, slow or preempt for a node"`
	// For is how long a Pause, a Slow or a Cut lasts, and how long a node is away that a Restart
	// has crash, or a Preempt end. 0 means after a Preempt that the node does not come back.
	For unit.Duration `plan:"for,omitzero" doc:"how long a pause, a slow or a cut lasts, and how long a restart or a preempt keeps a node away, from its crash or the end of its notice on; a preempt without it is for good"`
	// Factor is how many times as long what a node computes takes under Slow.
	Factor float64 `plan:"factor,omitzero" range:">1..1000000" doc:"of do: slow: how many times as long takes what the node begins to compute meanwhile"`
	// Notice is how long a node has to leave under Preempt.
	Notice unit.Duration `plan:"notice,omitzero" doc:"of do: preempt: how long the node has to leave in order before it is killed"`
	// Topology replaces the network's. The catalog reads it.
	Topology *syntax.Node `plan:"topology" names:"topology" doc:"the topology from then on"`
	// Source is the syntax that the change was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// Ends are the ends of the links that change.
func (c Change) Ends() Ends { return Ends{Between: c.Link, From: c.From, To: c.To} }

// OfLinks reports whether the change is one of links.
func (c Change) OfLinks() bool { return c.Node == "" && c.Topology == nil && c.Cut == nil }

// NodeEvent is what the schedule does to one node.
type NodeEvent struct {
	At   unit.Duration
	Node int // position in the plan's nodes; the coordinator's is their number
	// Do is Crash, Leave, Join, Pause, Slow or Killed, of which the other words are made.
	Do  string
	For unit.Duration // of a pause or a slow
	// Factor is of a slow.
	Factor float64
	// Source is the change that says so.
	Source *syntax.Node
}

// NodeEvents lists what the schedule does to nodes in the order of time, and of one instant in the
// order of the schedule; the members of a group one after the other. A restart is a crash and a
// join, a preempt a leave, a kill and a join.
func (p *Plan) NodeEvents() []NodeEvent {
	named := p.Names()
	named[Coordinator] = []int32{int32(len(p.Nodes))}
	var events []NodeEvent
	for _, c := range p.Schedule {
		for _, i := range named[c.Node] {
			events = append(events, c.events(int(i))...)
		}
	}
	slices.SortStableFunc(events, func(a, b NodeEvent) int { return cmp.Compare(a.At, b.At) })
	return events
}

// events are what a change does to a node that it names.
func (c *Change) events(node int) []NodeEvent {
	at := func(at unit.Duration, do string) NodeEvent {
		return NodeEvent{At: at, Node: node, Do: do, Source: c.Source}
	}
	var events []NodeEvent
	end := c.At
	switch c.Do {
	case Restart:
		events = append(events, at(c.At, Crash))
	case Preempt:
		end += c.Notice
		events = append(events, at(c.At, Leave), at(end, Killed))
	default:
		e := at(c.At, c.Do)
		e.For, e.Factor = c.For, c.Factor
		return []NodeEvent{e}
	}
	if c.For > 0 {
		events = append(events, at(end+c.For, Join))
	}
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
	c.spans(p)
	topologies := map[unit.Duration]*syntax.Node{}
	for _, change := range p.Schedule {
		n := change.Source
		switch node, ofNode := n.Get("node"); {
		case ofNode:
			c.alone(n, "node", "do", "for", "factor", "notice")
			c.nodeChange(node, change)
		case change.Cut != nil:
			c.alone(n, "cut", "for")
			c.cutChange(p, change)
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
	for _, key := range []string{"for", "factor", "notice"} {
		if at, given := n.Get(key); given {
			c.errorf(at, "%s goes with what happens to a node; a link has do: down and do: up", key)
		}
	}
	c.delay(n)
	c.checkAction(n)
	if change.Delay == nil && change.Rate == nil && change.Loss == nil && change.Reorder == nil && change.Do == "" {
		c.errorf(n, "this changes nothing; give one of delay, rate, loss, reorder and do")
	}
}

// checkAction reports whether the key do of a change of links or of a node has an accepted word or is absent,
// and adds an error if not.
func (c *check) checkAction(n *syntax.Node) bool {
	what, words := "change", []string{Down, Up}
	if _, ofNode := n.Get("node"); ofNode {
		what, words = "change of a node", nodeWords
	}
	do, given := n.Get("do")
	if given && !slices.Contains(words, do.Text) {
		c.errs = append(c.errs, syntax.UnknownWord(do, what, words))
		return false
	}
	return true
}

// lasting are the words that need for:, with what it is then.
var lasting = map[string]string{Pause: "the pause of %s lasts", Slow: "%s is slow", Restart: "%s is away"}

func (c *check) nodeChange(node *syntax.Node, change Change) {
	if change.Node != Coordinator {
		c.named(node)
	}
	_, given := change.Source.Get("do")
	long, lasts := lasting[change.Do]
	switch {
	case !given:
		c.errorf(change.Source, "what happens to %s is missing; give do: %s", change.Node, listed(nodeWords, "or"))
		return
	case !c.checkAction(change.Source):
		return
	case change.Node == Coordinator && !slices.Contains([]string{Crash, Leave, Pause}, change.Do):
		c.errorf(change.Source.At("do"), "a run has its coordinator from the beginning, it computes in no time, and "+
			"none joins; accepted are crash, leave and pause")
	case lasts && change.For == 0:
		c.errorf(change.Source, "how long "+long+" is missing; give for: 15s", change.Node)
	}
	c.goesWith(change, "for", change.For != 0 && !lasts && change.Do != Preempt, Pause, Restart, Slow, Preempt)
	c.goesWith(change, "factor", change.Factor != 0 && change.Do != Slow, Slow)
	c.goesWith(change, "notice", change.Notice != 0 && change.Do != Preempt, Preempt)
	if change.Do == Slow && change.Factor == 0 {
		c.errorf(change.Source, "how many times slower %s is is missing; give factor: 4", change.Node)
	}
	if change.Do == Preempt && change.Notice == 0 {
		c.errorf(change.Source, "how long %s has to leave is missing; give notice: 30s", change.Node)
	}
}

// goesWith reports a key of a node's change that stands beside a word that has no use for it.
func (c *check) goesWith(change Change, key string, fault bool, words ...string) {
	if fault {
		c.errorf(change.Source.At(key), "%s goes with do: %s; it does not go with do: %s", key, listed(words, "and"),
			change.Do)
	}
}

// listed writes words as in a, b or c.
func listed(words []string, last string) string {
	if len(words) == 1 {
		return words[0]
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}

// happened says in errors what a node's event was.
var happened = map[string]string{Crash: "crashed", Leave: "left", Join: "joined",
	Killed: "was to be killed, if it had not left,"}

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
			c.slowed(e, &p.Nodes[e.Node], told)
		}
		passing := e.Do == Pause || e.Do == Slow
		if !passing {
			last[e.Node] = e
		}
		if before == nil || told[e.Source] || passing && before.Do == Join {
			continue
		}
		told[e.Source] = c.after(e, before, name)
	}
}

// slowed reports a node that cannot be slowed down, because nothing that it computes is emulated.
func (c *check) slowed(e *NodeEvent, n *NodeSpec, told map[*syntax.Node]bool) {
	if e.Do == Slow && n.Compute.Native && !told[e.Source] {
		told[e.Source] = true
		c.errorf(e.Source.At("do"), "node %s computes as fast as the machine does (compute: native), which nothing "+
			"slows down; give it a step or a speed", n.Name)
	}
}

// after reports an event that cannot happen to a node after another one.
func (c *check) after(e, before *NodeEvent, name string) (fault bool) {
	at := e.Source.At("node")
	switch there := before.Do == Join; {
	case before.At == e.At:
		c.errorf(at, "two things happen to node %s at %s; the other one stands in line %d", name, e.At,
			before.Source.Pos.Line)
	case e.Do == Join && there:
		c.errorf(at, "node %s is there at %s already: it joined at %s (line %d)", name, e.At, before.At,
			before.Source.Pos.Line)
	case e.Do == Killed && there:
		c.errorf(at, "node %s joined at %s (line %d), before the notice that it got was over, at %s", name, before.At,
			before.Source.Pos.Line, e.At)
	case e.Do != Join && e.Do != Killed && !there:
		c.errorf(at, "node %s is not there at %s: it %s at %s (line %d)", name, e.At, happened[before.Do],
			before.At, before.Source.Pos.Line)
	default:
		return false
	}
	return true
}
