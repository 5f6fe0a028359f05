package door

import (
	"cmp"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
)

// MessageState declares a message in a mailbox, with its sender if it has one: an actor's message, or a
// system message of protoactor.
func MessageState(s *state.State, name string, message *any) {
	s.Group(name, func(s *state.State) {
		inner, envelope := *message, &actor.MessageEnvelope{}
		if e, ok := inner.(*actor.MessageEnvelope); ok {
			envelope, inner = e, e.Message
		}
		own, protoactors := inner.(proto.Message)
		if protoactors || s.Restoring() {
			state.Proto(s, "protoactor", &own)
		}
		if own != nil {
			inner = nil
		}
		s.Any("message", &inner)
		sender := envelope.Sender
		actors.PIDState(s, "sender", &sender)
		if !s.Restoring() {
			return
		}
		if *message = inner; own != nil {
			*message = own
		}
		if sender != nil {
			*message = &actor.MessageEnvelope{Message: *message, Sender: sender}
		}
	})
}

// State declares the number of messages that left their nodes.
func (d *Door) State(s *state.State) { state.Int(s, "passed", &d.passed) }

// Declare declares a parcel in flight with its message.
func (d *Door) Declare(s *state.State, p *Parcel) {
	from, to := int32(-1), int32(-1)
	if p.Edge != nil {
		from, to = p.Edge.Source(), p.Edge.Destination()
	}
	state.Int(s, "from", &from)
	if state.Int(s, "to", &to); s.Restoring() && from >= 0 {
		p.Edge = d.network.Edge(from, to)
	}
	MessageState(s, "message", &p.Message)
	state.Text(s, "target", &p.Target)
	state.Int(s, "kind", &p.Kind)
	state.Int(s, "size", &p.Size)
	state.Int(s, "sent", &p.Sent)
	state.Int(s, "arrival", &p.Arrival)
	state.Int(s, "again", &p.Again)
	s.Bool("lost", &p.Lost)
	state.Int(s, "ticket", &p.Ticket)
	state.Int(s, "number", &p.Number)
	state.Optional(s, "evidence", &p.evidence, func(s *state.State, e *evidence) {
		s.Message("message", &e.message)
		state.Ints(s, "sums", &e.sums)
	})
	state.Optional(s, "copied", &p.copied, func(s *state.State, c *copied) {
		c.sessions = d.sessions
		state.Exported(s, &c.header)
		c.sessions.DeclareFlow(s, "flow", &c.flow)
		c.sessions.declareLetter(s, "letter", &c.letter)
		c.sessions.DeclareFlow(s, "answers", &c.answers)
		s.Bool("alone", &c.alone)
	})
}

// State declares the sessions of a world whose nodes all live in this process.
func (s *Sessions) State(st *state.State) {
	var flows []*Flow
	if !st.Restoring() {
		for _, f := range s.flows {
			flows = append(flows, f)
		}
		slices.SortFunc(flows, func(a, b *Flow) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
		})
	}
	each := func(st *state.State, f **Flow) { s.DeclareFlow(st, "flow", f) }
	state.List(st, "flows", &flows, each)
	if state.List(st, "old", &s.old, each); st.Restoring() {
		for _, f := range flows {
			if f != nil { // nil after an error, which Restore returns
				s.flows[f.way] = f
			}
		}
	}
}

// DeclareFlow declares a session, or nil. Parcels and calendar entries of one session share it.
func (s *Sessions) DeclareFlow(st *state.State, name string, f **Flow) {
	state.Shared(st, name, f, func(st *state.State, f *Flow) {
		f.sessions = s
		state.Int(st, "from", &f.from)
		state.Int(st, "to", &f.to)
		letter := func(st *state.State, l **letter) { s.declareLetter(st, "letter", l) }
		f.sender.Declare(st, "sender", letter)
		f.receiver.Declare(st, "receiver", letter)
		state.Int(st, "coming", &f.coming)
		st.Bool("loses", &f.loses)
		state.Int(st, "tells", &f.tells)
		state.Int(st, "woken", &f.woken)
		s.declareLetter(st, "asked", &f.asked)
		state.Int(st, "vain", &f.vain)
		st.Bool("mute", &f.mute)
		st.Bool("over", &f.over)
	})
}

func (s *Sessions) declareLetter(st *state.State, name string, l **letter) {
	state.Shared(st, name, l, func(st *state.State, l *letter) {
		if st.Bool("gone", &l.gone); l.gone && !st.Restoring() {
			left := *l
			left.Message, left.evidence = nil, nil
			l = &left
		}
		st.Group("parcel", func(st *state.State) { s.door.Declare(st, &l.Parcel) })
		state.Int(st, "copies", &l.copies)
		st.Bool("sent", &l.sent)
		st.Bool("taken", &l.taken)
	})
}
