package live

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/door"
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
		handOver = w.sessions.Arrive(w.pass(way.from, way.to), p)
		next, w.next = w.next, nil
	})
	for _, h := range next {
		w.hand(h)
	}
	return handOver
}

// hand hands over a message whose edge has counted it.
func (w *World) hand(h handed) {
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
