// Package session is the protocol by which all messages from one node to another are handled, each
// once and in the order of sending, over links that lose, repeat and reorder them.
//
// A session goes one way and has two halves: a [Sender] where the messages come from and a
// [Receiver] where they go. It belongs to one life of either node: who crashes forgets its half,
// and both begin another session. Numbers count the messages. The receiver keeps what comes too
// early, drops what it has, and tells by an [Ack] what has arrived. The sender keeps each message
// until then and sends it again when it has waited for too long.
//
// The package has no clock and sends nothing. A world tells the halves what happens and when, and
// carries out what they answer: which message is to be sent now, which one is the next to be
// handled, when to look again. So one protocol serves virtual time, real time and connections.
package session

import (
	"math"
	"time"
)

// Never is later than every instant of a run.
const Never = time.Duration(math.MaxInt64)

// Number is the place of a message in its session, from 0 on, modulo 2³². Numbers of one session
// that are compared lie less than 2³¹ apart (RFC 1982, "Serial number arithmetic").
type Number uint32

// Before reports whether a message was sent before another.
func (n Number) Before(m Number) bool { return int32(n-m) < 0 }

// Window is how many messages can be on their way at a time. Others wait for their turn.
const Window = 1024

// Selected is how many messages behind the first missing one an Ack can tell of.
const Selected = 64

// Ack says what has arrived.
type Ack struct {
	// Next is the first message that has not: all before it have.
	Next Number
	// Seen says which of those behind it have: bit i stands for the message Next + 1 + i.
	Seen uint64
}

// Life counts the lives of a node, modulo 2¹⁶. Those of one node that are compared lie less than
// 2¹⁵ apart.
type Life uint16

// Before reports whether a life was earlier than another.
func (l Life) Before(m Life) bool { return int16(l-m) < 0 }

// Header is what a message of a pair of nodes carries for their sessions, one each way. A session
// is that of one life of either node.
type Header struct {
	// Node is the position of the node that the message comes from, below MaxNode.
	Node int32
	// From is the life of that node, and To the life of the other one as far as it is known there.
	From, To Life
	// Number is the message's place in its session.
	Number Number
	// Asks says that the sender keeps the message until it is acknowledged.
	Asks bool
	// Answers says that Ack tells of the session in the other direction.
	Answers bool
	// Alone says that the acknowledgement is all there is: there is no Number.
	Alone bool
	Ack   Ack
}

// MaxNode bounds the position of a node that a Header can name.
const MaxNode = 1 << 29

// HeaderSize is the number of bytes of an encoded Header: Node, of which the three booleans take
// the upper bits, From and To, Number, and Ack.
const HeaderSize = 4 + 2 + 2 + 4 + 4 + 8

// Bounds of the wait for an acknowledgement.
const (
	// LeastWait is the shortest wait before a message is sent again: below it clocks of real time
	// are not good enough.
	LeastWait = 2 * time.Millisecond
	// Backoff is how many times as long as at first the wait becomes at most. When a link that was
	// down is up again, it takes no longer until somebody notices.
	Backoff = 8
	// MostDelay bounds how long a receiver waits for a message that an acknowledgement can ride on.
	MostDelay = 40 * time.Millisecond
)

// AckDelay is how long a receiver waits for a message that an acknowledgement can ride on, given
// the round trip on an idle network.
func AckDelay(trip time.Duration) time.Duration {
	return min(max(trip/4, LeastWait/4), MostDelay)
}

// Timeout is how long a sender waits for an acknowledgement. It is estimated as in RFC 6298
// ("Computing TCP's retransmission timer", section 2), and is never below what an idle network
// takes.
type Timeout struct {
	smoothed, variation time.Duration
	measured            bool
	patience            time.Duration // until a round trip is measured again; 0 for none
}

// Measure takes in the round trip of a message that was sent once.
func (t *Timeout) Measure(trip time.Duration) {
	t.patience = 0
	if !t.measured {
		t.smoothed, t.variation, t.measured = trip, trip/2, true
		return
	}
	t.variation += (max(trip-t.smoothed, t.smoothed-trip) - t.variation) / 4
	t.smoothed += (trip - t.smoothed) / 8
}

// Extend makes the wait longer until a round trip is measured. It is not known but for that it is
// this one at most. On an idle network it is idle.
func (t *Timeout) Extend(trip, idle time.Duration) {
	t.patience = max(t.patience, min(trip, 2*min(t.After(1, idle), Never/Backoff/2)))
}

// After returns the wait for a try, the first being 1: it doubles with each, up to Backoff times.
// The round trip on an idle network is trip.
func (t *Timeout) After(try int, trip time.Duration) time.Duration {
	idle := trip + AckDelay(trip) + LeastWait
	wait := max(t.smoothed+4*t.variation, idle)
	if !t.measured {
		wait = idle + trip/2
	}
	wait = max(wait, t.patience)
	if wait > Never/Backoff {
		return Never
	}
	most := Backoff * wait
	for ; try > 1 && wait < most; try-- {
		wait *= 2
	}
	return wait
}
