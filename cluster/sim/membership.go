package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// happen does to a node what the schedule says. What cannot happen, such as the crash of
// a node that is not there, does not.
func (w *World) happen(c actors.NodeChange) {
	node := int32(c.Node)
	n := &w.nodes[node]
	do := c.Do
	switch {
	case do == actors.Pause && n.there:
		n.resumes = w.now + c.For
	case w.coordinate != nil && node == w.coordinate.node:
		w.fail(fmt.Errorf("at %v: %w", w.now, actors.ErrLeaderless))
	case do == actors.Join && !n.there:
		w.join(node)
	case do == actors.Leave && n.there:
		w.remove(node)
		w.tell(node, false)
	case do == actors.Crash && n.there:
		w.remove(node)
		n.unheard = true
		life := n.life
		w.enter(w.now+w.config.Deployment.Detect, slot{what: change, apply: func() { w.detect(node, life) }})
	}
}

// join gives a node a new actor.
func (w *World) join(node int32) {
	d := &w.config.Deployment.Nodes[node]
	w.detect(node, w.nodes[node].life)
	if err := w.placeOne(node, d.ActorID(), d.Kind); err != nil {
		w.fail(err)
		return
	}
	w.tell(node, true)
}

// remove takes a node with everything that it knows out of the world.
func (w *World) remove(node int32) {
	n := &w.nodes[node]
	n.there = false
	n.life++
	n.resumes = 0
	n.cores = actors.NewCores(n.profile.Cores)
	var inhabitants []*process
	for _, p := range w.processes {
		if p.node == node && p.mailbox != nil {
			inhabitants = append(inhabitants, p)
		}
	}
	slices.SortFunc(inhabitants, func(a, b *process) int { return cmp.Compare(a.id, b.id) })
	for _, p := range inhabitants {
		p.mailbox.die()
		p.mailbox = nil
		w.system.ProcessRegistry.Remove(p.pid)
	}
}

// detect lets the coordinator hear of the crash that ended a life of a node, unless it has.
func (w *World) detect(node int32, life uint32) {
	n := &w.nodes[node]
	if n.unheard && n.life == life {
		n.unheard = false
		w.tell(node, false)
	}
}

func (w *World) tell(node int32, present bool) {
	if w.coordinate != nil {
		w.coordinate.hand(wire.User, actors.MemberChange{Node: int(node), Present: present})
	}
}

// announced returns the view that the coordinator has announced.
func (w *World) announced(v *protos.View) *actors.View {
	if w.view.Number != v.Number {
		w.view = w.config.Deployment.ViewOf(v)
	}
	return w.view
}

// life is how often a node has ceased to be, which tells its lives apart.
func (w *World) life(node int32) uint32 { return w.nodes[node].life }

// outlived reports whether an entry of the calendar belongs to a node's former life, and
// drops what it holds.
func (w *World) outlived(s *slot) bool {
	switch s.what {
	case message, result:
		return s.life != w.life(s.to.node)
	case departure:
		if s.life != w.life(s.source) {
			door.Release(s.message)
			return true
		}
	}
	return false
}
