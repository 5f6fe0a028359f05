package innetwork

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/session"
)

// repeats are when a worker sends packets again. It does so where links lose messages for good; and
// elsewhere until it has the result of packet 0, since switches that do not know the view yet drop
// that.
//
// When results are overdue for long only the oldest packet is repeated. That is enough: of the
// oldest packet that any worker lacks the result of, whoever has not sent it to the end repeats it
// until the switch has all, and then until the result has come.
type repeats struct {
	timeout session.Timeout
	flights []flight // by slot
	early   int      // packets in a row that were repeated too early
	waits   int      // in vain, since there was a result
	timer   actors.Timer
	timers  uint64        // that there were
	next    time.Duration // when the last of them looks
	armed   bool
}

// flight is how often the packet of a slot was sent, and when first and last.
type flight struct {
	late        bool // when it was sent first, because of a repeat
	tries       int
	first, last time.Duration
}

// overdue is a timer, by its number.
type overdue struct{ number uint64 }

// After burst waits in vain a worker repeats the oldest packet only, and after patience none: then
// it waits until it hears something, so that a run in which no message arrives comes to a
// standstill, of which the world tells.
const burst, patience = 8, 20_000

// steady is after how many tries of a packet the wait for its result grows.
const steady = 4

// askAgain is added to a round trip before a worker asks for a model again.
const askAgain = time.Second

// quit forgets what is to be repeated.
func (r *repeats) quit() {
	r.timer.Cancel()
	r.armed, r.waits = false, 0
}

// repeating reports whether there are repeats.
func (w *worker) repeating() bool { return w.env.Lossy() || w.stage == agreeing }

// trip is the round trip on an idle network to whom this worker waits for.
func (w *worker) trip() time.Duration {
	if w.stage == behind {
		return askAgain + 2*w.env.Latency(w.source)
	}
	return 2 * w.env.Latency(w.parent)
}

// depart notes that the packet of a slot was sent, and returns when its result is overdue.
func (w *worker) depart(slot int) (due time.Duration) {
	f := &w.flights[slot]
	f.last = w.env.Now()
	if f.tries++; f.tries == 1 {
		f.first = f.last
	}
	return w.due(slot)
}

// due is when the result of a slot's packet is overdue. Since there is a packet a slot at most, the
// wait need not grow with the first tries.
func (w *worker) due(slot int) time.Duration {
	f := &w.flights[slot]
	return f.last + w.timeout.After(max(f.tries-steady, 1), w.trip())
}

// look has this worker look for overdue results at an instant, if it does not before.
func (w *worker) look(at time.Duration) {
	if w.waits > patience || w.armed && w.next <= at {
		return
	}
	w.timer.Cancel()
	w.timers++
	w.armed, w.next = true, at
	w.timer = w.env.After(at-w.env.Now(), overdue{w.timers})
}

// heard takes in that a packet's result has come. Its round trip is known if it is of a chunk, for
// other packets wait for workers that compute, and if nothing that anybody had to repeat is in it.
// If it is not in the result, and this worker has repeated the packet, the wait was too short.
func (w *worker) heard(p packet) {
	w.waits = 0
	f := &w.flights[w.window.slot(p.number)]
	if p.number <= w.opening || p.late || f.tries == 0 {
		return
	}
	if trip := w.env.Now() - f.first; f.tries == 1 {
		w.timeout.Measure(trip)
		w.early = 0
	} else if w.early++; w.early >= session.TooLate {
		w.timeout.Extend(trip, w.trip())
		w.early = 0
	}
}

// overdue repeats the packets whose results are overdue, and looks again when the next is.
func (w *worker) overdue(ctx actor.Context, timer overdue) {
	if !w.armed || timer.number != w.timers {
		return
	}
	w.armed = false
	if w.waits++; !w.repeating() {
		return
	}
	if w.stage == behind {
		w.ask(ctx)
		return
	}
	oldest, _ := w.window.oldest()
	for slot, number := range w.window.at {
		switch {
		case !w.window.sent[slot] || w.waits > burst && number != oldest:
		case w.due(slot) <= w.env.Now():
			w.send(ctx, number)
		default:
			w.look(w.due(slot))
		}
	}
}
