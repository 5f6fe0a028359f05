package shards

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Fleet is what a member of a run knows of the others' coming and going.
//
// A server that leaves stays until nothing more can come for it: each member that was there says
// farewell when it has heard of that, and so does each server that left before, when it departs.
// What a member sends to another keeps its order, so that nothing follows a farewell.
type Fleet struct {
	env              actors.Env
	present, leaving []bool // by node, in the view before
	left             bool   // this node has
	owed             []bool // by node: it says farewell before this node may depart
	said             []bool // by node: it has, perhaps before this node heard why
	next             []int  // servers to which this node says farewell next
	last             []int  // servers to which this node, which leaves, says it when it departs
	departs          bool   // which it does next
}

// NewFleet is that of a member that has just come.
func NewFleet(env actors.Env) Fleet {
	v := env.View()
	n := len(v.Members)
	f := Fleet{env: env, present: make([]bool, n), leaving: make([]bool, n), owed: make([]bool, n),
		said: make([]bool, n)}
	for i := range v.Members {
		m := &v.Members[i]
		f.present[i], f.leaving[i] = m.Present, m.Leaving
		f.owed[i] = m.Leaving && m.Role == RoleServer
	}
	return f
}

// Follow takes in the view. It reports whether the servers of the run have changed, and which of
// them leave since this view; ok is false if one has crashed, which ends the run.
func (f *Fleet) Follow() (moved bool, leaving []int, ok bool) {
	view := f.env.View()
	for i := range view.Members {
		m := &view.Members[i]
		server := m.Role == RoleServer
		if server && f.present[i] && !m.Present && !m.Leaving {
			actors.Fail(f.env, "%s has gone without handing over its part of the parameters, which is lost", m.Name)
			return false, nil, false
		}
		moved = moved || server && f.present[i] != m.Present
		if server && m.Leaving && !f.leaving[i] {
			leaving = append(leaving, i)
			f.owed[i] = i != f.env.Node()
		}
		f.said[i] = f.said[i] && (f.present[i] || !m.Present) // another life has said nothing
		f.present[i], f.leaving[i] = m.Present, m.Leaving
	}
	if slices.Contains(leaving, f.env.Node()) {
		f.left = true
		for i := range view.Members {
			f.owed[i] = f.owed[i] || view.Members[i].Present
		}
	}
	return moved, leaving, true
}

// Farewell has servers that leave told that nothing from this node follows. If it leaves itself, it
// says so when it departs.
func (f *Fleet) Farewell(ctx actor.Context, leaving []int) {
	switch {
	case len(leaving) == 0:
	case f.left:
		f.last = append(f.last, leaving...)
	default:
		f.next = append(f.next, leaving...)
		f.remind(ctx)
	}
}

// remind has this node hear from itself when it may say farewell. A view is handled while the node
// still computes what a handler has charged, and what that handler has sent leaves only then.
func (f *Fleet) remind(ctx actor.Context) {
	ctx.Send(ctx.Self(), protos.NewMessage(&protos.Farewell{Node: int32(f.env.Node())}))
}

func (f *Fleet) say(ctx actor.Context, node int) {
	self := f.env.Node()
	if node != self {
		ctx.Send(f.env.View().Members[node].PID, protos.NewMessage(&protos.Farewell{Node: int32(self)}))
	}
}

// Heard takes in a farewell: another node's, from which nothing follows, or this one's own, which
// is to be said now.
func (f *Fleet) Heard(ctx actor.Context, head *protos.Farewell) {
	switch {
	case int(head.Node) == f.env.Node():
		for _, node := range f.next {
			f.say(ctx, node)
		}
		f.next = f.next[:0]
		if f.departs {
			f.part(ctx)
		}
	case f.env.View().Has(head.Node):
		f.said[head.Node] = true
	}
}

// Depart has this node depart if it leaves and everybody who owes it a farewell has said so, or is
// gone.
func (f *Fleet) Depart(ctx actor.Context) {
	view := f.env.View()
	if !f.left || f.departs {
		return
	}
	for node, owed := range f.owed {
		if m := &view.Members[node]; owed && !f.said[node] && (m.Present || m.Role == RoleServer) {
			return
		}
	}
	f.departs = true
	f.remind(ctx)
}

// part says farewell to those who may wait for that, and ends this node.
func (f *Fleet) part(ctx actor.Context) {
	view := f.env.View()
	for _, node := range view.Role(RoleServer) {
		f.say(ctx, node)
	}
	for _, node := range f.last {
		if view.Members[node].Leaving {
			f.say(ctx, node)
		}
	}
	f.env.Depart()
}
