package live

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Carrier reaches the worlds of a run in other processes. Its methods are called from many
// goroutines and may wait for the network.
//
// The link of a message is emulated where its sender lives, the receiver's downlink
// included: what the carrier is given is due, and its own way comes on top. A downlink
// is therefore shared only by the nodes of one process.
type Carrier interface {
	// Send takes a frame for an actor of a node that lives elsewhere. As of a transport, it takes over
	// one reference to each tensor if it returns nil. An error that wraps ErrGone drops
	// the message, any other ends the run.
	Send(node int, f *wire.Frame) error
	// Changed tells the coordinator's world that a node of this one has gone or is there.
	Changed(node int, present bool)
	// Halt tells all others that the part of their nodes is over.
	Halt()
}

// ErrGone says that the process that a node lives in is gone.
var ErrGone = errors.New("the node's process is gone")

// maxWaiting bounds the frames that wait for the carrier to take them to one node.
const maxWaiting = 1 << 16

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

// sending is a parcel that is due, and the actor it is for.
type sending struct {
	parcel *door.Parcel
	id     string
}

// outbox hands messages to the carrier in their order.
type outbox struct {
	to      *node
	mu      sync.Mutex
	waiting []sending
	busy    bool // a goroutine hands them over
}

func (o *outbox) put(s sending) {
	w := o.to.world
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == maxWaiting {
		door.Release(s.parcel.Message)
		w.fail(fmt.Errorf("%d messages wait to be taken to node %s, which is as many as can", maxWaiting, o.to.name()))
		return
	}
	o.waiting = append(o.waiting, s)
	if !o.busy {
		o.busy = true
		w.sending.Go(o.empty)
	}
}

// empty hands over what waits.
func (o *outbox) empty() {
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
		for _, s := range batch {
			o.send(s)
		}
	}
}

// send hands over one message. It counts as delivered when the carrier has taken it: what
// becomes of it then, this world does not hear.
func (o *outbox) send(s sending) {
	w := o.to.world
	if o.to.over() {
		door.Release(s.parcel.Message)
		return
	}
	f := w.door.Frame(s.parcel, s.id)
	for _, t := range f.Tensors {
		t.Retain()
	}
	failure := w.config.Carrier.Send(int(o.to.index), &f)
	if failure != nil {
		release(f.Tensors)
		w.lost.Add(1)
	}
	now := w.clock.now()
	var err error
	w.Locked(func() {
		if failure == nil {
			err = s.parcel.Arrive(now)
		} else {
			err = s.parcel.Discard()
		}
	})
	if failure == nil {
		door.Release(s.parcel.Message)
	} else if !errors.Is(failure, ErrGone) {
		w.fail(fmt.Errorf("to node %s at %v: %w", o.to.name(), now, failure))
	}
	if err != nil {
		w.fail(fmt.Errorf("%s/%s at %v: %w", o.to.name(), s.id, now, err))
	}
}

func release(tensors []*protos.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
}

// Deliver takes a frame of another process's world for a node that lives here, and with it
// one reference to each of its tensors. The frame itself may be used again. The world must
// have been placed.
func (w *World) Deliver(node int, f *wire.Frame) {
	w.arrivals.RLock()
	defer w.arrivals.RUnlock()
	if node < 0 || node >= len(w.nodes) || w.nodes[node].away != nil || w.nodes[node].over() {
		release(f.Tensors)
		return
	}
	if v, ok := f.Head.(*protos.View); ok {
		w.heard(v)
	}
	l := w.nodes[node].life.Load()
	if f.Kind != wire.System && !l.alive(f.Target) {
		release(f.Tensors)
		w.lost.Add(1)
		return
	}
	f.Tensors = slices.Clone(f.Tensors)
	l.arrive(f)
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
// is there. The world must have been placed.
func (w *World) Change(node int, present bool) {
	if node >= 0 && node < len(w.nodes)-1 {
		w.tell(w.nodes[node], present)
	}
}

// Halt ends the part of all nodes but the coordinator's, who has said so elsewhere.
func (w *World) Halt() { w.halt() }

// haltAll is how the coordinator halts the run.
func (w *World) haltAll() {
	w.halt()
	if w.partial {
		w.config.Carrier.Halt()
	}
}
