package faults

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Check returns an error if the section faults: of a plan names nobody, or a node to which a fault
// cannot happen. roles are those of its nodes.
func Check(p *plan.Plan, roles []string) error {
	if p.Faults == nil {
		return nil
	}
	names, struck := p.Faults.Kinds()
	for i, s := range struck {
		at := p.Faults.Source.At(names[i])
		nodes, unknown := p.Whom(s.Nodes, roles)
		if unknown != "" {
			known := slices.Compact(slices.Sorted(slices.Values(roles)))
			for n := range p.Nodes {
				known = append(known, p.Nodes[n].Name)
			}
			return syntax.Errorf(at.At("nodes"), "there is no node, group or role named %s%s", syntax.Quote(unknown),
				syntax.Suggest(unknown, "known", known))
		}
		for _, n := range nodes {
			if names[i] == "slow" && p.Nodes[n].Compute.Native {
				return syntax.Errorf(at, "node %s computes as fast as the machine does (compute: native), which "+
					"nothing slows down; give it a step or a speed, or name other nodes", p.Nodes[n].Name)
			}
		}
		if several := names[i] == "cut"; several && len(nodes) < 2 {
			return syntax.Errorf(at.At("nodes"), "a cut has two sides; name two nodes or more")
		}
	}
	return nil
}

// Schedule returns a plan, of which Check has been called, with what the times at which its nodes
// are available, and then its faults, come to in a run as changes behind those of its schedule,
// each in the order of time, and without the section of faults. A plan without either is returned
// as it is.
//
// What strikes a node is drawn from streams of the seed, the node's name and the kind of fault
// alone: adding a node or another kind moves no other fault. A fault that strikes a node while it
// is away does not happen. Nodes that the schedule has come or go are struck by none.
func Schedule(p *plan.Plan, roles []string, seed uint64) *plan.Plan {
	comings := available(p, seed)
	if p.Faults == nil && len(comings) == 0 {
		return p
	}
	scheduled := *p
	scheduled.Faults, scheduled.Schedule = nil, slices.Concat(p.Schedule, comings)
	if p.Faults == nil {
		return &scheduled
	}
	d := drawer{plan: p, roles: roles, seed: seed, moved: make([]bool, len(p.Nodes)+1)}
	for _, e := range scheduled.NodeEvents() {
		d.moved[e.Node] = d.moved[e.Node] || e.Do != plan.Pause && e.Do != plan.Slow
	}
	d.draw()
	scheduled.Schedule = slices.Concat(scheduled.Schedule, d.changes())
	return &scheduled
}

// strike is a change of one node, or of several, and until when those are away.
type strike struct {
	node  int // −1 for several
	away  bool
	until unit.Duration
	plan.Change
}

// drawer draws the faults of a run.
type drawer struct {
	plan    *plan.Plan
	roles   []string
	seed    uint64
	moved   []bool // by node: the schedule has it come or go
	strikes []strike
}

// forever is when nodes are back that do not come back.
const forever = unit.Duration(1<<63 - 1)

func (d *drawer) draw() {
	f := d.plan.Faults
	if k := f.Crash; k != nil {
		d.nodes("crash", &k.Struck, length{k.Back, k.Sigma}, func(c *plan.Change) (unit.Duration, bool) {
			if c.Do = plan.Crash; c.For > 0 {
				c.Do = plan.Restart
			}
			return lasting(c.At, 0, c.For), true
		})
	}
	if k := f.Preempt; k != nil {
		d.nodes("preempt", &k.Struck, length{k.Back, k.Sigma}, func(c *plan.Change) (unit.Duration, bool) {
			c.Do, c.Notice = plan.Preempt, k.Notice
			return lasting(c.At, k.Notice, c.For), true
		})
	}
	if k := f.Pause; k != nil {
		d.nodes("pause", &k.Struck, length{k.For, k.Sigma}, func(c *plan.Change) (unit.Duration, bool) {
			c.Do = plan.Pause
			return lasting(c.At, 0, c.For), false
		})
	}
	if k := f.Slow; k != nil {
		d.nodes("slow", &k.Struck, length{k.For, k.Sigma}, func(c *plan.Change) (unit.Duration, bool) {
			c.Do, c.Factor = plan.Slow, k.Factor
			return lasting(c.At, 0, c.For), false
		})
	}
	if k := f.Cut; k != nil {
		d.together("cut", &k.Struck, length{k.For, k.Sigma}, d.cut)
	}
	if k := f.Swizzle; k != nil {
		d.together("swizzle", &k.Struck, length{k.For, k.Sigma}, d.swizzle)
	}
}

// length is how long faults last: always this long, of which 0 stands for ever, or log-normally
// with that mean.
type length struct {
	mean  unit.Duration
	sigma float64 // 0 for always
}

func (l length) draw(r *rand.Rand) unit.Duration {
	if l.sigma == 0 {
		return l.mean
	}
	median := float64(l.mean) * portable.Exp(-l.sigma*l.sigma/2)
	drawn := link.LogNormal{Median: time.Duration(median), Sigma: l.sigma}.Start(r, nil).Next(0)
	return max(unit.Duration(drawn), 1)
}

