package wire

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/actors/session"
	"github.com/gradwire/gradwire/protos"
)

// Class says which packets a packet may pass on its way to another process, and whose room it takes
// while it waits. Packets of a class keep their order.
type Class uint8

// The classes of packets.
const (
	// Urgent packets pass all others: system and control messages without tensors.
	Urgent Class = iota
	// Bulk packets come from senders that wait for room.
	Bulk
	// Eager packets come from senders that cannot wait. They keep one order with bulk.
	Eager

	// Classes is the number of classes.
	Classes
)

// Headroom is how many bytes of a packet's Head precede the frame's prefix, for a transport's own
// header.
const Headroom = 8

// Packet is a frame that is encoded, once, on its way to its receiver.
type Packet struct {
	// Head is Headroom bytes, the frame's prefix and its head.
	Head []byte
	// Tensors follow the head on the wire, as they lie in memory; the packet has one reference to
	// each.
	Tensors []*protos.Tensor
	// Values is the number of bytes of all tensors.
	Values int
	Class  Class

	flights *atomic.Int64 // counts it while it is there; nil where nobody does
}

// keptHead is the largest head in bytes whose memory is kept for the next packet.
const keptHead = 16 << 10

var packets = sync.Pool{New: func() any { return &Packet{Head: make([]byte, 0, 256)} }}

// Pack encodes a frame, for a class unless it is urgent. The packet takes over one reference to
// each of the frame's tensors, unless there is an error.
func Pack(f *Frame, c Class) (*Packet, error) {
	p := packets.Get().(*Packet)
	head, err := AppendHead(p.Head[:Headroom], f)
	if err != nil {
		packets.Put(p)
		return nil, err
	}
	p.Head, p.Tensors, p.Values, p.Class = head, append(p.Tensors[:0], f.Tensors...), 0, c
	for _, t := range f.Tensors {
		p.Values += 4 * len(t.Data)
	}
	if len(f.Tensors) == 0 && f.Kind != User {
		p.Class = Urgent
	}
	return p, nil
}

// Copy returns another packet of the same frame, with references of its own to the tensors.
func (p *Packet) Copy() *Packet {
	q := packets.Get().(*Packet)
	q.Head, q.Tensors = append(q.Head[:0], p.Head...), append(q.Tensors[:0], p.Tensors...)
	q.Values, q.Class = p.Values, p.Class
	q.count(p.flights)
	for _, t := range q.Tensors {
		t.Retain()
	}
	return q
}

// Count counts the packet among the flights of its frame's cut, as long as it is there.
func (p *Packet) Count(f *Flights) {
	p.count(&f[binary.LittleEndian.Uint16(p.Head[Headroom+8:])>>tensorBits])
}

func (p *Packet) count(flights *atomic.Int64) {
	if p.flights = flights; flights != nil {
		flights.Add(1)
	}
}

// Size is the number of bytes of memory that the packet holds.
func (p *Packet) Size() int { return len(p.Head) + p.Values }

// SetLate says how much later than it was due the frame leaves its node, as Frame.Late does.
func (p *Packet) SetLate(late time.Duration) {
	binary.LittleEndian.PutUint16(p.Head[Headroom+10:], lateness(late))
}

// SetSession says what the header of a frame in a session is.
func (p *Packet) SetSession(h *session.Header) { putSession(p.Head[Headroom+PrefixSize:], h) }

// SetRun says which run the frame is of.
func (p *Packet) SetRun(run uint64) { binary.LittleEndian.PutUint64(p.Head[Headroom+12:], run) }

var decoders = sync.Pool{New: func() any { return &Decoder{} }}

// Frame decodes the packet. The frame's tensors are the packet's, in a list of the frame's own; it
// has no references to them.
func (p *Packet) Frame() (Frame, error) {
	prefix, err := DecodePrefix(p.Head[Headroom:])
	if err != nil {
		return Frame{}, err
	}
	d := decoders.Get().(*Decoder)
	defer decoders.Put(d)
	f, _, err := d.Head(prefix, p.Head[Headroom+PrefixSize:])
	f.Tensors = append([]*protos.Tensor(nil), p.Tensors...)
	return f, err
}

// Recycle gives the packet up; its references to tensors are the caller's from then on.
func (p *Packet) Recycle() {
	clear(p.Tensors)
	if p.flights != nil {
		p.flights.Add(-1)
		p.flights = nil
	}
	if cap(p.Head) <= keptHead {
		packets.Put(p)
	}
}

// Release gives up the packet and its references to tensors.
func (p *Packet) Release() {
	for _, t := range p.Tensors {
		t.Release()
	}
	p.Recycle()
}
