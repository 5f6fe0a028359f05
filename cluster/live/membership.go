package live

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// schedule enters what happens to nodes into the clock, and when the coordinator will hear
// of crashes, so that both come in their order however late the world is. A change is handed
// over to attend, because making an actor, and the system for the next, takes milliseconds.
func (w *World) schedule() {
	d := w.config.Deployment
	var own []*actors.NodeChange
	for i := range d.Schedule {
		if c := &d.Schedule[i]; !w.nodes[c.Node].away && c.At >= w.config.Start {
			own = append(own, c)
		}
	}
	for _, c := range own {
		if ends(c) && !w.nodes[c.Node].coordinates() {
			w.nodes[c.Node].ends++
		}
		w.clock.At(c.At, func() { w.change(func() { w.happen(c) }) })
	}
	for _, c := range own {
		if c.Do == actors.Crash && !w.nodes[c.Node].coordinates() {
			w.clock.At(c.At+d.Detect, func() { w.change(func() { w.detect(c) }) })
		}
	}
	for n := w.mortal(); n != nil; n = w.mortal() {
		n.prepare()
	}
}

// ends reports whether a change ends the life of its node.
func ends(c *actors.NodeChange) bool { return c.Do == actors.Crash || c.Do == actors.Leave }

// pause has a node's actor handle nothing for a while.
func (w *World) pause(n *node, d time.Duration) {
	box := n.life.Load().mailbox
	box.pause(true)
	w.clock.At(w.clock.Now()+d, func() { box.pause(false) })
}

// present reports whether the schedule has a node be there at the start.
func (w *World) present(node int) bool {
	there := !w.config.Deployment.Nodes[node].Absent
	for _, c := range w.config.Deployment.Schedule {
		if c.Node == node && c.At < w.config.Start && c.Do != actors.Pause {
			there = c.Do == actors.Join
		}
	}
	return there
}

// change has something done by attend.
func (w *World) change(do func()) {
	w.jobs.Add(1)
	w.changes <- do
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

// happen does to a node what the schedule says. What cannot happen, such as the crash of
// a node that is not there, does not.
func (w *World) happen(c *actors.NodeChange) {
	n := w.nodes[c.Node]
	if ends(c) && !n.coordinates() {
		n.ends--
	}
	if n.over() {
		return
	}
	switch {
	case c.Do == actors.Pause && n.there:
		w.pause(n, c.For)
	case n.coordinates():
		w.fail(fmt.Errorf("at %v: %w", w.clock.Now(), actors.ErrLeaderless))
	case c.Do == actors.Join && !n.there:
		w.join(n)
	case c.Do == actors.Leave && n.there:
		w.remove(n)
		w.tell(n, false)
	case c.Do == actors.Crash && n.there:
		w.remove(n)
		n.unheard = c
	}
}

// join gives a node a new actor.
func (w *World) join(n *node) {
	if n.unheard != nil {
		w.detect(n.unheard)
	}
	if err := n.life.Load().place(w.config.Deployment.Nodes[n.index].Kind); err != nil {
		w.fail(err)
		return
	}
	w.tell(n, true)
}

// remove ends the life of a node. Its actor handles nothing more; what is queued for it
// is released, and what it has under way comes to nothing.
func (w *World) remove(n *node) {
	old := n.life.Load()
	if n.next == nil {
		n.prepare()
	}
	w.Locked(func() { // so that no message leaves or arrives while it happens
		close(old.gone)
		n.life.Store(n.next)
		n.there, n.next = false, nil
	})
	old.system.Root.Stop(old.pid)
	old.system.Shutdown()
}

// detect lets the coordinator hear of a crash, unless it has.
func (w *World) detect(crash *actors.NodeChange) {
	if n := w.nodes[crash.Node]; n.unheard == crash {
		n.unheard = nil
		w.tell(n, false)
	}
}

// tell lets the coordinator know, unless it has halted the members.
func (w *World) tell(n *node, present bool) {
	if n.over() {
		return
	}
	change := actors.MemberChange{Node: int(n.index), Present: present}
	lead := w.lead()
	if lead.away {
		w.config.Carrier.Changed(change.Node, change.Present)
	} else if lead.there {
		lead.life.Load().tell(change, promptly)
	}
}

// announce replaces the view of the coordinator and that with which nodes join.
func (w *World) announce(e *env, v *protos.View) {
	w.announced.Store(proto.Clone(v).(*protos.View)) // the message's own is used again
	e.view = w.view()
}

// view returns the latest view that was announced.
func (w *World) view() *actors.View {
	if v := w.announced.Load(); v != nil {
		return w.config.Deployment.ViewOf(v)
	}
	return w.config.Deployment.View()
}
