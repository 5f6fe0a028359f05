package door

import (
	"time"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Abroad is what sessions ask about the nodes of other processes.
type Abroad interface {
	// Away reports whether a node lives in another process.
	Away(node int32) bool
	// Trip is the time that it takes to the process of a node and back, on top of the emulated
	// network; 0 for nodes that live here.
	Trip(node int32) time.Duration
	// ID is that of the actor of a node.
	ID(node int32) string
}

// inbound is a session to a node here from a life of a node of another process.
type inbound struct {
	way
	life session.Life
}

// Reach has the sessions reach nodes of other processes, of all nodes. Of a session with one of
// these, each process has the half of its own node. The edges are emulated where the sender of a
// copy lives. A copy is a packet of its own, and the message stays at the sender until it is
// acknowledged.
//
// Both ends say in each header which life of either they mean. What is for a former life is not
// handled. Its sender is told, and sends all that was not acknowledged to the present life, in a
// new session.
func (s *Sessions) Reach(a Abroad, nodes int) {
	s.abroad, s.lives, s.in = a, make([]session.Life, nodes), map[inbound]*Flow{}
}

// isAbroad reports whether a node lives in another process.
func (s *Sessions) isAbroad(node int32) bool { return s.abroad != nil && s.abroad.Away(node) }

// Begin says which life of a node that is here begins.
func (s *Sessions) Begin(node int32, life session.Life) { s.lives[node] = life }

// pack makes a copy of a message the packet that leaves this process.
func (f *Flow) pack(p *Parcel, l *letter) {
	h := &p.copied.header
	h.Node, h.From, h.To = f.from, f.fromLife, f.toLife
	if in := f.sessions.in[inbound{f.back(), f.toLife}]; in != nil && in.toLife == f.fromLife {
		h.Answers, h.Ack = true, in.receiver.Ack()
		in.tells = session.Never
	}
	p.Packet = l.Packet.Copy()
	p.Packet.SetSession(h)
	p.evidence, l.evidence = l.evidence, nil // of the first copy alone
}

// packAck makes an acknowledgement alone the packet that leaves this process.
func (f *Flow) packAck(p *Parcel) {
	h := &p.copied.header
	h.Node, h.From, h.To, h.Answers, h.Alone = f.to, f.toLife, f.fromLife, true, true
	frame := wire.Acknowledgement(f.sessions.abroad.ID(f.from), *h)
	packet, err := wire.Pack(&frame, wire.Eager)
	if err != nil {
		panic(err) // the frame is within all limits
	}
	p.Target, p.Packet = frame.Target, packet
}

// Admit takes in a frame of a session from a node of another process that has arrived at one that
// is here. It takes the frame over and has the courier hand over what is next in its session.
func (s *Sessions) Admit(now time.Duration, to int32, f *wire.Frame) {
	h := &f.Session
	if int(h.Node) >= len(s.lives) || !s.abroad.Away(h.Node) {
		f.Release()
		return
	}
	s.meet(now, h.Node, h.From)
	w := way{h.Node, to}
	if h.Answers {
		if out := s.outbound(w.back(), h.To, h.From); out != nil {
			out.acknowledge(now, h.Ack)
		}
	}
	if h.Alone {
		f.Release()
		return
	}
	in := s.inbound(w, h.From)
	if in.strange = in.strange || h.To != in.toLife; h.To != in.toLife || !in.receiver.Receive(h.Number,
		&letter{Parcel: Parcel{Frame: f, Edge: s.network.Edge(w.from, w.to), Kind: f.Kind, Target: f.Target}}, h.Asks) {
		f.Release()
	}
	arrival := now - f.Late
	for l, ok := in.receiver.Next(); ok; l, ok = in.receiver.Next() {
		l.taken, l.Arrival = true, arrival
		s.courier.Hand(&l.Parcel)
	}
	in.owe(now)
}

// meet takes note of the life of a node of another process. What was not acknowledged by a former
// one is for this.
func (s *Sessions) meet(now time.Duration, node int32, life session.Life) {
	if !s.lives[node].Before(life) {
		return
	}
	s.lives[node] = life
	for w, f := range s.flows { // in any order: the flows are of different nodes
		if w.to == node {
			f.renew(now, life)
		}
	}
	for _, f := range s.old {
		if f.to == node {
			f.renew(now, life)
		}
	}
}

// renew begins the session to another life of the destination, with what the former one did not
// acknowledge.
func (f *Flow) renew(now time.Duration, life session.Life) {
	f.toLife = life
	for _, l := range f.sender.End() {
		f.sender.Push(l)
	}
	f.pump(now)
}

// outbound is the session from a life of a node that is, or was, here to one of another process;
// nil if there is none.
func (s *Sessions) outbound(w way, from, to session.Life) *Flow {
	if f := s.flows[w]; f != nil && f.fromLife == from && f.toLife == to {
		return f
	}
	for _, f := range s.old {
		if f.way == w && f.fromLife == from && f.toLife == to {
			return f
		}
	}
	return nil
}

// inbound is the session from a life of a node of another process to the present one of a node
// here. It begins with what comes first.
func (s *Sessions) inbound(w way, life session.Life) *Flow {
	k := inbound{w, life}
	f := s.in[k]
	if f == nil {
		f = &Flow{way: w, sessions: s, abroad: true, fromLife: life, toLife: s.lives[w.to], tells: session.Never,
			woken: session.Never}
		s.in[k] = f
	}
	return f
}

// acknowledge gives up the messages that another process has.
func (f *Flow) acknowledge(now time.Duration, a session.Ack) {
	for _, l := range f.sender.Acknowledge(now, a) {
		l.discard()
	}
	f.pump(now)
}