// lasting is when what began at an instant is over after some notice and some time more, of which 0
// stands for ever.
func lasting(at, notice, more unit.Duration) unit.Duration {
	if more == 0 || more > forever-at-notice {
		return forever
	}
	return at + notice + more
}

// instants calls strike with the instants of a renewal process until the horizon. strike says when
// it is over.
func (d *drawer) instants(r *rand.Rand, mtbf unit.Duration, strike func(at unit.Duration) (over unit.Duration)) {
	for at := unit.Duration(0); ; {
		gap := -float64(mtbf) * portable.Log(1-r.Float64())
		if gap >= float64(d.plan.Horizon()-at) {
			return
		}
		at += max(unit.Duration(gap), 1)
		over := strike(at)
		if over >= d.plan.Horizon() {
			return
		}
		at = over
	}
}

// nodes draws faults of single nodes. fill completes a change, and says when it is over and whether
// the node is away until then.
func (d *drawer) nodes(kind string, s *plan.Struck, lasts length,
	fill func(*plan.Change) (until unit.Duration, away bool)) {
	nodes, _ := d.plan.Whom(s.Nodes, d.roles)
	for _, node := range nodes {
		if d.moved[node] {
			continue
		}
		name := d.plan.Nodes[node].Name
		r := rand.New(actors.Source(d.seed, name, "faults: "+kind))
		d.instants(r, s.MTBF, func(at unit.Duration) unit.Duration {
			one := strike{node: node, Change: plan.Change{At: at, Node: name, For: lasts.draw(r)}}
			one.until, one.away = fill(&one.Change)
			d.strikes = append(d.strikes, one)
			return one.until
		})
	}
}

// together draws faults of several nodes at once, which come from one process.
func (d *drawer) together(kind string, s *plan.Struck, lasts length,
	strike func(r *rand.Rand, nodes []int, at, lasts unit.Duration)) {
	nodes, _ := d.plan.Whom(s.Nodes, d.roles)
	r := rand.New(actors.Source(d.seed, plan.Everyone, "faults: "+kind))
	d.instants(r, s.MTBF, func(at unit.Duration) unit.Duration {
		drawn := lasts.draw(r)
		strike(r, nodes, at, drawn)
		return lasting(at, 0, drawn)
	})
}

// cut puts nodes, or sites with their nodes, on two sides, neither of them empty, all ways to do so
// equally likely. Nodes at one site alone are cut into no two sides.
func (d *drawer) cut(r *rand.Rand, nodes []int, at, lasts unit.Duration) {
	unit := func(node int) string { return d.plan.Nodes[node].Name }
	if d.plan.Faults.Cut.Sites {
		places := d.plan.Places()
		unit = func(node int) string { return places[node] }
	}
	var units []string
	of := map[string]int{}
	for _, node := range nodes {
		if _, known := of[unit(node)]; !known {
			of[unit(node)] = len(units)
			units = append(units, unit(node))
		}
	}
	if len(units) < 2 {
		return
	}
	side := make([]int, len(units))
	for sum := 0; sum == 0 || sum == len(units); {
		sum = 0
		for i := range side {
			side[i] = r.IntN(2)
			sum += side[i]
		}
	}
	sides := make(plan.Cut, 2)
	for _, node := range nodes {
		to := side[of[unit(node)]]
		sides[to] = append(sides[to], d.plan.Nodes[node].Name)
	}
	d.strikes = append(d.strikes, strike{node: -1, Change: plan.Change{At: at, Cut: sides, For: lasts}})
}

// swizzle takes a random subset of the nodes, at least one, away in one order and back in another.
func (d *drawer) swizzle(r *rand.Rand, nodes []int, at, lasts unit.Duration) {
	half := float64(lasts) / 2
	order := r.Perm(len(nodes))
	for _, i := range order[:1+r.IntN(len(nodes))] {
		node := nodes[i]
		from := at + unit.Duration(half*r.Float64())
		to := at + unit.Duration(half+half*r.Float64())
		one := strike{node: -1, Change: plan.Change{At: from, For: max(to-from, 1)}}
		switch name := d.plan.Nodes[node].Name; {
		case !d.plan.Faults.Swizzle.Pause:
			one.Cut = plan.Cut{{name}}
		case d.moved[node]:
			continue
		default:
			one.node, one.Node, one.Do = node, name, plan.Pause
		}
		d.strikes = append(d.strikes, one)
	}
}

// changes are the strikes that happen, in the order of time.
func (d *drawer) changes() []plan.Change {
	slices.SortStableFunc(d.strikes, func(a, b strike) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.node, b.node))
	})
	back := make([]unit.Duration, len(d.plan.Nodes))
	var changes []plan.Change
	for _, s := range d.strikes {
		if s.node >= 0 {
			if s.At <= back[s.node] {
				continue
			}
			if s.away {
				back[s.node] = s.until
			}
		}
		changes = append(changes, s.Change)
	}
	return changes
}
