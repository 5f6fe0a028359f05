package live

import (
	"errors"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Carrier reaches the worlds of a run in other processes. Its methods are called by actors and by
// the clock, and must not wait.
//
// The edge of a message, with the sender's uplink, is emulated where its sender lives: what
// the carrier is given is due, and its own way comes on top. The downlink is emulated where
// the receiver lives, which alone knows all that share it.
type Carrier interface {
	// Send takes over a packet for an actor of a node that lives elsewhere, unless it returns an
	// error: one that wraps ErrGone drops the message, any other ends the run. Packets to a node
	// keep their order, but wire.Control and wire.System frames may pass the others.
	Send(node int, p *wire.Packet) error
	// Changed tells the coordinator's world, by its Change, that a node of this one has gone,
	// leaves or is there. The news keeps its place among control messages to the coordinator. An
	// error that does not wrap ErrGone ends the run.
	Changed(change world.MemberChange) error
	// Halt calls Halt of all other worlds. The coordinator's world calls it once: when the
	// coordinator has halted the members, or when the run ends without, however it does.
	Halt()
}

// ErrGone says that the process that a node lives in is gone.
var ErrGone = errors.New("the node's process is gone")

// leave hands a parcel that is due over to the carrier. It counts as delivered when the carrier has
// taken it: what becomes of it then, this world does not hear.
//
// Of a message in a session copies that are refused do not count: it is sent again.
func (w *World) leave(to *node, p *door.Parcel, now time.Duration) (failed error) {
	failure := w.config.Carrier.Send(int(to.index), p.Packet)
	if p.Emulated() && (failure == nil || !p.InSession()) {
		w.sent.Add(1)
	}
	if failure == nil {
		w.Locked(func() {
			w.count(p, -1)
			failed = p.Arrive(now)
		})
		return failed
	}
	if !p.InSession() {
		w.lost.Add(1)
	}
	w.Locked(func() {
		w.count(p, -1)
		failed = p.Discard()
	})
	if !errors.Is(failure, ErrGone) {
		failed = failure
	}
	return failed
}

// Deliver takes what another world's carrier was sent for a node that lives here. It takes
// over the head and one reference to each tensor; the frame itself may be used again. It
// does not wait, but the actor may handle the message before it returns. A message for a node
// whose part is over, or that does not live here, is dropped. Frames of one process must be
// delivered in their order. Place must have been called.
func (w *World) Deliver(node int, f *wire.Frame) {
	if node >= 0 && node < len(w.nodes) && w.nodes[node].handlesAtOnce(f) {
		w.nodes[node].life.Load().mailbox.lend(func() { w.take(node, f) })
		return
	}
	w.take(node, f)
}

// atOnce is the size in bytes of the tensors of a message up to which it is handled on the
// goroutine that delivers it. That of a larger one can better take in the next meanwhile.
const atOnce = 2 << 20

// handlesAtOnce reports whether the node's actor can handle a message on a goroutine that has
// more to do: nothing lets that wait, neither a charge nor the beginning of the run.
func (n *node) handlesAtOnce(f *wire.Frame) bool {
	if n.away || !math.IsInf(n.Profile.Speed, 1) {
		return false
	}
	select {
	case <-n.world.placed:
	default:
		return false
	}
	bytes := 0
	for _, t := range f.Tensors {
		bytes += 4 * len(t.Data)
	}
	return bytes <= atOnce
}

// take takes a frame in.
func (w *World) take(node int, f *wire.Frame) {
	w.arrivals.RLock()
	defer w.arrivals.RUnlock()
	if node < 0 || node >= len(w.nodes) || w.nodes[node].away || w.nodes[node].over() {
		f.Release()
		return
	}
	if v, ok := f.Head.(*protos.View); ok {
		w.heard(v)
	}
	if f.Kind != wire.Control {
		w.received.Add(1)
	}
	n, own := w.nodes[node], *f
	own.Tensors = slices.Clone(f.Tensors)
	if due, limited := w.downlink(n, f); limited {
		w.cuts.flights[f.Cut].Add(1)
		w.clock.Timed(due, func(late time.Duration) {
			own.Late = w.clock.Now() - due
			w.late.messages.add(late)
			n.enter(&own)
			w.cuts.flights[own.Cut].Add(-1)
		})
		return
	}
	n.enter(&own)
}

// downlink tells when a frame of another process has passed the downlink of its receiver.
func (w *World) downlink(to *node, f *wire.Frame) (due time.Duration, limited bool) {
	if f.Kind != wire.User {
		return 0, false
	}
	w.network.Lock()
	defer w.network.Unlock()
	edge := w.config.Network.Edge(w.lead().index, to.index) // all edges to a node share its downlink
	if !edge.HasDownlink() {
		return 0, false
	}
	return edge.Receive(w.clock.Now()-f.Late, wire.Size(f)), true
}

// enter hands a frame of another process to the actor that it is for, or to its session.
func (n *node) enter(f *wire.Frame) {
	if f.InSession && !n.over() {
		n.world.admit(n, f)
		return
	}
	n.accept(f)
}

// accept hands a frame of another process to the actor that it is for.
func (n *node) accept(f *wire.Frame) {
	l := n.life.Load()
	switch {
	case n.over():
		f.Release()
	case f.Kind != wire.System && !l.alive(f.Target):
		f.Release()
		n.world.lost.Add(1)
	default:
		l.arrive(f)
	}
}

// heard keeps the latest view that the coordinator, who lives elsewhere, has announced.
func (w *World) heard(v *protos.View) {
	for {
		before := w.announced.Load()
		if before != nil && before.Number >= v.Number {
			return
		}
		if w.announced.CompareAndSwap(before, proto.Clone(v).(*protos.View)) {
			return
		}
	}
}

// Change tells the coordinator, who lives here, that a node of another process has gone, leaves or
// is there: when that process says so, is gone, or has been replaced. It does nothing in
// other worlds and for nodes that live here. Place must have been called.
func (w *World) Change(c world.MemberChange) {
	w.arrivals.RLock()
	defer w.arrivals.RUnlock()
	if c.Node >= 0 && c.Node < len(w.nodes)-1 && w.nodes[c.Node].away && !w.lead().away {
		realm{w}.Tell(c)
	}
}

// Halt ends the run of a world whose coordinator has said so elsewhere; it does nothing in
// the coordinator's own. Place must have been called.
func (w *World) Halt() {
	if w.lead().away {
		w.finish(nil)
	}
}
