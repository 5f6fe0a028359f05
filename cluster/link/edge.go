package link

import (
	"time"

	"github.com/gradwire/gradwire/cluster/link/fluid"
)

// Edge is the directed link from one node to another. See Network.Edge for how long it is good.
type Edge struct {
	network             *Network
	from, to            *node
	law                 *law
	process             Process // nil where the delay is constant
	stats               *Stats  // of the edge, or of all edges of its source
	key                 uint64  // of what it draws
	line                lane
	last                time.Duration // latest arrival so far
	flapper             *flapper      // nil unless the edge is Intermittent
	source, destination int32
	outage              int32 // outages before this one ended before line.free
	underway            int32 // messages that were neither delivered nor dropped, control messages among them
	oldest, newest      int32 // tickets of those that must not overtake each other
	channel             channel
	used                bool // it has carried a message that was not one of control
	far                 bool // the access of one of its ends adds to its delays
}

// Transit is what becomes of one message put on an edge at an instant.
type Transit struct {
	// Arrival is the instant at the receiver's end of the edge, before the downlink; Forever if the
	// message is lost.
	Arrival time.Duration
	// Delay is what was drawn for this message, lost or not, with what its ends' accesses add.
	Delay time.Duration
	// Tries is how often the message was put on the edge: 1, and one for each retransmission.
	Tries int
	// Lost says that the message never arrives. It is counted already; Discard must not be called
	// for it.
	Lost bool
	// Departure is when the message, or its last try, left the edge's queue, lost or not; not known
	// yet of one with a ticket.
	Departure time.Duration
	// Again is the instant at which a second copy arrives, which counts as a message of its own; 0
	// if none does.
	Again time.Duration
	// Ticket is not 0 for a message that takes its share of rates: Settle will tell the rest.
	Ticket int32
}

// Stats counts what an edge, or all edges of a source, have carried since the network was made.
// Sent = Delivered + Dropped + InFlight() in messages and in bytes, where Deliver or Discard was
// called once for each message that was not lost.
type Stats struct {
	Sent, Delivered int64 // messages
	Dropped         int64 // messages lost on the edge or discarded by the world
	Lost            int64 // the part of Dropped that was lost on the edge
	Control         int64 // control messages, which are in none of the others

	SentBytes, DeliveredBytes, DroppedBytes, ControlBytes int64

	// DelayCount, DelaySum and DelayMax are of the delays drawn for messages that were not lost on
	// the edge: what was asked for, beside which stands what was achieved. The sum stops at
	// Forever.
	DelayCount         int64
	DelaySum, DelayMax time.Duration

	// TookSum is the time from sending to delivery of all messages delivered, queues included: what
	// was achieved.
	TookSum time.Duration
}

// InFlight returns the messages sent that were neither delivered nor dropped.
func (s Stats) InFlight() int64 { return s.Sent - s.Delivered - s.Dropped }

// InFlightBytes returns the bytes of the messages in flight.
func (s Stats) InFlightBytes() int64 { return s.SentBytes - s.DeliveredBytes - s.DroppedBytes }

const negativeSize = "link: negative size"

// Send puts a message of size bytes on the edge at the instant now, which must not lie before the
// instant of an earlier call for an edge of the same source. The message passes the sender's
// uplink, the edge and the delay and counts as sent; if it is lost, also as dropped.
//
// In a network that shares rates fairly the rest is known later, unless nothing limits the message:
// then the transit has a ticket.
//
// What it draws depends on how many messages were sent before, as Stats counts them, whether or not
// they were lost, so that a change of the loss moves no delay.
func (e *Edge) Send(now time.Duration, size int) Transit {
	if size < 0 {
		panic(negativeSize)
	}
	number := uint64(e.stats.Sent)
	e.stats.Sent++
	e.stats.SentBytes += int64(size)
	e.used = true
	if e.network.shared != nil {
		var over [fluid.MaxCrossed]int32
		if crossed := e.crossed(over[:0]); len(crossed) > 0 {
			return e.share(now, size, number, crossed)
		}
	}
	whole := size + int(e.law.Overhead)
	departure := e.line.pass(e.from.uplink.pass(now, whole), whole)
	tries, lost := 1, false
	if e.law.hazardous {
		e.network.draws.seek(e.key, number, losses)
		departure, tries, lost = e.applyHazards(departure, whole)
	}
	return e.depart(departure, number, size, tries, lost)
}

// depart draws the delay of a message that leaves the edge's queue, or is lost there.
func (e *Edge) depart(departure time.Duration, number uint64, size, tries int, lost bool) Transit {
	delay := e.delay(departure, number, delays)
	arrival := departure + delay
	if lost || arrival > Horizon {
		e.noteLate(arrival)
		e.stats.Dropped++
		e.stats.Lost++
		e.stats.DroppedBytes += int64(size)
		return Transit{Arrival: Forever, Departure: departure, Delay: delay, Tries: tries, Lost: true}
	}
	t := Transit{Departure: departure, Delay: delay, Tries: tries}
	t.Arrival = e.arrive(arrival, delay)
	if e.law.Repeat > 0 {
		t.Again = e.repeat(departure, number, size)
	}
	return t
}

// delay draws the delay of a message, or of its second copy, which has a purpose of its own.
func (e *Edge) delay(departure time.Duration, number uint64, p purpose) time.Duration {
	delay := e.law.constant
	if e.process != nil {
		e.network.draws.seek(e.key, number, p)
		delay = bounded(e.process.Next(departure))
	}
	if e.far {
		delay = bounded(delay + e.reach(departure, number))
	}
	return delay
}

