package transport

import (
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
)

// How many bytes are written between two looks at the urgent queue.
const (
	chunk = 1 << 20
	// sealedChunk is that with TLS, small enough that one is read and opened while the next is
	// sealed.
	sealedChunk = 256 << 10
)

// maxParts bounds the pieces of memory of one batch; a single frame may have more.
const maxParts = 128

// batch is what is written at a time.
type batch struct {
	chunk  int
	parts  [][]byte
	size   int
	beat   [recordHeader + beatSize]byte
	header [recordHeader]byte
	last   [recordHeader]byte
	ends   finished     // what this batch brings to its end
	open   *wire.Packet // a large one, of which more follows

	// Of the open packet: the tensor, and in it the byte, that goes next, and how many bytes of
	// values are left.
	at, offset, left int
}

// finished is what has been written to its end.
type finished struct {
	frames lane.Counts
	bytes  [wire.Classes]int
}

func (f *finished) add(in int, p *wire.Packet) {
	f.frames[in]++
	f.bytes[p.Class] += p.Size()
}

func (b *batch) add(part []byte) {
	b.parts = append(b.parts, part)
	b.size += len(part)
}

func (b *batch) full() bool { return b.size >= b.chunk || len(b.parts) >= maxParts }

// whole adds a packet without tensors.
func (b *batch) whole(p *wire.Packet) {
	putRecord(p.Head, urgentRecord, len(p.Head)-recordHeader)
	b.add(p.Head)
	b.ends.add(lane.Urgent, p)
}

// fits reports whether a bulk packet can begin in this batch: one of several chunks
// begins a new batch.
func (b *batch) fits(p *wire.Packet) bool {
	return b.size == 0 || b.size+p.Size() <= b.chunk && len(b.parts)+1+len(p.Tensors) <= maxParts
}

// begin adds the head of a bulk packet and as many values as there is room for. With it goes how
// many bulk frames of the peer were taken.
func (b *batch) begin(p *wire.Packet, taken uint64) {
	n := min(p.Values, max(0, b.chunk-len(p.Head)))
	putRecord(p.Head, bulkRecord, len(p.Head)-recordHeader+n)
	putRide(p.Head, uint32(taken))
	b.add(p.Head)
	b.open, b.at, b.offset, b.left = p, 0, 0, p.Values
	b.values(n)
}

// goOn adds more values of the open packet.
func (b *batch) goOn() {
	n := min(b.left, max(b.chunk-b.size, b.chunk/4))
	putRecord(b.header[:], moreRecord, n)
	b.add(b.header[:])
	b.values(n)
}

func (b *batch) values(n int) {
	b.left -= n
	for n > 0 {
		data := view(b.open.Tensors[b.at].Data)[b.offset:]
		part := min(n, len(data))
		if part > 0 {
			b.add(data[:part])
		}
		if n -= part; part == len(data) {
			b.at, b.offset = b.at+1, 0
		} else {
			b.offset += part
		}
	}
	if b.left == 0 {
		b.ends.add(lane.Bulk, b.open)
		b.open = nil
	}
}

// written forgets what has been written, and returns what that has brought to its end.
func (b *batch) written() (ends finished) {
	ends, b.ends = b.ends, finished{}
	clear(b.parts)
	b.parts, b.size = b.parts[:0], 0
	return ends
}
