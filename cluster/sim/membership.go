package sim

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// deed is what a change does, as data that a checkpoint can hold.
type deed struct {
	what  doing
	which int32
}

type doing uint8

const (
	alter  doing = iota // what the change of the network does that is number which
	happen              // what the change of a node does
	detect              // the coordinator hears of it
	depart              // the node of this position leaves
)

// do does something that was due.
func (w *World) do(d deed) {
	switch d.what {
	case alter:
		w.alter(d.which)
	case happen:
		if w.cycle.Happen(&w.config.Deployment.Schedule[d.which]) {
			w.enter(w.now+w.config.Deployment.Detect, slot{what: change, deed: deed{detect, d.which}})
		}
	case detect:
		w.cycle.Detect(&w.config.Deployment.Schedule[d.which])
	case depart:
		w.cycle.Depart(int(d.which))
	}
}

// alter applies a scheduled change of the network.
func (w *World) alter(which int32) {
	w.altered = append(w.altered, which)
	w.config.Changes[which].Apply()
}

// realm is the world as the life cycle of its nodes sees it.
type realm struct{ *World }

var _ world.Realm = realm{}

func (r realm) Now() time.Duration   { return r.now }
func (r realm) Place(node int) error { return r.place(int32(node)) }
func (r realm) Hold(node int, d time.Duration) {
	n := &r.nodes[node]
	n.resumes = max(n.resumes, r.now+d)
}

func (r realm) Fail(err error) { r.fail(err) }

func (r realm) Tell(change world.MemberChange) {
	if r.coordinate != nil {
		r.coordinate.hand(wire.User, change)
	}
}

// Remove takes a node with everything that it knows out of the world.
func (r realm) Remove(node int, left bool) {
	w, n := r.World, &r.nodes[node]
	w.cycle.Settle(node, nil)
	n.life++
	if w.sessions != nil {
		w.sessions.End(int32(node), left)
	}
	n.resumes, n.leaves, n.waiting = 0, 0, 0
	n.cores, n.walk = world.NewCores(n.Profile.Cores), w.walk(n)
	var inhabitants []*process
	for _, p := range w.processes {
		if int(p.node) == node && p.mailbox != nil {
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

// view is a view with its announcement; the first view has none.
type view struct {
	*actors.View
	announced *protos.View
}

// announced returns the view that the coordinator has announced.
func (w *World) announced(v *protos.View) *view {
	if w.view.Number != v.Number {
		w.view = &view{w.views.Of(v), proto.Clone(v).(*protos.View)} // because the message is recycled
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
		if s.life != w.life(s.to.node) {
			w.config.Audit.bury(s.message)
			w.config.Audit.bury(s.job)
			return true
		}
	case departure:
		if s.life != w.life(s.source) {
			door.Release(s.message)
			return true
		}
	}
	return false
}