// arrive takes note of a message that arrives after a delay, at an instant that those before it may
// put off.
func (e *Edge) arrive(arrival, delay time.Duration) time.Duration {
	if arrival > e.last {
		e.last = arrival
	} else if !e.law.Reorder {
		arrival = e.last
	}
	e.underway++
	e.stats.addDelay(delay)
	return arrival
}

// repeat draws whether a message arrives a second time, and returns when; 0 if it does not.
func (e *Edge) repeat(departure time.Duration, number uint64, size int) time.Duration {
	e.network.draws.seek(e.key, number, copies)
	if e.network.random.Float64() >= e.law.Repeat {
		return 0
	}
	delay := e.delay(departure, number, seconds)
	if departure+delay > Horizon {
		return 0
	}
	e.stats.Sent++
	e.stats.SentBytes += int64(size)
	return e.arrive(max(departure+delay, 1), delay) // 0 says that there is none
}

// Loses reports whether the edge may lose a message for good that is sent now.
func (e *Edge) Loses() bool { return e.law.loses }

// Disturbs reports whether the edge may lose a message for good, deliver it twice or let it
// overtake another one.
func (e *Edge) Disturbs() bool { return e.law.loses || e.law.Reorder || e.law.Repeat > 0 }

// reach draws what the accesses of the two ends add to the delay of a message.
func (e *Edge) reach(departure time.Duration, number uint64) time.Duration {
	draws := &e.network.draws
	draws.seek(e.key, number, leaving)
	sum := e.from.access.next(departure)
	draws.seek(e.key, number, reaching)
	return sum + e.to.access.next(departure)
}

func (s *Stats) addDelay(delay time.Duration) {
	s.DelayCount++
	s.DelaySum += delay
	if s.DelaySum < 0 {
		s.DelaySum = Forever
	}
	if delay > s.DelayMax {
		s.DelayMax = delay
	}
}

// bounded holds a model of the user's own to the limits.
func bounded(delay time.Duration) time.Duration {
	return min(max(delay, 0), MaxDelay)
}

// applyHazards decides what loss and outages do to a message that would depart at the given
// instant.
func (e *Edge) applyHazards(departure time.Duration, size int) (at time.Duration, tries int, lost bool) {
	if e.law.Loss.Drop {
		lost = e.fails()
		_, down := e.outageAt(departure)
		return departure, 1, lost || down
	}
	for departure <= Horizon {
		end, down := e.outageAt(departure)
		if !down {
			return e.retransmit(departure, size)
		}
		if end == Forever {
			return departure, 1, true
		}
		departure = e.line.pass(end, size)
	}
	return departure, 1, true
}

// retransmit sends a message until a try succeeds. Each repetition takes the edge's rate at once
// and departs Timeout after the try before it; an outage holds it back without a try.
func (e *Edge) retransmit(departure time.Duration, size int) (at time.Duration, tries int, lost bool) {
	loss := &e.law.Loss
	for tries = 1; e.fails(); tries++ {
		if loss.exhausted(tries) {
			return departure, tries, true
		}
		before := e.line.free
		service := e.line.pass(before, size) - before
		departure += loss.Timeout + service
		for departure <= Horizon {
			end, down := e.outageAhead(departure)
			if !down {
				break
			}
			if end == Forever {
				return departure, tries, true
			}
			departure = end + service
		}
		if departure > Horizon {
			return departure, tries, true
		}
	}
	return departure, tries, false
}

// HasDownlink reports whether Receive may hold a message back. To be asked when a message arrives.
func (e *Edge) HasDownlink() bool { return e.to.downlink.limited() || e.to.downlink.free > 0 }

// Receive passes a message through the receiver's downlink, at the instant of its arrival there,
// and returns the instant of its delivery. Calls for all edges of one destination must come in the
// order of arrival.
func (e *Edge) Receive(now time.Duration, size int) time.Duration {
	return e.to.downlink.pass(now, size+int(e.law.Overhead))
}

// Deliver counts a message as handed over to its receiver, after it was under way for took.
func (e *Edge) Deliver(size int, took time.Duration) {
	e.underway--
	e.stats.Delivered++
	e.stats.DeliveredBytes += int64(size)
	e.stats.TookSum = max(e.stats.TookSum, e.stats.TookSum+took)
}

// Discard counts a message that arrived as dropped by the world, whose receiver is gone.
func (e *Edge) Discard(size int) {
	e.underway--
	e.stats.Dropped++
	e.stats.DroppedBytes += int64(size)
}

// SendControl counts a control message, which skips the link and its outages. It is under way until
// EndControl is called.
func (e *Edge) SendControl(size int) {
	e.underway++
	e.stats.Control++
	e.stats.ControlBytes += int64(size)
}

// EndControl takes note that a control message is no longer under way.
func (e *Edge) EndControl() { e.underway-- }

// Delay returns the edge's present delay at the instant now, without drawing: a
// constant's value, the mean of a (truncated) distribution, a random walk's next value, a trace's
// value at now, and those of its ends' accesses. Queues and loss are not in it.
func (e *Edge) Delay(now time.Duration) time.Duration {
	return bounded(e.law.present(e.process, now) + e.from.access.present(now) + e.to.access.present(now))
}

// Stats returns what the edge has carried so far; what all edges of its source have, if the network
// counts by sender.
func (e *Edge) Stats() Stats { return *e.stats }

// Source returns the index of the node that the edge leads from.
func (e *Edge) Source() int32 { return e.source }

// Destination returns the index of the node that the edge leads to.
func (e *Edge) Destination() int32 { return e.destination }

// idle reports whether nothing is under way on the edge, and nothing that leaves its source from
// now on meets what was: an edge made later would do the same.
func (e *Edge) idle() bool {
	next := e.from.uplink.free
	if s := e.network.shared; s != nil {
		next = s.flows.Now()
	}
	return e.underway == 0 && e.last <= next && e.line.free < next
}
