package sim

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
)

// courier is the world as the sessions of its nodes see it.
type courier struct{ *World }

var _ door.Courier = courier{}

// Travel takes a copy of a session's message, or an acknowledgement.
func (c courier) Travel(p *door.Parcel) {
	to := p.Edge.Destination()
	id := p.Target
	if id == "" {
		id = c.nodes[to].ID
	}
	c.carry(c.process(to, id), p)
}

// Hand gives the next message of a session to its receiver.
func (c courier) Hand(p *door.Parcel) {
	to := c.process(p.Edge.Destination(), p.Target)
	c.trace(p, c.number)
	err := p.Verify()
	switch {
	case err != nil:
		c.fail(fmt.Errorf("%s/%s at %v: %w", c.names[to.node], to.id, c.now, err))
	case !to.alive():
		c.stats.DeadLetters++
		door.Release(p.Message)
	default:
		c.give(to, p)
	}
}

// Wake has the sessions look at one of theirs at an instant.
func (c courier) Wake(f *door.Flow, at time.Duration, vain bool) {
	c.enter(max(at, c.now), slot{what: look, flow: f, at: at, vain: vain})
}

// carry puts a parcel that has left its node into the calendar.
func (w *World) carry(to *process, p *door.Parcel) {
	if p.Again > 0 {
		second := p.Second()
		w.carry(to, p)
		w.carry(to, &second)
		return
	}
	w.underway(p, 1)
	switch {
	case p.Ticket != 0:
		w.hold(slot{what: delivery, to: to, parcel: *p})
	case p.HasDownlink():
		w.enter(p.Arrival, slot{what: arrival, to: to, parcel: *p})
	default:
		w.enter(p.Arrival, slot{what: delivery, to: to, parcel: *p})
	}
}

// give posts a message to its receiver.
func (w *World) give(to *process, p *door.Parcel) {
	if p.Emulated() {
		w.config.Audit.comes(w.now, p.Number)
	}
	source := w.source
	w.source = to.node // where the dead letters answer from
	if p.Kind == wire.Control && to.mailbox != nil {
		to.mailbox.postControl(p.Message)
	} else {
		to.hand(p.Kind, p.Message)
	}
	w.source = source
}
