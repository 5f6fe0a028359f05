package actors

import (
	"iter"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

// Kind makes the actor of a node, given the Env through which it meets its
// world. A world calls a Kind when it places the run's nodes, and again when the node joins. A resumed
// run calls it, too, and then restores the actor's declared state: see package state.
type Kind func(env Env) (actor.Actor, error)

// ResidentKind makes an actor outside of any run.
type ResidentKind func(env Base) (actor.Actor, error)

// Base is all that an actor may ask of the world that it lives in, in a run or outside. Its methods
// may be called only from the actor's own Receive.
type Base interface {
	// Now is the time since the run began, or since the actor did outside of runs, on this world's
	// clock. In a run it stands still in a handler but for what the handler charges; see live for
	// how far real time keeps to that.
	Now() time.Duration
	// After delivers msg to this actor once d has passed.
	After(d time.Duration, msg any) Timer
	// Compute hands work over to the node's cores, first in first out. What
	// job.Do returns arrives as a message when the node's profile says that it is done.
	Compute(job Job)
	// Rand is this actor's own random stream for a purpose. The same stream is
	// returned for the same purpose.
	Rand(purpose string) *rand.Rand
	// Tensors is the pool that this node's tensors come from.
	Tensors() *protos.TensorPool
	// Fail ends the run with an error. Outside of runs it fails the handler that calls it, once
	// that returns.
	Fail(err error)
}

// Env is all that an actor may ask of the world of its run. Its methods may
// be called only from the actor's own Receive.
type Env interface {
	Base
	// Node is the position in the view of the node that the actor lives on.
	Node() int
	// View says who takes part. It is replaced, never changed, by the world: while an
	// actor handles a *protos.View and from then on, it is the one that the message announces.
	View() *View
	// ComputeTeam is Compute for training steps by several threads. In real time the threads run
	// side by side, and their writes meet as they come. In virtual time the job takes as long as
	// that would, and one Begin or End happens at a time, in an order drawn from the actor's random
	// stream for the purpose "threads".
	ComputeTeam(team Team)
	// Charge says that this handler spends work FLOPs: what it sends from here on
	// leaves, and the actor's next message is handled, only when they are done.
	Charge(work float64)
	// Latency is the one-way delay to a node at the instant Now: the link's where it is
	// emulated, half of the measured round trip elsewhere.
	Latency(node int) time.Duration
	// Lossy reports whether links of the run may lose messages for good, and nobody sends these
	// again.
	Lossy() bool
	// Depart ends this actor, a [Leaver] that has handed over what it held, with the handler that
	// calls it.
	Depart()
	// Post says where in memory the values of tensors belong that other processes send, as posted
	// receives of MPI do: they are then received there, without a copy, each place once. It
	// replaces what was posted before; nil withdraws that, and must before the caller gives its
	// reference to the memory away. The places are looked at during the call only, and not at all
	// where no message comes from another process. Of a place whose values are few, and in strict
	// mode, no use is made; the message itself follows when all of its values are there, or never.
	Post(memory *protos.Tensor, places iter.Seq[Place])
	// Unpost withdraws one place, whose message has come elsewhere.
	Unpost(name protos.PlaceName)
	// Record reports what happened.
	Record(event Event)
}

// Place is where the values of the first tensor of one message belong.
type Place struct {
	// Name is the one in the message's head.
	Name protos.PlaceName
	// Low and High bound the place: values Low to High−1 of what was posted.
	Low, High int
}

// Waiter is an actor that can say what it stands idle for. Worlds ask when a run has come to a
// standstill, while no actor handles anything.
type Waiter interface {
	// Waiting says what the actor waits for and names the node; it is empty if it waits for
	// nothing.
	Waiting() string
}

// Leaver is an actor with something to hand over when its node leaves in order. The world keeps it
// until it calls [Env.Depart]. The view tells it when: its member is Leaving.
type Leaver interface {
	// HandsOver marks the actor. It is never called.
	HandsOver()
}

// Job is a piece of computation that is too long for a handler.
type Job struct {
	// Do computes. It is pure: it reads only what nobody writes meanwhile, and
	// writes only what it owns. What it returns is delivered to the actor. The one exception is
	// what the threads of a Team share.
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

// Team is a job of threads that make steps on one vector of atomic words, [nn.Shared], which all of
// them read and change without locks. It is the one exception to the rule that a job writes only
// what it owns: of a Team that is the vector, which nobody else may touch meanwhile, and a thread's
// own memory.
type Team struct {
	// Threads is how many there are, at least 1; Steps is how many steps they make together.
	Threads, Steps int
	// Begin computes a step, up to where it changes what is shared; End changes it. Steps count
	// from 0, and begin in this order; a thread ends each before it begins another.
	Begin, End func(thread, step int)
	// Result is called when all steps have ended. What it returns is delivered to the actor.
	Result func() any
	// Work is the cost of all Begins in FLOPs.
	Work float64
	// Cores is the number of cores that each thread takes, at least 1.
	Cores int
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

// State declares the timer.
func (t *Timer) State(s *state.State) {
	state.Int(s, "number", &t.ID)
	if s.Restoring() && t.ID != 0 {
		t.Clock = s.Clock()
	}
}

// MemberState declares the address that an actor holds of a member, or nil. The address itself
// follows from the view.
func MemberState(s *state.State, name string, env Env, node int, pid **actor.PID) {
	held := *pid != nil
	if s.Bool(name, &held); s.Restoring() && held {
		*pid = env.View().Members[node].PID
	}
}

// PIDState declares the address of an actor, or nil.
func PIDState(s *state.State, name string, pid **actor.PID) {
	state.Optional(s, name, pid, func(s *state.State, pid *actor.PID) {
		state.Text(s, "address", &pid.Address)
		state.Text(s, "id", &pid.Id)
	})
}
