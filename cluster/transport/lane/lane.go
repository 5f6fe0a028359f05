// Package lane keeps frames that were sent to a peer until the peer has taken them. Frames of one
// lane keep their order; they are numbered from 0 on.
package lane

import (
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/wire"
)

// The lanes to a peer.
const (
	// Urgent is for packets of class wire.Urgent.
	Urgent = iota
	// Bulk is for all others.
	Bulk

	// Lanes is the number of lanes.
	Lanes
)

// Counts are numbers of frames, by lane.
type Counts [Lanes]uint64

// Sum is the number of frames of all lanes.
func (c Counts) Sum() (sum uint64) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// Kept are the frames of a lane whose writing has begun and that the peer may not have. The zero
// value is one of which none was begun.
type Kept struct {
	frames  queue.Ring[*wire.Packet]
	bytes   int
	first   uint64 // number of the first of them
	taken   uint64
	written uint64 // how many are written, to the end
}

// From is a lane of which as many frames were begun as the peer has taken.
func From(taken uint64) Kept { return Kept{first: taken, taken: taken, written: taken} }

// Len is how many frames are kept.
func (k *Kept) Len() int { return k.frames.Len() }

// Begun is how many frames were begun, so far.
func (k *Kept) Begun() uint64 { return k.first + uint64(k.frames.Len()) }

// Taken is how many frames the peer is known to have taken.
func (k *Kept) Taken() uint64 { return k.taken }

// Push takes over a frame whose writing begins.
func (k *Kept) Push(p *wire.Packet) {
	k.frames.Push(p)
	k.bytes += p.Size()
}

// Fits reports whether a frame may be begun, given how many bytes may be kept.
func (k *Kept) Fits(p *wire.Packet, most int) bool {
	return k.frames.Len() == 0 || k.bytes+p.Size() <= most
}

// Wrote says that so many more frames are written to their end.
func (k *Kept) Wrote(frames uint64) {
	k.written += frames
	k.settle()
}

// Take says how many frames the peer has taken: read to their end. A frame that is being written
// stays, whatever the peer says.
func (k *Kept) Take(taken uint64) {
	k.taken = taken
	k.settle()
}

func (k *Kept) settle() {
	for k.first < min(k.taken, k.written) {
		k.pop()
	}
}

func (k *Kept) pop() {
	p := k.frames.Pop()
	k.first++
	k.bytes -= p.Size()
	p.Release()
}

// Lose gives up all frames.
func (k *Kept) Lose() {
	for k.frames.Len() > 0 {
		k.pop()
	}
	k.taken = k.first
}

// Requeue says how many frames the peer has taken, when none is being written, and puts the others
// before those that wait. Each is called for these.
func (k *Kept) Requeue(taken uint64, waiting *queue.Ring[*wire.Packet], each func(*wire.Packet)) {
	k.written = taken
	k.Take(taken)
	for range k.frames.Len() {
		p := k.frames.Pop()
		each(p)
		k.frames.Push(p)
	}
	for waiting.Len() > 0 {
		k.frames.Push(waiting.Pop())
	}
	*waiting, *k = k.frames, From(taken)
}
