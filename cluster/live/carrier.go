package live

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Carrier reaches the worlds of a run in other processes. Its methods are called by
// goroutines of their own and may wait for the network, but not for ever: the end of a run
// waits for them.
//
// The edge of a message, with the sender's uplink, is emulated where its sender lives: what
// the carrier is given is due, and its own way comes on top. The downlink is emulated where
// the receiver lives, which alone knows all that share it.
type Carrier interface {
	// Send takes a frame for an actor of a node that lives elsewhere, and must not touch its
	// head any more when it returns. If it returns nil it has taken over one reference to
	// each tensor, otherwise all stays with the world. An error that wraps ErrGone drops the
	// message, any other ends the run. Control messages to a node come in their order, as do
	// all others.
	Send(node int, f *wire.Frame) error
	// Changed tells the coordinator's world, by its Change, that a node of this one has gone
	// or is there. It is called in order with the control messages to the coordinator.
	Changed(node int, present bool)
	// Halt calls Halt of all other worlds. The coordinator's world calls it once: when the
	// coordinator has halted the members, or when the run ends without, however it does.
	Halt()
}

// Prompt is a Carrier that takes what it can take at once from whoever sends it, which saves
// waking a goroutine for it.
type Prompt interface {
	Carrier
	// TrySend is Send, but where that would wait it does not: taken is then false without an
	// error, and all stays with the world.
	TrySend(node int, f *wire.Frame) (taken bool, err error)
}

// ErrGone says that the process that a node lives in is gone.
var ErrGone = errors.New("the node's process is gone")

// The bounds of what waits for the carrier to take it to one node, of control messages
// and of others.
const (
	maxWaiting      = 1 << 16 // messages
	maxWaitingBytes = 1 << 30 // of their frames, unless it is a single one
)

// outboxes are the messages for a node that lives elsewhere: the clock and the actors do not
// wait for the network. Control messages do not wait behind others.
type outboxes struct{ control, other outbox }

func newOutboxes(n *node) *outboxes {
	return &outboxes{control: outbox{to: n}, other: outbox{to: n}}
}

func (o *outboxes) put(s sending) {
	if s.parcel.Control {
		o.control.put(s)
	} else {
		o.other.put(s)
	}
}

// sending is a parcel that is due, and the actor it is for; or news for the coordinator.
type sending struct {
	parcel *door.Parcel
	id     string
	late   time.Duration // since its arrival, when it became due to be taken
	change *world.MemberChange
}

func (s *sending) size() int {
	if s.parcel == nil {
		return 0
	}
	return s.parcel.Size
}

func (s *sending) release() {
	if s.parcel != nil {
		door.Release(s.parcel.Message)
	}
}

// outbox hands messages to the carrier in their order.
type outbox struct {
	to      *node
	mu      sync.Mutex
	waiting []sending
	count   int  // of those that the carrier has not taken yet
	bytes   int  // of their frames
	busy    bool // a goroutine hands them over
}

func (o *outbox) put(s sending) {
	at, err := o.enter(s)
	switch {
	case err != nil:
		s.release()
		o.to.world.fail(err)
	case at:
		o.try(&s)
	}
}

// enter queues a message. It reports true instead, and the outbox is busy, where nothing waits
// and the carrier may take the message at once.
func (o *outbox) enter(s sending) (at bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.count == maxWaiting:
		return false, fmt.Errorf("%d messages wait to be taken to node %s, which is as many as can", o.count, o.to.name())
	case o.count > 0 && o.bytes+s.size() > maxWaitingBytes:
		return false, fmt.Errorf("messages of %d bytes wait to be taken to node %s, at most %d can", o.bytes+s.size(), o.to.name(), maxWaitingBytes)
	}
	o.count++
	if s.parcel != nil && !s.parcel.Control {
		o.to.world.sent.Add(1)
	}
	o.bytes += s.size()
	if !o.busy && s.change == nil && o.to.world.prompt != nil {
		o.busy = true
		return true, nil
	}
	o.waiting = append(o.waiting, s)
	if !o.busy {
		o.busy = true
		o.to.world.sending.Go(o.empty)
	}
	return false, nil
}

// try hands a message over at once, and leaves it and what has come meanwhile to a goroutine if
// the carrier would wait.
func (o *outbox) try(s *sending) {
	taken := o.hand(s, o.to.world.prompt.TrySend)
	o.mu.Lock()
	defer o.mu.Unlock()
	if taken {
		o.count--
		o.bytes -= s.size()
	} else {
		o.waiting = slices.Insert(o.waiting, 0, *s)
	}
	if o.busy = len(o.waiting) > 0; o.busy {
		o.to.world.sending.Go(o.empty)
	}
}

// empty hands over what waits.
func (o *outbox) empty() {
	carrier := o.to.world.config.Carrier
	send := func(node int, f *wire.Frame) (bool, error) { return true, carrier.Send(node, f) }
	var batch []sending
	for {
		o.mu.Lock()
		clear(batch)
		batch, o.waiting = o.waiting, batch[:0]
		if len(batch) == 0 {
			o.busy = false
			o.mu.Unlock()
			return
		}
		o.mu.Unlock()
		for i := range batch {
			o.hand(&batch[i], send)
			o.mu.Lock()
			o.count--
			o.bytes -= batch[i].size()
			o.mu.Unlock()
		}
	}
}

