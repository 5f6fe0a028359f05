package actors

import (
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// Kind makes the actor of a node, given the Env through which it meets its
// world. Kinds are called once a node, when the run is placed.
type Kind func(env Env) (actor.Actor, error)

// Env is all that an actor may ask of the world that it runs in. Its methods may
// be called only from the actor's own Receive.
type Env interface {
	// Node is the position in the view of the node that the actor lives on.
	Node() int
	// View says who takes part. It is replaced, never changed, by the world: while an
	// actor handles a *protos.View and from then on, it is the one that the message announces.
	View() *View
	// Now is the time since the run began, on this world's clock. It stands still in a handler
	// but for what the handler charges; see live for how far real time keeps to that.
	Now() time.Duration
	// After delivers msg to this actor once d has passed.
	After(d time.Duration, msg any) Timer
	// Compute hands work over to the node's cores, first in first out. What
	// job.Do returns arrives as a message when the node's profile says that it is done.
	Compute(job Job)
	// Charge says that this handler spends work FLOPs: what it sends from here on
	// leaves, and the actor's next message is handled, only when they are done.
	Charge(work float64)
	// Rand is this actor's own random stream for a purpose. The same stream is
	// returned for the same purpose.
	Rand(purpose string) *rand.Rand
	// Latency is the present one-way delay to a node: the link's where it is
	// emulated, half of the measured round trip elsewhere.
	Latency(node int) time.Duration
	// Tensors is the pool that this node's tensors come from.
	Tensors() *protos.TensorPool
	// Record reports what happened.
	Record(event Event)
	// Fail ends the run with an error.
	Fail(err error)
}

// Poster may be implemented by an actor that knows where large tensors of messages belong before they have arrived, as
// with a posted receive of MPI. They are then received there, without a copy.
type Poster interface {
	// Posted returns the memory for the values of one tensor of a message from another process, of
	// which only the head has arrived, with a reference for the message; its length is values. Nil leaves the
	// memory to a pool. Where the values come from the same process, or are few, and in strict mode, it is not asked.
	//
	// It is called by other goroutines, several at a time, while Receive may be at work or the actor has ended, and must
	// not wait: they read what comes from a process. The message itself follows when all has arrived, or never.
	Posted(head proto.Message, tensor, values int) *protos.Tensor
}

// Waiter is an actor that can say what it stands idle for. Worlds ask when a run has come to a
// standstill, while no actor handles anything.
type Waiter interface {
	// Waiting says what the actor waits for and names the node; it is empty if it waits for nothing.
	Waiting() string
}

// Job is a piece of computation that is too long for a handler.
type Job struct {
	// Do computes. It is pure: it reads only what nobody writes meanwhile, and
	// writes only what it owns. What it returns is delivered to the actor.
	Do func() any
	// Work is the cost in FLOPs.
	Work float64
	// Step marks a training step, which costs the fixed time of a node whose
	// profile names one, whatever its Work.
	Step bool
	// Cores is the number of cores taken, at least 1; 0 counts as 1.
	Cores int
	// Lag, where positive, marks work on no emulated core: in virtual time
	// the result arrives Lag later, in real time when it is ready, behind all steps.
	Lag time.Duration
}

// Timer is a message that After will deliver. The zero Timer can be cancelled
// to no effect.
type Timer struct {
	// Clock is the world's own, and knows the timer by ID.
	Clock interface{ CancelTimer(id uint64) }
	ID    uint64
}

// Cancel prevents the delivery if it has not happened yet.
func (t Timer) Cancel() {
	if t.Clock != nil {
		t.Clock.CancelTimer(t.ID)
	}
}
