package shards

import (
	"math"
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
	// Replicated says that other servers have copies of what a server holds: one that crashes ends
	// the run only if it was the last.
	Replicated bool
	// Since has by node the view in which this member saw it come, 0 if it was there.
	Since []uint64

	env              actors.Env
	number           uint64     // of the view before
	present, leaving []bool     // by node, in the view before
	left             bool       // this node has
	owed             []debt     // by node: of its present life; none if it is not owed
	former           []debt     // of servers that have come back since
	said             [][]uint64 // by node: the views in which it has, perhaps before this one heard why
	owes             []int      // the servers to which this node, which leaves, says farewell last
}

// debt is a farewell that a life of a node says before this one departs.
type debt struct {
	node  int
	view  uint64 // it says so in this view or later; 0 for never
	until uint64 // and before this one, in which another life begins
}

// paid reports whether it was said.
func (d debt) paid(said []uint64) bool {
	return d.view == 0 || slices.ContainsFunc(said, func(v uint64) bool { return d.view <= v && v < d.until })
}

// owe has the present life of a node say farewell before this one departs.
func (f *Fleet) owe(node int, view uint64) { f.owed[node] = debt{node, view, math.MaxUint64} }

// NewFleet is that of a member that has just come.
func NewFleet(env actors.Env) Fleet {
	v := env.View()
	n := len(v.Members)
	f := Fleet{Since: make([]uint64, n), env: env, number: v.Number, present: make([]bool, n),
		leaving: make([]bool, n), owed: make([]debt, n), said: make([][]uint64, n)}
	for i := range v.Members {
		m := &v.Members[i]
		if f.present[i], f.leaving[i] = m.Present, m.Leaving; m.Leaving && m.Role == RoleServer {
			f.owe(i, 1)
		}
	}
	return f
}

// Follow takes in the view. It reports whether the servers of the run have changed, and which of
// them leave since this view; ok is false if the run ends because one has crashed.
//
// A member hears of all views while it is there. One that has missed some has just joined: it knows
// who is there from this one.
func (f *Fleet) Follow() (moved bool, leaving []int, ok bool) {
	view := f.env.View()
	if view.Number > f.number+1 {
		joined := NewFleet(f.env)
		joined.Replicated, joined.said = f.Replicated, f.said
		*f = joined
		return true, nil, true
	}
	f.number = view.Number
	for i := range view.Members {
		m := &view.Members[i]
		server := m.Role == RoleServer
		if server && f.present[i] && !m.Present && !m.Leaving && !f.Replicated {
			actors.Fail(f.env, "%s has gone without handing over its part of the parameters, which is lost", m.Name)
			return false, nil, false
		}
		moved = moved || server && (f.present[i] != m.Present || f.Replicated && f.leaving[i] != m.Leaving)
		if server && m.Leaving && !f.leaving[i] {
			leaving = append(leaving, i)
			f.owe(i, view.Number)
		}
		if m.Present && !f.present[i] { // a new life, which knows of those who leave
			f.Since[i] = view.Number
			if server && f.owed[i].view > 0 {
				f.owed[i].until = view.Number
				f.former = append(f.former, f.owed[i])
			}
			f.owed[i] = debt{}
		}
		f.present[i], f.leaving[i] = m.Present, m.Leaving
	}
	if f.Replicated && len(view.Role(RoleServer)) == 0 {
		actors.Fail(f.env, "no server is there any more, and with the last one the parameters are lost")
		return false, nil, false
	}
	if slices.Contains(leaving, f.env.Node()) {
		f.left = true
		for i := range view.Members {
			if view.Members[i].Present {
				f.owe(i, view.Number)
			}
		}
		f.owed[f.env.Node()] = debt{}
	}
	return moved, leaving, true
}

// Farewell tells servers that leave that nothing from this node follows. If it leaves itself, it
// does so when it departs.
func (f *Fleet) Farewell(ctx actor.Context, leaving []int) {
	if f.left {
		f.owes = append(f.owes, leaving...)
		return
	}
	for _, node := range leaving {
		f.say(ctx, node)
	}
}

func (f *Fleet) say(ctx actor.Context, node int) {
	self := f.env.Node()
	if node != self {
		ctx.Send(f.env.View().Members[node].PID, protos.NewMessage(&protos.Farewell{Node: int32(self),
			View: f.env.View().Number}))
	}
}

// Heard notes that nothing from a node follows.
func (f *Fleet) Heard(head *protos.Farewell) {
	if f.env.View().Has(head.Node) {
		f.said[head.Node] = append(f.said[head.Node], head.View)
	}
}

// Depart ends this node if it leaves and everybody who owes it a farewell has said so, or is gone.
func (f *Fleet) Depart(ctx actor.Context) {
	view := f.env.View()
	if !f.left {
		return
	}
	for node, owed := range f.owed {
		if m := &view.Members[node]; !owed.paid(f.said[node]) && (m.Present || m.Role == RoleServer) {
			return
		}
	}
	if slices.ContainsFunc(f.former, func(d debt) bool { return !d.paid(f.said[d.node]) }) {
		return
	}
	f.left = false // it says so once
	for _, node := range view.Role(RoleServer) {
		f.say(ctx, node)
	}
	for _, node := range f.owes {
		if view.Members[node].Leaving {
			f.say(ctx, node)
		}
	}
	f.env.Depart()
}
