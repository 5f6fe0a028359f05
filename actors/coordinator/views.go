package coordinator

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// views is who takes part in the run, which its coordinator alone decides.
type views struct {
	number   uint64   // of the view
	gone     []bool   // by node
	leaving  []bool   // by node: it is gone, and hands over what it holds
	first    []uint64 // by node: the first evaluation of which its present life may be asked
	fresh    []bool   // by node: it joined a run under way and is not known to hold a trained model
	topology int
	hold     []bool // by node: it holds a model
	there    int    // holders that are not gone
	order    []int  // holders, in the order in which their models are preferred to be looked at
}

func newViews(env actors.Env, holders []int) views {
	v := env.View()
	n := len(v.Members)
	views := views{number: v.Number, gone: make([]bool, n), leaving: make([]bool, n),
		first: make([]uint64, n), fresh: make([]bool, n), hold: make([]bool, n), order: slices.Clone(holders)}
	for i := range v.Members {
		views.gone[i] = !v.Members[i].Present
	}
	for _, node := range holders {
		views.hold[node] = true
		if !views.gone[node] {
			views.there++
		}
	}
	return views
}

// draw draws whose models are preferred, where not all are looked at.
func (c *coordinator) draw() {
	if s := c.run.Policy.Sample; s > 0 && s < len(c.order) {
		for i, k := range c.env.Rand("sample of models").Perm(len(c.order)) {
			c.order[i] = c.run.Holders[k]
		}
	}
}

// looked are the nodes whose models are asked for now, in the order of the plan. Nodes that may
// hold no trained model yet are asked beside a sample, and take no place in it.
func (c *coordinator) looked() []int {
	var nodes []int
	sampled := 0
	for _, node := range c.order {
		if c.run.Joint && len(nodes) == 1 {
			break
		}
		fresh := c.run.Policy.Sample > 0 && c.fresh[node]
		if c.gone[node] || !fresh && c.run.Policy.Sample > 0 && sampled == c.run.Policy.Sample {
			continue
		}
		nodes = append(nodes, node)
		if !fresh {
			sampled++
		}
	}
	slices.Sort(nodes)
	return nodes
}

// member takes a node into the view or out of it.
func (c *coordinator) member(ctx actor.Context, m world.MemberChange) {
	if m.Node < 0 || m.Node >= len(c.gone) {
		return
	}
	if c.leaving[m.Node] && !m.Present && !m.Leaving {
		c.departed(ctx, m)
		return
	}
	if c.gone[m.Node] != m.Present {
		return // nothing new
	}
	c.gone[m.Node], c.leaving[m.Node] = !m.Present, m.Leaving
	switch {
	case !c.holds(m.Node):
	case m.Present:
		c.there++
	default:
		c.there--
	}
	c.announce(ctx)
	if m.Present {
		c.first[m.Node], c.fresh[m.Node] = c.asked+1, true
		ctx.Send(c.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: c.number, Joins: true}))
		return
	}
	if c.holds(m.Node) && c.there == 0 {
		c.incident(Incident{Node: m.Node, What: "the node has gone, and the model with it: no other node held it"})
	}
	c.leave(m.Node)
}

// departed takes note that a node that hands over what it holds is not there any more.
func (c *coordinator) departed(ctx actor.Context, m world.MemberChange) {
	if !m.Departed && !c.run.Survives {
		c.env.Fail(fmt.Errorf("node %s has crashed while it handed over what it held, of which some is lost",
			c.env.View().Members[m.Node].Name))
		return
	}
	c.leaving[m.Node] = false
	c.announce(ctx)
}

// announce issues the next view.
func (c *coordinator) announce(ctx actor.Context) {
	c.number++
	head := protos.View{Number: c.number, Topology: uint32(c.topology)}
	for i, gone := range c.gone {
		if gone {
			head.Absent = append(head.Absent, int32(i))
		}
		if c.leaving[i] {
			head.Leaving = append(head.Leaving, int32(i))
		}
	}
	c.control.Announce(&head)
	view := c.env.View()
	for i := range view.Members {
		if m := &view.Members[i]; m.Present || m.Leaving {
			ctx.Send(m.PID, protos.NewMessage(&protos.View{Number: head.Number, Topology: head.Topology,
				Absent: slices.Clone(head.Absent), Leaving: slices.Clone(head.Leaving)}))
		}
	}
}
