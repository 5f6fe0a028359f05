package world

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Views makes the views of a run out of what its coordinator announces. It is read-only, and safe
// for concurrent use.
type Views struct {
	deployment *Deployment
	ever       actors.Graph // the edges of all topologies
}

// Views returns what makes the deployment's views.
func (d *Deployment) Views() *Views { return &Views{d, actors.Union(d.Topologies)} }

// First is the view that the run begins with: of all nodes that are not Absent.
func (v *Views) First() *actors.View {
	var absent []int32
	for i := range v.deployment.Nodes {
		if v.deployment.Nodes[i].Absent {
			absent = append(absent, int32(i))
		}
	}
	return v.Of(&protos.View{Number: 1, Absent: absent})
}

// Of returns the view that a coordinator has announced. Each call makes
// its own PIDs, because a PID remembers the process that it was resolved to. It panics
// if the announcement does not fit the deployment.
func (v *Views) Of(announced *protos.View) *actors.View {
	d := v.deployment
	var now actors.Graph
	if len(d.Topologies) > 0 {
		now = d.Topologies[announced.Topology]
	}
	members := make([]actors.Member, len(d.Nodes))
	for i := range d.Nodes {
		n := &d.Nodes[i]
		members[i] = actors.Member{Name: n.Name, Role: n.Role, Site: n.Site, Present: true,
			PID: actor.NewPID(n.Name, n.ActorID())}
	}
	for _, i := range announced.Absent {
		members[i].Present = false
	}
	for _, i := range announced.Leaving {
		members[i].Leaving = true
	}
	return actors.NewView(announced.Number, members, now, v.ever)
}
