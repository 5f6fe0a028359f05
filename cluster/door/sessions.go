package door

import (
	"time"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Courier is a world as the sessions of its nodes need it.
type Courier interface {
	// Travel takes a parcel that Edge.Send has let through, on its way to [Sessions.Arrive].
	Travel(p *Parcel)
	// Hand gives a message that is the next one of its session to its receiver. Its parcel was
	// under way on an edge that has counted it.
	Hand(p *Parcel)
	// Wake calls [Sessions.Wake] at an instant. If it is vain, nobody has answered for so long that
	// a run must not wait for it.
	Wake(f *Flow, at time.Duration, vain bool)
}

// Sessions have each message between two nodes handled once and in order, where an edge may lose,
// repeat or reorder it: see package session. Elsewhere there is none. What an edge cannot lose is
// not acknowledged. Acknowledgements ride on messages in the other direction; if there are none for
// a while they travel alone.
//
// A message stays with its session until the first copy arrives, which is all that the receiver
// needs of it: the others carry only their size. It is different where the receiver lives in
// another process: see [Sessions.Reach].
type Sessions struct {
	// Again, if not nil, is told when a message is sent again.
	Again func(now time.Duration)

	door    *Door
	network *link.Network
	courier Courier
	flows   map[way]*Flow // those of which this process has the sender
	old     []*Flow       // those of nodes that have left, until all is handled

	abroad Abroad // nil where all nodes live here
	lives  []session.Life
	in     map[inbound]*Flow // those from nodes that live elsewhere
}

// way is from one node to another.
type way struct{ from, to int32 }

func (w way) back() way { return way{w.to, w.from} }

// Flow is the session from one life of a node to one of another, or the half of it that is here.
type Flow struct {
	way
	sessions *Sessions
	abroad   bool         // one of the nodes lives in another process
	fromLife session.Life // kept only then, as is toLife
	toLife   session.Life
	strange  bool // the source must be told which life the destination has
	sender   session.Sender[*letter]
	receiver session.Receiver[*letter]
	coming   int           // messages that the receiver, which is here, has not handed over
	loses    bool          // the edge may lose, or might before
	tells    time.Duration // when an acknowledgement travels alone; Never if none is due
	woken    time.Duration // the instant for which Wake was called; Never if for none
	asked    *letter       // that was sent last
	vain     int           // how often in a row, while the link was not down for a time
	mute     bool          // the source has crashed: nothing is sent again
	over     bool          // the destination has gone
}

// From is the node that the messages come from.
func (f *Flow) From() int32 { return f.from }

// To is the node that the messages go to.
func (f *Flow) To() int32 { return f.to }

// letter is a message that a session has to deliver.
type letter struct {
	Parcel
	copies int  // under way
	sent   bool // once, at least
	taken  bool // the receiver has it, or nobody will
	gone   bool // its message was delivered or released, and may be reused
}

// copied is what a copy of a message knows of sessions, or a message that an acknowledgement rides
// on.
type copied struct {
	sessions *Sessions
	header   session.Header
	flow     *Flow   // of the message; nil if it is in none
	letter   *letter // nil if it is in none
	answers  *Flow   // that it acknowledges; nil if none
	alone    bool    // the acknowledgement is all there is
}

// InSession reports whether the parcel is a copy of a message that a session delivers, or an
// acknowledgement alone.
func (p *Parcel) InSession() bool {
	return p.copied != nil && (p.copied.letter != nil || p.copied.alone)
}

// hopeless is after how many tries in a row of one message a run does not wait for its answer any
// longer.
const hopeless = 100

// KeepSessions has the door keep sessions over the edges that disturb messages.
func (d *Door) KeepSessions(courier Courier) *Sessions {
	d.sessions = &Sessions{door: d, network: d.network, courier: courier, flows: map[way]*Flow{}}
	return d.sessions
}

// Answers reports whether a session has to do with the parcel: [Sessions.Arrive] is to be told.
func (p *Parcel) Answers() bool { return p.copied != nil }

// wants reports whether a session is to deliver a parcel, because its edge disturbs messages or did
// before. An acknowledgement rides on one that goes without.
func (s *Sessions) wants(p *Parcel) bool {
	if p.Edge.Disturbs() {
		return true
	}
	if len(s.flows) == 0 && len(s.in) == 0 {
		return false
	}
	w := way{p.Edge.Source(), p.Edge.Destination()}
	if s.flows[w] != nil {
		return true
	}
	if s.isAbroad(w.to) {
		return s.in[inbound{w.back(), s.lives[w.to]}] != nil
	}
	c := &copied{sessions: s}
	if s.answer(w, c); c.answers != nil {
		p.copied = c
		p.Size += session.HeaderSize
	}
	return false
}

// take has a session deliver a parcel.
func (s *Sessions) take(now time.Duration, p Parcel) {
	w := way{p.Edge.Source(), p.Edge.Destination()}
	f := s.flows[w]
	if f == nil {
		f = s.begin(w)
	}
	f.sender.Push(&letter{Parcel: p})
	f.coming++
	f.pump(now)
}

func (s *Sessions) begin(w way) *Flow {
	f := &Flow{way: w, sessions: s, tells: session.Never, woken: session.Never}
	if s.isAbroad(w.to) {
		f.abroad, f.loses, f.fromLife, f.toLife = true, true, s.lives[w.from], s.lives[w.to]
	}
	s.flows[w] = f
	return f
}

// answer has a copy that goes one way acknowledge the session of the other.
func (s *Sessions) answer(w way, c *copied) {
	if f := s.flows[w.back()]; f != nil && f.loses {
		c.answers, c.header.Ack = f, f.receiver.Ack()
		f.tells = session.Never
	}
}

// trip is the round trip on an idle network.
func (f *Flow) trip(now time.Duration) time.Duration {
	s := f.sessions
	d := s.network.Delay(f.from, f.to, now) + s.network.Delay(f.to, f.from, now)
	if f.abroad {
		d += s.abroad.Trip(f.from) + s.abroad.Trip(f.to)
	}
	return d
}

// pump sends what is due.
func (f *Flow) pump(now time.Duration) {
	if f.over || f.mute {
		return
	}
	for n, l, ok := f.sender.Next(now); ok; n, l, ok = f.sender.Next(now) {
		e := f.sessions.network.Edge(f.from, f.to)
		f.loses = f.loses || e.Loses()
		f.ask(now, e, l)
		if l.sent && f.sessions.Again != nil {
			f.sessions.Again(now)
		}
		l.sent = true
		c := &copied{sessions: f.sessions, flow: f, letter: l}
		c.header = session.Header{Number: n, Asks: f.loses}
		p := &Parcel{Edge: e, Target: l.Target, Kind: l.Kind, Size: l.Size + session.HeaderSize, copied: c}
		if f.abroad {
			f.pack(p, l)
		} else {
			f.sessions.answer(f.way, c)
		}
		f.sessions.send(now, p)
	}
	f.arm()
}

// ask counts how often a message was sent again in vain. While the link is down for a time it does
// not count.
func (f *Flow) ask(now time.Duration, e *link.Edge, l *letter) {
	if l != f.asked {
		f.asked, f.vain = l, 0
		return
	}
	if down, is := e.Outage(now, now+1); is && down.To < link.Forever {
		f.vain = 0
		return
	}
	f.vain++
}

// send puts a copy on its edge.
func (s *Sessions) send(now time.Duration, p *Parcel) {
	p.copied.launch()
	t := p.Edge.Send(now, p.Size)
	p.Sent, p.Ticket = now, t.Ticket
	if p.Ticket != 0 {
		p.Arrival = t.Arrival
		s.courier.Travel(p)
		return
	}
	s.depart(p, t)
	if !p.Lost {
		s.courier.Travel(p)
	}
}

// launch takes note that a copy is under way to a receiver here.
func (c *copied) launch() {
	if c.letter != nil && !c.flow.abroad {
		c.letter.copies++
	}
}

// depart takes in what became of a copy.
func (s *Sessions) depart(p *Parcel, t link.Transit) {
	c := p.copied
	p.Arrival, p.Lost, p.Ticket, p.Again = t.Arrival, t.Lost, 0, t.Again
	if p.Lost && p.Packet != nil {
		p.release()
		_ = p.evidence.check() // nobody sees what was written
	}
	if c.letter == nil {
		return
	}
	f := c.flow
	switch {
	case f.over || f.mute:
	case c.header.Asks:
		f.sender.Departed(c.header.Number, t.Departure, f.trip(p.Sent))
	default:
		f.sender.Settle(c.header.Number)
	}
	if p.Again > 0 {
		c.launch()
	}
	if p.Lost && !f.abroad {
		f.land(c.letter)
	}
	f.arm()
}

// land takes note that a copy is no longer under way. A message of a node that has crashed is lost
// with its last copy.
func (f *Flow) land(l *letter) {
	if l.copies--; l.copies == 0 && f.mute {
		l.discard()
	}
}

// discard gives up a message, unless its receiver has it.
func (l *letter) discard() {
	if !l.taken {
		l.taken, l.gone = true, true
		l.release()
		_ = l.evidence.check() // nobody sees what was written
	}
}

// Arrive takes a parcel that has arrived. It reports whether that is to be handed over and counted:
// it is neither a copy, of which Arrive does so when its turn comes, nor an acknowledgement alone.
func (s *Sessions) Arrive(now time.Duration, p *Parcel) (handOver bool) {
	c := p.copied
	if a := c.answers; a != nil && !a.over && !a.mute {
		a.sender.Acknowledge(now, c.header.Ack)
		a.pump(now)
	}
	switch {
	case c.alone:
		p.Edge.Deliver(p.Size, now-p.Sent)
	case c.letter == nil:
		return true
	case c.flow.over:
		p.Edge.Discard(p.Size)
		c.letter.discard() // which the sender has not kept where the edge loses none
	default:
		p.Edge.Deliver(p.Size, now-p.Sent)
		c.flow.receive(now, p)
	}
	return false
}

// receive takes a copy in and hands over what is next.
func (f *Flow) receive(now time.Duration, p *Parcel) {
	c := p.copied
	if f.mute && c.letter.taken { // it may have been given up, of which the receiver knows nothing
		f.land(c.letter)
		return
	}
	if f.receiver.Receive(c.header.Number, c.letter, c.header.Asks) {
		c.letter.taken, c.letter.Edge = true, p.Edge
	}
	f.land(c.letter)
	for l, ok := f.receiver.Next(); ok; l, ok = f.receiver.Next() {
		l.Edge, l.Sent, l.Arrival = p.Edge, p.Sent, p.Arrival
		f.coming--
		l.gone = true
		f.sessions.courier.Hand(&l.Parcel)
		if f.over {
			return
		}
	}
	if f.mute {
		drop(f.receiver.Drop())
	}
	f.owe(now)
}

// owe has what is owed told after a while.
func (f *Flow) owe(now time.Duration) {
	if (f.receiver.Owes() || f.strange) && !f.mute && f.tells == session.Never {
		f.tells = session.Sum(now, session.AckDelay(f.trip(now)))
		f.arm()
	}
}

// drop gives up messages that a receiver has kept.
func drop(letters []*letter) {
	for _, l := range letters {
		l.taken = false
		l.discard()
	}
}

// arm has the flow woken when something is due.
func (f *Flow) arm() {
	due := f.tells
	if !f.over && !f.mute {
		due = min(due, f.sender.Due())
	}
	if due < f.woken {
		f.woken = due
		f.sessions.courier.Wake(f, due, f.vain >= hopeless && f.tells == session.Never)
	}
}

// Wake does what is due in a flow, for which Wake was called for an instant.
func (s *Sessions) Wake(now time.Duration, f *Flow, at time.Duration) {
	if at != f.woken {
		return // it was called for an earlier one since
	}
	f.woken = session.Never
	if f.over {
		return
	}
	if f.tells <= now {
		s.tell(now, f)
	}
	f.pump(now)
	f.arm()
}

// tell has an acknowledgement travel alone.
func (s *Sessions) tell(now time.Duration, f *Flow) {
	f.tells = session.Never
	if !f.receiver.Owes() && !f.strange {
		return
	}
	f.strange = false
	c := &copied{sessions: s, answers: f, alone: true}
	c.header.Ack = f.receiver.Ack()
	p := &Parcel{Edge: s.network.Edge(f.to, f.from), Kind: wire.User, Size: ackSize, copied: c}
	if f.abroad {
		f.packAck(p)
	}
	s.send(now, p)
}

// ackSize is the number of bytes of an acknowledgement alone: a frame's prefix, and the header.
const ackSize = wire.PrefixSize + session.HeaderSize

// lasts reports whether something of a node that has left is still to be handled. What an edge
// cannot lose is not kept by the sender, and may be under way or wait for what it has overtaken.
func (f *Flow) lasts() bool { return f.sender.Outstanding() > 0 || f.coming > 0 && !f.abroad }

// End ends the sessions of a node whose life is over. With left, what it has sent is handled, and
// sent again until it is acknowledged; otherwise only what is under way arrives.
func (s *Sessions) End(node int32, left bool) {
	for w, f := range s.flows { // in any order: nothing is sent
		switch node {
		case w.from:
			delete(s.flows, w)
			switch {
			case !left:
				f.silence()
			case f.lasts():
				s.old = append(s.old, f)
			}
		case w.to:
			delete(s.flows, w)
			f.end()
		}
	}
	for k, f := range s.in {
		if k.to == node {
			delete(s.in, k)
			f.end()
		}
	}
	kept := s.old[:0]
	for _, f := range s.old {
		if f.to == node {
			f.end()
		} else if f.lasts() {
			kept = append(kept, f)
		}
	}
	clear(s.old[len(kept):])
	s.old = kept
}

// silence has the source send nothing again.
func (f *Flow) silence() {
	f.mute, f.tells = true, session.Never
	for _, l := range f.sender.End() {
		if l.copies == 0 {
			l.discard()
		}
	}
	drop(f.receiver.Drop())
}

// end gives up what the destination has not got.
func (f *Flow) end() {
	f.over, f.tells = true, session.Never
	for _, l := range f.sender.End() {
		l.discard()
	}
	drop(f.receiver.Drop())
}
