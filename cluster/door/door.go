// Package door is the one place where a message leaves its node. A node's address resolver hands
// out processes that stand behind the door, so every user and system message to them passes here.
// The message must have a wire form. The door decides its kind, counts it on its edge, and is told
// when it arrives or that it is lost. For a world in real time it encodes the message.
//
// The door has no clock and starts nothing. A world asks it with Pass, carries the Parcel, and
// reports its end with Arrive or Discard.
package door

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Door admits the messages of a world's nodes to their links. It is not safe for
// concurrent use; a world with several threads locks around it.
type Door struct {
	network *link.Network
	nodes   []string
	index   map[string]int32
	strict  bool
	tensors *protos.TensorPool

	passed   uint64    // messages
	sessions *Sessions // nil where messages come as their links have them

	// Encodes says that parcels carry packets, as between processes, and not messages.
	Encodes bool
	// Cuts are those of the nodes, which frames bear, and Flights counts their packets; nil where
	// no state is saved of nodes one by one.
	Cuts    []wire.Cut
	Flights *wire.Flights
}

// New returns the door of the nodes with these addresses, in the order of the
// network. In strict mode every frame is encoded and decoded on its way, with
// copies of its tensors from the pool, the decoded message is delivered, and delivery
// checks that nobody wrote what had been sent.
func New(network *link.Network, nodes []string, strict bool, tensors *protos.TensorPool) *Door {
	d := &Door{network: network, nodes: nodes, index: make(map[string]int32, len(nodes)), strict: strict,
		tensors: tensors}
	for i, name := range nodes {
		d.index[name] = int32(i)
	}
	return d
}

// Node returns the position of the node with an address.
func (d *Door) Node(address string) (int32, bool) {
	i, ok := d.index[address]
	return i, ok
}

// Parcel is a message on its way.
type Parcel struct {
	// Edge is the directed link that it travels on, until Arrive or Discard has returned.
	Edge *link.Edge
	// Message is what the receiver's mailbox is given; nil if the door encodes.
	Message any
	// Packet is what becomes that message where it is received, if the door encodes.
	Packet *wire.Packet
	// Frame is what has come from another process, in its session; nil otherwise.
	Frame *wire.Frame
	// Target is the id of the actor that it is for.
	Target string
	// Kind is the way that it goes. The door decides it, and nobody behind it asks again.
	Kind wire.Kind
	// Size is the number of bytes of the frame.
	Size int
	// Sent and Arrival are the instants at the two ends of the edge; the receiver's
	// downlink comes after Arrival.
	Sent, Arrival time.Duration
	// Again is when a second copy arrives; 0 if none does. See Second.
	Again time.Duration
	// Lost marks a message that never arrives.
	Lost bool
	// Kept marks one that a session has taken. What it sends travels as parcels of their own.
	Kept bool
	// Ticket, unless it is 0, is that of a message whose Arrival is not known yet.
	Ticket int32
	// Number tells the message apart from all others that have passed the door, its copies not.
	Number uint64

	evidence *evidence
	copied   *copied // nil where no session has to do with it
}

// Emulated reports whether the parcel travels on the emulated network, as the messages of actors
// do; messages of the control protocol and protoactor's own do not.
func (p *Parcel) Emulated() bool { return p.Kind == wire.User }

