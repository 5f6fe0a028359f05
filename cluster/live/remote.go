package live

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
)

// remote stands on one node for an actor of another.
type remote struct {
	source      *life
	destination *node
	id          string
}

var _ actor.Process = (*remote)(nil)

func (r *remote) SendUserMessage(_ *actor.PID, message any)   { r.send(wire.User, message) }
func (r *remote) SendSystemMessage(_ *actor.PID, message any) { r.send(wire.System, message) }
func (r *remote) Stop(*actor.PID)                             { r.send(wire.System, &actor.Stop{}) }

// send takes a message through the door and onto its link.
func (r *remote) send(kind wire.Kind, message any) {
	source := r.source.node
	w := source.world
	w.network.Lock()
	if r.source.over() {
		w.network.Unlock()
		door.Release(message)
		return
	}
	now := max(r.source.now(), source.passed)
	source.passed = now
	p, err := w.door.Pass(now, source.index, r.destination.index, r.id, kind, message)
	if err != nil || p.Lost {
		w.network.Unlock()
		if err != nil {
			w.fail(err)
		}
		return
	}
	held := !r.destination.away && p.HasDownlink()
	if p.Arrival == p.Sent && (p.Control() || !held && w.underway[p.Edge] == 0) {
		w.network.Unlock()
		r.deliver(&p, 0)
		return
	}
	r.hold(&p, held)
	w.network.Unlock()
}

// hold keeps a parcel until it is due. Entered under the lock: messages of one instant keep the
// order of their sending, and one that is due at once does not overtake them.
func (r *remote) hold(p *door.Parcel, downlink bool) {
	w := r.source.node.world
	if downlink {
		w.clock.At(p.Arrival, func() { r.receive(p) })
		return
	}
	w.underway[p.Edge]++
	w.clock.Timed(p.Arrival, func(late time.Duration) {
		r.deliver(p, late)
		w.Locked(func() {
			if w.underway[p.Edge]--; w.underway[p.Edge] == 0 {
				delete(w.underway, p.Edge)
			}
		})
	})
}

// receive puts a parcel that is at the end of its edge onto the downlink.
func (r *remote) receive(p *door.Parcel) {
	w := r.destination.world
	w.network.Lock()
	due := p.Receive(p.Arrival)
	p.Arrival = due
	w.clock.Timed(due, func(late time.Duration) { r.deliver(p, late) })
	w.network.Unlock()
}

// deliver hands a parcel over to the world of the destination, so much later than this one could
// have.
func (r *remote) deliver(p *door.Parcel, late time.Duration) {
	w := r.destination.world
	if r.destination.over() {
		return
	}
	if !p.Control() {
		w.late.messages.add(late)
	}
	if r.destination.away {
		w.leave(r.destination, p)
	} else {
		w.enter(r.destination, p)
	}
}

// enter hands a parcel that is due to the transport of a node that lives here.
func (w *World) enter(to *node, p *door.Parcel) {
	now := w.clock.Now()
	f := p.Frame()
	f.Late = now - p.Arrival
	var there bool
	var err error
	w.Locked(func() {
		if there = p.Kind == wire.System || to.life.Load().alive(p.Target); there {
			err = p.Arrive(now)
		} else {
			err = p.Discard()
		}
	})
	switch {
	case err != nil:
		w.fail(fmt.Errorf("%s/%s at %v: %w", to.name(), p.Target, now, err))
	case there:
		w.cross(to, p, &f)
	default:
		w.lost.Add(1)
	}
}

// cross hands the frame to the transport, with a reference to its tensors, and gives the sender's
// reference to the message back.
func (w *World) cross(to *node, p *door.Parcel, f *wire.Frame) {
	for _, t := range f.Tensors {
		t.Retain()
	}
	if err := w.transport.Send(to.name(), f); err != nil {
		w.fail(err)
	}
	door.Release(p.Message)
}
