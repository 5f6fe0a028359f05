package session

import "time"

// Sender is the half of a session at the node that the messages come from. It keeps each message, a
// T, until it is acknowledged. The zero value begins a session.
type Sender[T any] struct {
	first   Number     // of the oldest message kept
	kept    []entry[T] // from first on
	begun   int        // how many of these have been sent
	wait    Timeout
	late    int           // messages, since one was in time; some count for several
	idle    time.Duration // the round trip that an idle network took of late
	settled []T           // scratch of Acknowledge
}

// entry is a message that is kept.
type entry[T any] struct {
	item     T
	tries    int
	arrived  bool          // as the receiver says
	departed time.Duration // when the first try did
	again    time.Duration // when the last one did
	passed   bool          // one behind it has arrived before it
	due      time.Duration // when it is to be sent again; Never while a try has not departed
}

// TooLate is after how many late messages the wait is taken for too short, if none is in time.
const TooLate = 8

// unexplained is how much more a late message counts that the loss of its first try hardly
// explains: the answer is rather too soon for the last try, or too late. Where many send to one at
// a time, messages wait for each other, and repeats make them wait for longer.
const unexplained = TooLate / 2

// probed is after how many tries of the oldest message the others wait for an answer to it.
const probed = 2

// Push takes a message to be sent after all others. Next says when.
func (s *Sender[T]) Push(item T) { s.kept = append(s.kept, entry[T]{item: item}) }

// Next returns a message to be sent now, and its number: one that has waited for too long, or the
// first that has not been sent and has room in the Window. It is asked again until there is none.
// For each message it returns, Departed or Settle must follow.
//
// When the oldest message was sent several times in vain, the link is likely down: it alone is sent
// again until there is an answer.
func (s *Sender[T]) Next(now time.Duration) (n Number, item T, ok bool) {
	for i := range s.repeatable() {
		if e := &s.kept[i]; !e.arrived && e.due <= now {
			e.tries++
			e.due = Never
			return s.first + Number(i), e.item, true
		}
	}
	if s.begun < min(len(s.kept), Window) {
		e := &s.kept[s.begun]
		e.tries, e.due = 1, Never
		s.begun++
		return s.first + Number(s.begun-1), e.item, true
	}
	return 0, item, false
}

// repeatable is how many of the oldest messages may be sent again.
func (s *Sender[T]) repeatable() int {
	if s.begun > 0 && s.kept[0].tries > probed {
		return 1
	}
	return min(s.begun, 1+Selected)
}

// Departed says when a try of a message left its node, from when on it waits, and the round trip
// that an idle network takes.
func (s *Sender[T]) Departed(n Number, at, trip time.Duration) {
	if i := int(n - s.first); i < s.begun {
		e := &s.kept[i]
		s.idle, e.again = trip, at
		if e.due = Sum(at, s.wait.After(e.tries, trip)); e.tries == 1 {
			e.departed = at
		}
	}
}

// Sum adds times that are not negative, up to Never.
func Sum(a, b time.Duration) time.Duration {
	if a > Never-b {
		return Never
	}
	return a + b
}

// Settle says that a message needs no acknowledgement, because its link loses none.
func (s *Sender[T]) Settle(n Number) {
	if i := int(n - s.first); i < s.begun {
		s.kept[i].arrived = true
		s.advance()
	}
}

// Acknowledge takes in what the receiver has at an instant, and returns the messages that are not
// kept any longer, in their order, until the next call. An Ack that is older than another, or of
// messages that were not sent, changes nothing.
func (s *Sender[T]) Acknowledge(now time.Duration, a Ack) (settled []T) {
	s.settled = s.settled[:0]
	if (s.first + Number(s.begun)).Before(a.Next) {
		return nil
	}
	for i := range s.begun {
		n := s.first + Number(i)
		place := uint32(n - a.Next - 1)
		if n.Before(a.Next) || n != a.Next && place < Selected && a.Seen>>place&1 == 1 {
			s.arrive(i, now)
		}
	}
	s.advance()
	if s.begun > 0 && s.first == a.Next {
		s.kept[0].passed = s.kept[0].passed || a.Seen != 0
	}
	return s.settled
}

// arrive takes note that a message has. The round trip of one that was sent again, or of which the
// first acknowledgement may be lost, is not known (Karn and Partridge 1987, "Improving round-trip
// time estimates in reliable transport protocols"). When the oldest is late again and again it is
// the wait that is too short: it grows, but not by what was waited for in vain. It counts for
// nothing where one behind it was faster, which tells that it was lost.
func (s *Sender[T]) arrive(i int, now time.Duration) {
	e := &s.kept[i]
	if e.arrived {
		return
	}
	if trip := max(now-e.departed, 0); e.tries == 1 && now <= e.due && e.due != Never {
		s.wait.Measure(trip)
		s.late = 0
	} else if i == 0 && !e.passed {
		s.late++
		if since := now - e.again; since < s.idle/2 || since > s.wait.After(1, s.idle) {
			s.late += unexplained
		}
		if s.late >= TooLate && e.due != Never {
			s.wait.Extend(trip, s.idle)
			s.late = 0
		}
	}
	s.settled = append(s.settled, e.item)
	*e = entry[T]{arrived: true}
}

// advance forgets the oldest messages that have arrived.
func (s *Sender[T]) advance() {
	n := 0
	for n < s.begun && s.kept[n].arrived {
		n++
	}
	if n == 0 {
		return
	}
	left := copy(s.kept, s.kept[n:])
	clear(s.kept[left:])
	s.kept = s.kept[:left]
	s.first += Number(n)
	s.begun -= n
}

// Due returns the instant at which Next has a message to be sent again; Never if there is none.
func (s *Sender[T]) Due() time.Duration {
	due := Never
	for i := range s.repeatable() {
		if e := &s.kept[i]; !e.arrived {
			due = min(due, e.due)
		}
	}
	return due
}

// Outstanding returns how many messages are kept.
func (s *Sender[T]) Outstanding() int { return len(s.kept) }

// End ends the session and returns the messages that were not acknowledged, in their order.
func (s *Sender[T]) End() (left []T) {
	for i := range s.kept {
		if e := &s.kept[i]; !e.arrived {
			left = append(left, e.item)
		}
	}
	*s = Sender[T]{}
	return left
}
