package coordinator

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// views is who takes part in the run, which its coordinator alone decides.
type views struct {
	number   uint64 // of the view
	gone     []bool // by node
	topology int
	hold     []bool // by node: it holds a model
	looks    []bool // by node: its model is looked at
	looking  int    // how many models are looked at now
}

func newViews(env actors.Env, holders []int) views {
	v := env.View()
	n := len(v.Members)
	views := views{number: v.Number, gone: make([]bool, n), hold: make([]bool, n), looks: make([]bool, n)}
	for i := range v.Members {
		views.gone[i] = !v.Members[i].Present
	}
	for _, node := range holders {
		views.hold[node] = true
	}
	return views
}

// sample chooses the holders whose models are looked at.
func (c *coordinator) sample() {
	chosen := c.run.Holders
	if s := c.run.Policy.Sample; s > 0 && s < len(chosen) {
		chosen = nil
		for _, i := range c.env.Rand("sample of models").Perm(len(c.run.Holders))[:s] {
			chosen = append(chosen, c.run.Holders[i])
		}
	}
	for _, node := range chosen {
		c.looks[node] = true
	}
	c.looking = len(c.holders())
}

// looked reports whether the model of a node is looked at.
func (c *coordinator) looked(node int) bool { return c.looks[node] && !c.gone[node] }

// holders are the nodes whose models are looked at now.
func (c *coordinator) holders() []int {
	var nodes []int
	for _, node := range c.run.Holders {
		if c.looked(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// member takes a node into the view or out of it.
func (c *coordinator) member(ctx actor.Context, m actors.MemberChange) {
	if m.Node < 0 || m.Node >= len(c.gone) || c.gone[m.Node] != m.Present {
		return // nothing new
	}
	c.gone[m.Node] = !m.Present
	c.looking = len(c.holders())
	c.announce(ctx)
	if m.Present {
		ctx.Send(c.env.View().Members[m.Node].PID, protos.NewMessage(&protos.Start{View: c.number, Joins: true}))
		return
	}
	for i := c.settled + 1; i <= c.asked; i++ {
		if e := c.pending[i]; e.node == m.Node && e.params == nil && !e.void {
			e.void, e.ready = true, true
			c.answered()
		}
	}
	c.forget(m.Node)
	c.advance()
}

// announce issues the next view.
func (c *coordinator) announce(ctx actor.Context) {
	c.number++
	head := protos.View{Number: c.number, Topology: uint32(c.topology)}
	for i, gone := range c.gone {
		if gone {
			head.Absent = append(head.Absent, int32(i))
		}
	}
	c.control.Announce(&head)
	view := c.env.View()
	for i := range view.Members {
		if view.Members[i].Present {
			ctx.Send(view.Members[i].PID, protos.NewMessage(&protos.View{
				Number: head.Number, Topology: head.Topology, Absent: slices.Clone(head.Absent),
			}))
		}
	}
}
