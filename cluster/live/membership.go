package live

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// schedule enters what happens to nodes into the clock, and when the coordinator will hear
// of crashes, so that both come in their order however late the world is. A change is handed
// over to attend, because making an actor, and the system for the next, takes milliseconds.
func (w *World) schedule() {
	d := w.config.Deployment
	var own []*world.NodeChange
	for i := range d.Schedule {
		if c := &d.Schedule[i]; !w.nodes[c.Node].away && c.At >= w.config.start() {
			own = append(own, c)
		}
	}
	for _, c := range own {
		if c.Ends() && !w.nodes[c.Node].coordinates() {
			w.nodes[c.Node].ends++
		}
		w.clock.At(c.At, func() { w.change(func() { w.happen(c) }) })
	}
	for _, c := range own {
		if c.Do == world.Crash && !w.nodes[c.Node].coordinates() {
			w.clock.At(c.At+d.Detect, func() { w.change(func() { w.cycle.Detect(c) }) })
		}
	}
	if d.Until > 0 {
		w.clock.Watch(w.lastInstant(), w.conclude)
	}
	for n := w.mortal(); n != nil; n = w.mortal() {
		n.prepare()
	}
}

// lateClock bounds how far the clock of a busy process is ahead of the coordinator's.
const lateClock = 100 * time.Millisecond

// lastInstant is when pauses and charges end that last beyond the time bound. It is not before the
// time bound at the coordinator, so that what a delayed node then does comes after the end of the
// run.
func (w *World) lastInstant() time.Duration {
	if w.lead().away {
		return w.config.Deployment.Until + lateClock
	}
	return w.config.Deployment.Until
}

// change has something done by attend, unless the run is over.
func (w *World) change(do func()) bool {
	w.jobs.Add(1)
	select {
	case w.changes <- do:
		return true
	case <-w.end:
		w.jobs.Add(-1)
		return false
	}
}

// attend carries out the changes of nodes, one after the other, until there are no more.
// In between it makes the next lives of nodes that will lose theirs.
func (w *World) attend() {
	for {
		for n := w.mortal(); n != nil && len(w.changes) == 0; n = w.mortal() {
			n.prepare()
		}
		do, ok := <-w.changes
		if !ok {
			return
		}
		w.clock.Do(do)
		w.jobs.Add(-1)
	}
}

// mortal returns a node that will crash or leave and has no next life yet.
func (w *World) mortal() *node {
	for _, n := range w.nodes {
		if n.ends > 0 && n.next == nil && !n.over() {
			return n
		}
	}
	return nil
}

func (n *node) prepare() { n.next = n.newLife(n.life.Load().number + 1) }

// happen does to a node what the schedule says, unless its part is over.
func (w *World) happen(c *world.NodeChange) {
	n := w.nodes[c.Node]
	if c.Ends() && !n.coordinates() {
		n.ends--
	}
	if !n.over() {
		w.cycle.Happen(c)
	}
}

// Leave has the nodes that live here and hand something over leave in order. It returns when they
// have, when their part is over, or with the cause when ctx ends. Place must have been called.
func (w *World) Leave(ctx context.Context) error {
	look := time.NewTicker(leaveEvery)
	defer look.Stop()
	for first := true; ; first = false {
		leaving := make(chan bool, 1)
		w.clock.At(w.clock.Now(), func() { w.change(func() { leaving <- w.leaveAll(first) }) })
		select {
		case more := <-leaving:
			if !more {
				return nil
			}
		case <-w.halted:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// HandOvers returns the indices of the nodes here that hand state over to other nodes when they
// leave.
func (w *World) HandOvers() (nodes []int) {
	w.Locked(func() {
		for i, n := range w.nodes[:len(w.nodes)-1] {
			if !n.away && w.cycle.HandsOver(i) {
				nodes = append(nodes, i)
			}
		}
	})
	return nodes
}

// leaveEvery is how often Leave looks whether everything has been handed over.
const leaveEvery = 10 * time.Millisecond

// leaveAll has nodes here leave, the first time, and reports whether some still hand over.
func (w *World) leaveAll(first bool) (leaving bool) {
	for i, n := range w.nodes[:len(w.nodes)-1] {
		if first && !n.away && w.cycle.HandsOver(i) && !n.over() {
			w.cycle.Happen(&world.NodeChange{Node: i, Do: world.Leave})
		}
		leaving = leaving || w.cycle.Leaving(i)
	}
	return leaving
}

// realm is the world as the life cycle of its nodes sees it.
type realm struct{ *World }

var _ world.Realm = realm{}

func (r realm) Place(node int) error {
	if stop := r.config.Stop; stop != nil && stop.Err() != nil {
		return context.Cause(stop)
	}
	r.spoil()
	return r.nodes[node].life.Load().place()
}

func (r realm) Fail(err error) { r.fail(err) }

// Hold pauses a node's actor for d, but not beyond the end of a bounded run.
func (r realm) Hold(node int, d time.Duration) {
	box, until := r.nodes[node].life.Load().mailbox, r.clock.Now()+d
	if end := r.config.Deployment.Until; end > 0 && until >= end {
		until = r.lastInstant()
	}
	box.pause()
	r.clock.At(until, box.resume)
}

// Remove ends the life of a node. Its actor handles nothing more; what is queued for it
// is released, and what it has under way comes to nothing.
func (r realm) Remove(node int, left bool) {
	w, n := r.World, r.nodes[node]
	w.spoil()
	old := n.life.Load()
	if n.next == nil {
		n.prepare()
	}
	w.Locked(func() { // so that no message leaves or arrives while it happens
		close(old.gone)
		n.life.Store(n.next)
		w.cycle.Settle(node, nil)
		n.next = nil
		if w.sessions != nil {
			w.sessions.End(n.index, left)
			w.beginSessions(n)
		}
	})
	old.system.Root.Stop(old.pid)
}

// Tell lets the coordinator know, unless it has halted the members.
func (r realm) Tell(change world.MemberChange) {
	if r.nodes[change.Node].over() {
		return
	}
	r.spoil()
	lead := r.lead()
	if lead.away {
		if err := r.config.Carrier.Changed(change); err != nil && !errors.Is(err, ErrGone) {
			r.fail(err)
		}
		return
	}
	var there bool
	r.Locked(func() { there = r.cycle.There(int(lead.index)) }) // Change may be called beside attend
	if there {
		lead.life.Load().tell(change, promptly)
	}
}

// announce replaces the view of the coordinator and that with which nodes join.
func (w *World) announce(e *env, v *protos.View) {
	v = proto.Clone(v).(*protos.View) // because the message is recycled
	w.announced.Store(v)
	e.set(v)
}

// set gives the actor the view of an announcement; nil for the first view.
func (e *env) set(announced *protos.View) {
	views := e.node.world.views
	if e.announced = announced; announced == nil {
		e.view = views.First()
	} else {
		e.view = views.Of(announced)
	}
}
