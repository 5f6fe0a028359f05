package transport

import (
	"sync"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// class says in which queue a frame waits and whose room it takes. Frames of a queue keep their
// order; urgent ones overtake all others.
type class int

const (
	urgent class = iota // system and control messages without tensors
	bulk                // all others that Send took
	posted              // all others that Post took, in one queue with bulk
	classes
)

// queues is how many queues a peer has; that of a class is the one of its number or the last.
const queues = 2

func (c class) queue() class { return min(c, queues-1) }

// parcel is a frame on its way out: an encoded head, and references to tensors.
type parcel struct {
	head    []byte // a record's header, prefix and head
	tensors []*protos.Tensor
	values  int // bytes of all tensors
	class   class

	at, offset int // the tensor, and in it the byte, that goes next
	sent       int // bytes of values so far
}

// keptHead is the largest head whose memory is kept for the next parcel.
const keptHead = 16 << 10

var parcels = sync.Pool{New: func() any { return &parcel{head: make([]byte, 0, 256)} }}

// pack encodes a frame that is of a class unless it is urgent. The parcel takes over the references
// to its tensors.
func pack(f *wire.Frame, c class) (*parcel, error) {
	p := parcels.Get().(*parcel)
	head, err := wire.AppendHead(p.head[:recordHeader], f)
	if err != nil {
		parcels.Put(p)
		return nil, err
	}
	p.head = head
	p.tensors = append(p.tensors[:0], f.Tensors...)
	p.values, p.at, p.offset, p.sent = 0, 0, 0, 0
	for _, t := range f.Tensors {
		p.values += 4 * len(t.Data)
	}
	p.class = c
	if len(f.Tensors) == 0 && f.Kind != wire.User {
		p.class = urgent
	}
	return p, nil
}

// size is that of the memory that the parcel holds.
func (p *parcel) size() int { return len(p.head) + p.values }

// forget puts the parcel's memory back, but not its references.
func (p *parcel) forget() {
	clear(p.tensors)
	if cap(p.head) <= keptHead {
		parcels.Put(p)
	}
}

// end gives all that the parcel holds back.
func (p *parcel) end() {
	release(p.tensors)
	p.forget()
}

// queue is a first-in first-out list of parcels.
type queue struct {
	items []*parcel
	first int
}

func (q *queue) len() int { return len(q.items) - q.first }

func (q *queue) push(p *parcel) {
	if q.first > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

func (q *queue) front() *parcel { return q.items[q.first] }

func (q *queue) pop() *parcel {
	p := q.items[q.first]
	q.items[q.first] = nil
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return p
}

// How many bytes are written between two looks at the urgent queue.
const (
	chunk = 1 << 20
	// sealedChunk is that with TLS, small enough that one is read and opened while the next is
	// sealed.
	sealedChunk = 256 << 10
)

// maxParts bounds the pieces of memory of one batch, but for those of one frame.
const maxParts = 128

// batch is what is written at a time.
type batch struct {
	chunk  int
	parts  [][]byte
	size   int
	beat   [recordHeader + beatSize]byte
	header [recordHeader]byte
	last   [recordHeader]byte
	done   []*parcel // written with this batch to their end
	open   *parcel   // a large one, of which more follows
}

func (b *batch) add(part []byte) {
	b.parts = append(b.parts, part)
	b.size += len(part)
}

func (b *batch) full() bool { return b.size >= b.chunk || len(b.parts) >= maxParts }

// whole adds a parcel without tensors.
func (b *batch) whole(p *parcel) {
	putRecord(p.head, urgentRecord, len(p.head)-recordHeader)
	b.add(p.head)
	b.done = append(b.done, p)
}

// fits reports whether a bulk parcel can begin in this batch: one of several chunks
// begins in a batch of its own.
func (b *batch) fits(p *parcel) bool {
	return b.size == 0 || b.size+p.size() <= b.chunk && len(b.parts)+1+len(p.tensors) <= maxParts
}

// begin adds the head of a bulk parcel and as many values as there is room for.
func (b *batch) begin(p *parcel) {
	n := min(p.values, max(0, b.chunk-len(p.head)))
	putRecord(p.head, bulkRecord, len(p.head)-recordHeader+n)
	b.add(p.head)
	b.values(p, n)
}

// goOn adds more values of the open parcel.
func (b *batch) goOn() {
	p := b.open
	n := min(p.values-p.sent, max(b.chunk-b.size, b.chunk/4))
	putRecord(b.header[:], moreRecord, n)
	b.add(b.header[:])
	b.values(p, n)
}

func (b *batch) values(p *parcel, n int) {
	p.sent += n
	for n > 0 {
		data := view(p.tensors[p.at].Data)[p.offset:]
		part := min(n, len(data))
		if part > 0 {
			b.add(data[:part])
		}
		if n -= part; part == len(data) {
			p.at, p.offset = p.at+1, 0
		} else {
			p.offset += part
		}
	}
	if p.sent == p.values {
		b.done, b.open = append(b.done, p), nil
	} else {
		b.open = p
	}
}

// written forgets what has been written, and returns how many bytes of each class that was.
func (b *batch) written() (bytes [classes]int) {
	for i, p := range b.done {
		bytes[p.class] += p.size()
		p.end()
		b.done[i] = nil
	}
	clear(b.parts)
	b.done, b.parts, b.size = b.done[:0], b.parts[:0], 0
	return bytes
}
