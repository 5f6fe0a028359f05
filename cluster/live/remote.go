package live

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
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

// way is from one node to another.
type way struct{ from, to int32 }

func wayOf(p *door.Parcel) way { return way{p.Edge.Source(), p.Edge.Destination()} }

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
	w.latest = max(w.latest, now)
	p, err := w.door.Pass(now, source.index, r.destination.index, r.id, kind, message)
	if err != nil || p.Lost || p.Kept {
		w.network.Unlock()
		if err != nil {
			w.fail(err)
		}
		return
	}
	if r.atOnce(&p) {
		w.count(&p, 1)
		w.network.Unlock()
		r.deliver(&p, 0)
		return
	}
	r.travel(&p)
	w.network.Unlock()
}

// atOnce reports whether a parcel is due and nothing is before it.
func (r *remote) atOnce(p *door.Parcel) bool {
	if p.Arrival != p.Sent || p.Ticket != 0 || p.Again > 0 {
		return false
	}
	return !p.Emulated() || !r.queues(p) && r.destination.world.underway[wayOf(p)] == 0
}

// queues reports whether a parcel has a downlink to pass in this world.
func (r *remote) queues(p *door.Parcel) bool { return !r.destination.away && p.HasDownlink() }

// travel puts a parcel, and its second copy if there is one, onto its way. Called under the lock.
func (r *remote) travel(p *door.Parcel) {
	w := r.destination.world
	switch {
	case p.Ticket != 0:
		w.shares[p.Ticket] = shared{r, p}
		w.count(p, 1)
		w.expect()
	case p.Again > 0:
		second := p.Second()
		r.hold(p, r.queues(p))
		r.hold(&second, r.queues(&second))
	default:
		r.hold(p, r.queues(p))
	}
}

// hold keeps a parcel until it is due. Entered under the lock: messages of one instant keep the
// order of their sending, and one that is due at once does not overtake them.
func (r *remote) hold(p *door.Parcel, downlink bool) {
	w := r.destination.world
	w.count(p, 1)
	if downlink {
		w.clock.At(p.Arrival, func() { r.receive(p) })
		return
	}
	way := wayOf(p)
	w.underway[way]++
	w.clock.Timed(p.Arrival, func(late time.Duration) {
		r.deliver(p, late)
		w.Locked(func() {
			if w.underway[way]--; w.underway[way] == 0 {
				delete(w.underway, way)
			}
		})
	})
}

// shared is a parcel of which it is not known when it arrives.
type shared struct {
	by     *remote
	parcel *door.Parcel
}

// expect has the clock settle what shares rates. Called under the lock, after each use of the
// network that may change when something is due.
func (w *World) expect() {
	due := w.config.Network.Due()
	if due == link.Forever || w.expects && due >= w.expected {
		return
	}
	w.expects, w.expected = true, due
	w.clock.At(due, func() {
		w.Locked(func() {
			if w.expected == due {
				w.expects = false
			}
			w.settle(max(due, w.clock.Now()))
		})
	})
}

// settle enters what the network has found out until an instant.
func (w *World) settle(now time.Duration) {
	for t, settled := w.config.Network.Settle(now); settled; t, settled = w.config.Network.Settle(now) {
		s := w.shares[t.Ticket]
		delete(w.shares, t.Ticket)
		w.count(s.parcel, -1)
		if err := s.parcel.Settle(t); err != nil {
			w.fail(err)
		}
		if !t.Lost {
			s.by.travel(s.parcel)
		}
	}
	w.expect()
}

// count counts a parcel in flight, or no longer; control has no part in it. Called under the lock.
func (w *World) count(p *door.Parcel, n int64) {
	if p.Emulated() {
		w.inFlight += n
	}
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
	to, w := r.destination, r.destination.world
	if to.over() {
		return
	}
	if p.Emulated() {
		w.late.messages.add(late)
	}
	now := w.clock.Now()
	if p.Answers() && !to.away && !w.takeIn(p) {
		return
	}
	p.Packet.SetLate(now - p.Arrival)
	bring := w.enter
	if to.away {
		bring = w.leave
	}
	if err := bring(to, p, now); err != nil {
		w.fail(fmt.Errorf("%s/%s at %v: %w", to.name(), p.Target, now, err))
	}
}

// enter decodes a parcel that is due, for an actor of a node that lives here.
func (w *World) enter(to *node, p *door.Parcel, now time.Duration) (err error) {
	var there bool
	w.Locked(func() {
		w.count(p, -1)
		if there = p.Kind == wire.System || to.life.Load().alive(p.Target); there {
			err = p.Arrive(now)
		} else {
			err = p.Discard()
		}
	})
	switch {
	case err != nil:
		return err
	case !there:
		w.lost.Add(1)
		return nil
	}
	return to.open(p)
}

// open hands the message of a parcel to the actor that it is for.
func (n *node) open(p *door.Parcel) error {
	f, err := p.Packet.Frame()
	if err != nil {
		return err
	}
	n.life.Load().arrive(&f)
	p.Packet.Recycle() // a cut that sees it gone finds the message with the actor
	return nil
}