// Pass takes the message that an actor of node source sends to actor target of node destination at
// instant now; kind is wire.System for protoactor's own messages, wire.User for all others. It
// returns an error for a message that has no wire form, and takes over the sender's reference
// otherwise.
func (d *Door) Pass(
	now time.Duration, source, destination int32, target string, kind wire.Kind, message any,
) (Parcel, error) {
	p := Parcel{
		Edge: d.network.Edge(source, destination), Message: message, Target: target, Kind: kind,
		Sent: now, Arrival: now, Number: d.passed,
	}
	d.passed++
	frame, err := d.frame(&p, source)
	if err == nil {
		p.Size, err = wire.Measure(&frame)
	}
	if err != nil {
		return Parcel{}, d.unsendable(source, destination, target, err)
	}
	if d.strict {
		if err := d.roundTrip(&frame, &p); err != nil {
			return p, d.unsendable(source, destination, target, err)
		}
	}
	if p.Emulated() && d.sessions != nil && d.sessions.wants(&p) {
		frame.InSession = d.sessions.isAbroad(destination)
		if err := d.encode(&frame, &p); err != nil {
			return p, d.unsendable(source, destination, target, err)
		}
		d.sessions.take(now, p)
		return Parcel{Kept: true, Number: p.Number}, nil
	}
	switch p.Kind {
	case wire.System:
		p.Edge.SendControl(p.Size)
		p.Arrival = now + p.Edge.Delay(now)
	case wire.Control:
		p.Edge.SendControl(p.Size)
	default:
		transit := p.Edge.Send(now, p.Size)
		p.Arrival, p.Again, p.Lost, p.Ticket = transit.Arrival, transit.Again, transit.Lost, transit.Ticket
	}
	if p.Lost {
		p.release()
		return p, p.evidence.check()
	}
	if err := d.encode(&frame, &p); err != nil {
		return p, d.unsendable(source, destination, target, err)
	}
	return p, nil
}

// encode encodes a parcel's message as a packet if the door encodes. After the delivery, the sender may
// overwrite the memory of a view. A packet that is read again later, as a second copy or when a session
// retransmits it to another process, therefore holds copies of views.
func (d *Door) encode(frame *wire.Frame, p *Parcel) (err error) {
	if !d.Encodes {
		return nil
	}
	late := frame.InSession || p.Again > 0
	if late {
		frame.Tensors = slices.Clone(frame.Tensors) // the list is the message's
	}
	for i, t := range frame.Tensors {
		if late && t.IsView() {
			frame.Tensors[i] = d.tensors.Copy(t.Data)
		} else {
			t.Retain()
		}
	}
	if p.Packet, err = wire.Pack(frame, wire.Eager); err != nil {
		frame.Release()
	} else if d.Flights != nil {
		p.Packet.Count(d.Flights)
	}
	Release(p.Message)
	p.Message = nil
	return err
}

// unsendable is the error of a message that has no wire form.
func (d *Door) unsendable(source, destination int32, target string, err error) error {
	return fmt.Errorf("%s to %s/%s: %w", d.nodes[source], d.nodes[destination], target, err)
}

// Losses says on which edges, or from which nodes, how many messages were lost, or take longer than
// any run, which are the usual causes of a standstill. It is empty if none were.
func (d *Door) Losses() string {
	text := ""
	for _, c := range d.network.Used() {
		way := d.nodes[c.Source]
		if c.Destination != link.Anyone {
			way += " to " + d.nodes[c.Destination]
		}
		late := d.network.Late(c.Source, c.Destination)
		if lost := c.Dropped - late; lost > 0 {
			text += fmt.Sprintf("; lost from %s: %d", way, lost)
		}
		if late > 0 {
			text += fmt.Sprintf("; under way from %s beyond %gh, the end of any run: %d", way,
				link.Horizon.Hours(), late)
		}
	}
	return text
}

// frame returns the wire form of a parcel's message, or says why there is none. It rebuilds the PID
// of the sender, because a PID remembers the process that it was resolved to, and decides the
// parcel's kind.
func (d *Door) frame(p *Parcel, source int32) (f wire.Frame, err error) {
	message := p.Message
	if envelope, ok := message.(*actor.MessageEnvelope); ok {
		if len(envelope.Header) > 0 {
			return f, fmt.Errorf("a message of type %T carries headers, which have no wire form", envelope.Message)
		}
		message, p.Message = envelope.Message, envelope.Message
		if envelope.Sender != nil {
			sender := d.sender(envelope.Sender, source)
			f.SenderAddress, f.SenderID = sender.Address, sender.Id
			p.Message = &actor.MessageEnvelope{Message: message, Sender: sender}
		}
	}
	switch m := message.(type) {
	case *protos.Message:
		if m.Head == nil {
			return f, errors.New("a *protos.Message without a head has no wire form")
		}
		if p.Kind == wire.User {
			p.Kind = wire.KindOf(m.Head)
		}
		f.Head, f.Tensors = m.Head, m.Tensors
	case proto.Message:
		if !Protoactor(m) {
			return f, fmt.Errorf("a bare %T cannot leave a node: wrap it with protos.NewMessage", m)
		}
		f.Head = m
	default:
		return f, fmt.Errorf("a message of type %T has no wire form: only *protos.Message can leave a node", message)
	}
	f.Kind, f.Target = p.Kind, p.Target
	if d.Cuts != nil {
		f.Cut = d.Cuts[source]
	}
	return f, nil
}