// hand hands over one message, unless its receiver's part is over. It reports false if it has
// not been taken.
func (o *outbox) hand(s *sending, send func(int, *wire.Frame) (bool, error)) (taken bool) {
	w := o.to.world
	switch {
	case o.to.over():
		s.release()
	case s.change != nil:
		w.config.Carrier.Changed(s.change.Node, s.change.Present)
	default:
		taken, err := o.send(s, send)
		if err != nil {
			w.fail(fmt.Errorf("%s/%s at %v: %w", o.to.name(), s.id, w.clock.now(), err))
		}
		return taken
	}
	return true
}

// send hands over a parcel. It counts as delivered when the carrier has taken it: what
// becomes of it then, this world does not hear.
func (o *outbox) send(s *sending, send func(int, *wire.Frame) (bool, error)) (taken bool, err error) {
	w := o.to.world
	f := w.door.Frame(s.parcel, s.id)
	f.Late = s.late
	for _, t := range f.Tensors {
		t.Retain()
	}
	taken, failure := send(int(o.to.index), &f)
	if taken && failure == nil {
		w.Locked(func() { err = s.parcel.Arrive(w.clock.now()) })
		s.release()
		return true, err
	}
	release(f.Tensors)
	if failure == nil {
		return false, nil
	}
	w.lost.Add(1)
	w.Locked(func() { err = s.parcel.Discard() })
	if !errors.Is(failure, ErrGone) {
		err = failure
	}
	return true, err
}

func release(tensors []*protos.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
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

// Posted returns where the values of a tensor belong whose frame Deliver will be called with once they have arrived;
// nil if that makes no difference. See actors.Poster. In strict mode it is nil as well: what this world has sent is looked at
// once more when it has been taken, and the answer must not be there yet.
func (w *World) Posted(node int, f *wire.Frame, tensor, values int) *protos.Tensor {
	if w.config.Deployment.Strict || node < 0 || node >= len(w.nodes) || w.nodes[node].away != nil {
		return nil
	}
	l := w.nodes[node].life.Load()
	if p := l.poster.Load(); p != nil && f.Target == l.pid.Id && !l.over() {
		return p.posted(f.Head, tensor, values)
	}
	return nil
}

// poster is an actor that knows where values belong, with its panics caught.
type poster struct {
	actors.Poster
	env *env
}

func (p *poster) posted(head proto.Message, tensor, values int) *protos.Tensor {
	defer p.env.recover()
	return p.Posted(head, tensor, values)
}

// atOnce is the size in bytes of the tensors of a message up to which it is handled on the
// goroutine that delivers it. That of a larger one can better take in the next meanwhile.
const atOnce = 2 << 20

// handlesAtOnce reports whether the node's actor can handle a message on a goroutine that has
// more to do: nothing lets that wait, neither a charge nor the beginning of the run.
func (n *node) handlesAtOnce(f *wire.Frame) bool {
	if n.away != nil || !math.IsInf(n.Profile.Speed, 1) {
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
	if node < 0 || node >= len(w.nodes) || w.nodes[node].away != nil || w.nodes[node].over() {
		release(f.Tensors)
		return
	}
	if v, ok := f.Head.(*protos.View); ok {
		w.heard(v)
	}
	if !protos.IsControl(f.Head) {
		w.received.Add(1)
	}
	n, own := w.nodes[node], *f
	own.Tensors = slices.Clone(f.Tensors)
	if due, limited := w.downlink(n, f); limited {
		w.clock.timed(due, func(late time.Duration) {
			own.Late = w.clock.now() - due
			w.late.messages.add(late)
			n.enter(&own)
		})
		return
	}
	n.enter(&own)
}

// downlink tells when a frame of another process has passed the downlink of its receiver.
func (w *World) downlink(to *node, f *wire.Frame) (due time.Duration, limited bool) {
	if f.Kind == wire.System || protos.IsControl(f.Head) {
		return 0, false
	}
	w.network.Lock()
	defer w.network.Unlock()
	edge := w.config.Network.Edge(w.lead().index, to.index) // all edges to a node share its downlink
	if !edge.HasDownlink() {
		return 0, false
	}
	return edge.Receive(w.clock.now()-f.Late, wire.Size(f)), true
}

// enter hands a frame of another process to the actor that it is for.
func (n *node) enter(f *wire.Frame) {
	l := n.life.Load()
	switch {
	case n.over():
		release(f.Tensors)
	case f.Kind == wire.User && !l.alive(f.Target):
		release(f.Tensors)
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

// Change tells the coordinator, who lives here, that a node of another process has gone or
// is there: when that process says so, is gone, or has been replaced. It does nothing in
// other worlds and for nodes that live here. Place must have been called.
func (w *World) Change(node int, present bool) {
	w.arrivals.RLock()
	defer w.arrivals.RUnlock()
	if node >= 0 && node < len(w.nodes)-1 && w.nodes[node].away != nil && w.lead().away == nil {
		realm{w}.Tell(world.MemberChange{Node: node, Present: present})
	}
}

// Halt ends the run of a world whose coordinator has said so elsewhere; it does nothing in
// the coordinator's own. Place must have been called.
func (w *World) Halt() {
	if w.lead().away != nil {
		w.finish(nil)
	}
}
