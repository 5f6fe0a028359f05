package live

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
)

// courier is the world as the sessions of its nodes see it. Its methods are called under
// World.network.
type courier struct{ *World }

var _ door.Courier = courier{}

// Travel takes a copy of a session's message, or an acknowledgement.
func (c courier) Travel(p *door.Parcel) {
	r := &remote{destination: c.nodes[p.Edge.Destination()], id: p.Target}
	r.travel(p)
}

// handed is a message whose turn it is.
type handed struct {
	to     *node
	parcel *door.Parcel
}

// Hand gives the next message of a session to its receiver, once the lock is free.
func (c courier) Hand(p *door.Parcel) {
	c.next = append(c.next, handed{c.nodes[p.Edge.Destination()], p})
}

// Wake has the sessions look at one of theirs at an instant.
func (c courier) Wake(f *door.Flow, at time.Duration, vain bool) {
	w, from, to := c.World, f.From(), f.To()
	enter := w.clock.At
	if vain {
		enter = w.clock.Watch
	}
	enter(max(at, w.clock.Now()), func() {
		w.Locked(func() { w.sessions.Wake(w.pass(from, to), f, at) })
	})
}

// pass is the present instant, before which two nodes send nothing from now on. Called under the
// lock.
func (w *World) pass(a, b int32) time.Duration {
	w.latest = max(w.latest, w.clock.Now())
	w.nodes[a].passed, w.nodes[b].passed = w.latest, w.latest
	return w.latest
}

// takeIn has the sessions take in a parcel that is due, and hands over the messages whose turn it
// is then. It reports whether the parcel itself is to be handed over.
func (w *World) takeIn(p *door.Parcel) (handOver bool) {
	var next []handed
	w.Locked(func() {
		way := wayOf(p)
		if handOver = w.sessions.Arrive(w.pass(way.from, way.to), p); !handOver {
			w.count(p, -1)
		}
		next, w.next = w.next, nil
	})
	for _, h := range next {
		w.hand(h)
	}
	return handOver
}

// admit has the sessions take in a frame of one of theirs from another process, and hands over the
// messages whose turn it is then.
func (w *World) admit(n *node, f *wire.Frame) {
	if w.sessions == nil {
		f.Release()
		return
	}
	var next []handed
	w.Locked(func() {
		w.sessions.Admit(w.pass(n.index, n.index), n.index, f)
		next, w.next = w.next, nil
	})
	for _, h := range next {
		w.hand(h)
	}
}

// hand hands over a message whose edge has counted it.
func (w *World) hand(h handed) {
	if f := h.parcel.Frame; f != nil {
		f.Late = w.clock.Now() - h.parcel.Arrival
		h.to.accept(f)
		return
	}
	to, p, now := h.to, h.parcel, w.clock.Now()
	err := p.Verify()
	switch {
	case to.over(), err == nil && !to.life.Load().alive(p.Target):
		if !to.over() {
			w.lost.Add(1)
		}
		p.Packet.Release()
		return
	case err == nil:
		p.Packet.SetLate(now - p.Arrival)
		err = to.open(p)
	}
	if err != nil {
		w.fail(fmt.Errorf("%s/%s at %v: %w", to.name(), p.Target, now, err))
	}
}

// abroad is the world as its sessions with nodes of other processes see it.
type abroad struct{ *World }

var _ door.Abroad = abroad{}

func (a abroad) Away(node int32) bool { return a.nodes[node].away }
func (a abroad) ID(node int32) string { return a.nodes[node].ID }

func (a abroad) Trip(node int32) time.Duration {
	if !a.nodes[node].away || a.config.RoundTrip == nil {
		return 0
	}
	return a.config.RoundTrip(int(node))
}

// reachOut has the sessions reach the nodes of other processes.
func (w *World) reachOut() {
	w.sessions.Reach(abroad{w}, len(w.nodes))
	for _, n := range w.nodes {
		if !n.away {
			w.beginSessions(n)
		}
	}
}

// beginSessions says which life of a node its sessions are of, in a world of several. It is above
// those of the node in worlds that are gone, in each of which it has ended once for each time that
// the schedule says so, and once more at most.
func (w *World) beginSessions(n *node) {
	if !w.partial {
		return
	}
	most := 2
	for i := range w.config.Deployment.Schedule {
		if c := &w.config.Deployment.Schedule[i]; c.Node == int(n.index) && c.Ends() {
			most++
		}
	}
	before := w.config.Lives
	w.sessions.Begin(n.index, session.Life(before*most+n.life.Load().number-before))
}