// Protoactor reports whether a head is a message of protoactor's own, which travels
// without being wrapped in a protos.Message.
func Protoactor(head proto.Message) bool {
	switch head.(type) {
	case *actor.Watch, *actor.Unwatch, *actor.Stop, *actor.Terminated, *actor.PoisonPill, *actor.DeadLetterResponse:
		return true
	}
	return false
}

// sender returns another PID for the sender. A PID of no node of the run is
// a future's: it lives on the source.
func (d *Door) sender(pid *actor.PID, source int32) *actor.PID {
	if _, ok := d.index[pid.Address]; ok {
		return actor.NewPID(pid.Address, pid.Id)
	}
	return actor.NewPID(d.nodes[source], pid.Id)
}

// Type is a hash of the name of the message's protobuf type, for digests.
func (p *Parcel) Type() uint32 {
	var head proto.Message
	switch m := payload(p.Message).(type) {
	case *protos.Message:
		head = m.Head
	case proto.Message:
		head = m
	}
	name := head.ProtoReflect().Descriptor().FullName()
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// Receive returns when a parcel at the end of its edge has passed the receiver's downlink. Call it
// in the order of arrival, at that instant.
func (p *Parcel) Receive(now time.Duration) time.Duration {
	if p.Emulated() {
		return p.Edge.Receive(now, p.Size)
	}
	return now
}

// Settle tells a parcel with a ticket when it arrives, or that it is lost. It returns an error when
// Arrive would.
func (p *Parcel) Settle(t link.Transit) error {
	p.Arrival, p.Again, p.Lost, p.Ticket = t.Arrival, t.Again, t.Lost, 0
	if p.InSession() {
		p.copied.sessions.depart(p, t)
		return nil
	}
	if !p.Lost {
		return nil
	}
	p.release()
	return p.evidence.check()
}

// Second returns the second copy of a parcel, which arrives at Again.
func (p *Parcel) Second() Parcel {
	q := *p
	q.Arrival, q.Again, p.Again = p.Again, 0, 0
	if q.InSession() {
		if q.Packet != nil {
			q.Packet, q.evidence = p.Packet.Copy(), nil
		}
		return q
	}
	q.evidence = nil
	switch m := payload(p.Message).(type) {
	case *protos.Message:
		m.Retain(1)
	default:
		q.Packet = p.Packet.Copy()
	}
	return q
}

// HasDownlink reports whether Receive must be called at Arrival.
func (p *Parcel) HasDownlink() bool { return p.Emulated() && p.Edge.HasDownlink() }

// Arrive counts the parcel as handed over at instant now. In strict mode it returns
// an error if a tensor was written between sending and delivery.
func (p *Parcel) Arrive(now time.Duration) error {
	if p.Emulated() {
		p.Edge.Deliver(p.Size, now-p.Sent)
	} else {
		p.Edge.EndControl()
	}
	return p.evidence.check()
}

// Verify returns an error when Arrive would, for a message that a session hands over.
func (p *Parcel) Verify() error { return p.evidence.check() }

// Discard counts a parcel whose receiver is not there, and releases its message.
// It returns an error when Arrive would.
func (p *Parcel) Discard() error {
	if p.Emulated() {
		p.Edge.Discard(p.Size)
	} else {
		p.Edge.EndControl()
	}
	p.release()
	return p.evidence.check()
}

func (p *Parcel) release() {
	switch {
	case p.Packet != nil:
		p.Packet.Release()
	case p.Frame != nil:
		p.Frame.Release()
	default:
		Release(p.Message)
	}
}

// Release gives back the receiver's reference to a message that no receiver gets.
func Release(message any) {
	if m, ok := payload(message).(*protos.Message); ok {
		m.Release()
	}
}
