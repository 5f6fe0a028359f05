package plan

import (
	"cmp"
	"slices"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Faults are what happens to nodes, and between them, at random. The seed of a run draws it: see
// package faults. What is nil does not happen.
type Faults struct {
	Crash   *CrashFaults   `plan:"crash,omitzero" doc:"nodes crash, for a while or for good"`
	Pause   *PauseFaults   `plan:"pause,omitzero" doc:"nodes handle nothing for a while"`
	Slow    *SlowFaults    `plan:"slow,omitzero" doc:"what nodes compute takes several times as long for a while"`
	Preempt *PreemptFaults `plan:"preempt,omitzero" doc:"nodes get notice, leave in order within it or are killed, for a while or for good"`
	Cut     *CutFaults     `plan:"cut,omitzero" doc:"the nodes are split in two sides, by lot, between which no message departs for a while"`
	Swizzle *SwizzleFaults `plan:"swizzle,omitzero" doc:"some of the nodes, drawn by lot, are cut off one after the other, within the first half of for, and come back in another order within its second (FoundationDB's swizzle-clogging)"`
	// Until bounds the time in which faults begin. 0 stands for the plan's stop.time.
	Until unit.Duration `plan:"until,omitzero" range:">0s" doc:"no fault begins at or after this instant; default: stop.time"`
	// Source is the syntax that the section was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// Struck says whom a fault strikes and how often.
type Struck struct {
	// MTBF is the mean time between two faults, exponentially distributed: of each node, from when
	// it is over the one before, or, of a fault of several nodes, of them together.
	MTBF unit.Duration `plan:"mtbf,required" range:">0s" doc:"mean time between failures, exponentially distributed, from the end of one to the next: of each node; with cut and swizzle of all together"`
	// Nodes are names of nodes, groups or roles. Empty stands for all nodes.
	Nodes Who `plan:"nodes,omitzero" doc:"whom it strikes: nodes, groups or roles, one or a list; default: all nodes; cuts alone strike nodes that come and go by schedule or available"`
}

// longest is the longest time that is drawn where sigma is given.
const longest = unit.Duration(link.MaxDelay)

// Away says how long a node is away: always Back, or log-normally with that mean.
type Away struct {
	// Back is 0 for ever.
	Back unit.Duration `plan:"back,omitzero" range:">0s" doc:"how long a node is away, after its notice if it has any; default: for good"`
	// Sigma is the standard deviation of the natural logarithm; 0 stands for always Back.
	Sigma float64 `plan:"sigma,omitzero" range:">0..2" with:"back" doc:"standard deviation of the natural logarithm of how long a node is away, of which back is the mean then: log-normal, a year at most; default: always back"`
}

// Lasting says how long a fault lasts: always For, or log-normally with that mean.
type Lasting struct {
	For unit.Duration `plan:"for,required" range:">0s" doc:"how long it lasts"`
	// Sigma is the standard deviation of the natural logarithm; 0 stands for always For.
	Sigma float64 `plan:"sigma,omitzero" range:">0..2" doc:"standard deviation of the natural logarithm of how long it lasts, of which for is the mean then: log-normal, a year at most; default: always for"`
}

// CrashFaults are crashes at random.
type CrashFaults struct {
	Struck
	Away
}

// PauseFaults are pauses at random.
type PauseFaults struct {
	Struck
	Lasting
}

// SlowFaults are slowdowns at random.
type SlowFaults struct {
	Struck
	Factor float64 `plan:"factor,required" range:">1..1000000" doc:"how many times as long takes what a node begins to compute meanwhile"`
	Lasting
}

// PreemptFaults are preemptions at random.
type PreemptFaults struct {
	Struck
	Notice unit.Duration `plan:"notice,required" range:">0s" doc:"how long a node has to leave in order before it is killed"`
	Away
}

// CutFaults are cuts at random.
type CutFaults struct {
	Struck
	Lasting
	// Sites has whole sites be on one side.
	Sites bool `plan:"by,omitzero" words:"nodes|sites" doc:"what goes to one side or the other as a whole: nodes, or sites with all their nodes"`
}

// SwizzleFaults cut some nodes off and take them back in another order.
type SwizzleFaults struct {
	Struck
	Lasting
	// Pause has the nodes pause instead.
	Pause bool `plan:"do,omitzero" words:"cut|pause" doc:"what happens to the nodes: cut off from all others, or paused"`
}

// Who are names of nodes, groups or roles.
type Who []string

// UnmarshalPlan reads a name or a list of names.
func (w *Who) UnmarshalPlan(n *syntax.Node) error {
	if n.Kind == syntax.Scalar {
		*w = Who{n.Text}
		return nil
	}
	return settings.Decode(n, (*[]string)(w))
}

// PlanSchema is a name or a list of names.
func (*Who) PlanSchema() *settings.Schema {
	return &settings.Schema{AnyOf: []*settings.Schema{settings.SchemaOf(new(string)), settings.SchemaOf(new([]string))}}
}

// Horizon is when the last fault may begin.
func (p *Plan) Horizon() unit.Duration { return cmp.Or(p.Faults.Until, p.Stop.Time) }

// Kinds are the faults that may happen, by key, in a fixed order.
func (f *Faults) Kinds() (names []string, struck []*Struck) {
	add := func(name string, s *Struck) { names, struck = append(names, name), append(struck, s) }
	if f.Crash != nil {
		add("crash", &f.Crash.Struck)
	}
	if f.Preempt != nil {
		add("preempt", &f.Preempt.Struck)
	}
	if f.Pause != nil {
		add("pause", &f.Pause.Struck)
	}
	if f.Slow != nil {
		add("slow", &f.Slow.Struck)
	}
	if f.Cut != nil {
		add("cut", &f.Cut.Struck)
	}
	if f.Swizzle != nil {
		add("swizzle", &f.Swizzle.Struck)
	}
	return names, struck
}

// faults checks the section as far as it needs no names of roles.
func (c *check) faults(p *Plan) {
	if p.Faults == nil {
		return
	}
	at := p.Faults.Source
	names, struck := p.Faults.Kinds()
	if p.Horizon() == 0 {
		c.errorf(at, "faults need an end, or a run would never be without one to come; give stop: {time: 10m}, or "+
			"here until: 10m")
		return
	}
	strikes := 0.0
	for i, s := range struck {
		if strikes += float64(p.Horizon()) / float64(s.MTBF) * float64(len(p.Nodes)); strikes > MaxNodeEvents {
			c.errorf(at.At(names[i]), "up to here more than %d faults of single nodes can be expected until %s; give "+
				"a longer mtbf", MaxNodeEvents, p.Horizon())
			return
		}
	}
	cuts := p.Faults.Cut != nil || p.Faults.Swizzle != nil && !p.Faults.Swizzle.Pause
	if p.Network.None && cuts {
		c.errorf(at, "this cuts links, where network is none and nothing is emulated; leave this out, or describe a "+
			"network")
	}
	if p.Faults.Cut != nil && p.Faults.Cut.Sites && len(p.Network.Sites) == 0 {
		c.errorf(at.At("cut").At("by"), "the network has no sites; accepted is nodes, or a network with sites:")
	}
}

// Whom returns the positions of the nodes that are named, ascending, given the role of each node,
// and the first name that is none of a node, a group or a role; empty if there is none.
func (p *Plan) Whom(w Who, roles []string) (nodes []int, unknown string) {
	named := p.Names()
	if len(w) == 0 {
		w = Who{Everyone}
	}
	for _, name := range w {
		before := len(nodes)
		for i, role := range roles {
			if role == name {
				nodes = append(nodes, i)
			}
		}
		for _, i := range named[name] {
			nodes = append(nodes, int(i))
		}
		if len(nodes) == before {
			return nil, name
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), ""
}
