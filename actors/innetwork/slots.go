package innetwork

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// This file is the protocol of SwitchML without actors, clocks or messages: the slots of a switch,
// and a worker's window of packets.
//
// A worker sends packets 0, 1, 2, … and the switch returns of each what those of all workers come
// to. Packet n goes through slot n mod s, which has two pools for sums, one for even and one for
// odd turns, so that the pool of packet n is n mod 2s. The window of a worker sends packet n only
// when it has the result of packet n−s. So if packet n+2s comes from anybody, it has the result of
// n+s, which all have sent, who all have that of n: nobody needs what is in the pool, and it is
// taken. Until then a repeat of packet n, whose sender lacks the result, is answered from it.
//
// The packets of SwitchML name the slot and one bit for the pool, which takes a network that delays
// no packet for two turns. Here they bear their whole number, and what comes too late is told from
// what is new.

// packet is what a child adds, or the result for all.
type packet struct {
	number  uint64
	peak    uint64    // the result's is the greatest
	samples uint64    // the result's is the sum
	words   []float32 // integers of 32 bits, of which the result's are the sums
	late    bool      // because of a repeat; the result's is true if one in it was
}

// reaction is what a switch has to do after a packet.
type reaction uint8

const (
	quiet   reaction = iota
	reply            // send the child the result
	forward          // send the parent the sum of the children
	publish          // send all children the result
)

// progress is how far the packet in a pool is.
type progress uint8

const (
	vacant   progress = iota
	summing           // some children have added theirs
	summed            // all have; the parent's answer is missing
	answered          // what the pool holds is the result
)

// pool is a sum.
type pool struct {
	number   uint64
	progress progress
	seen     []bool // by child
	count    int    // of those
	peak     uint64
	samples  uint64
	sum      []int32
	late     bool // one in it was
}

// slots are those of one switch.
type slots struct {
	children int
	values   int  // of a packet at most
	root     bool // there is no parent
	pools    []pool
}

// newSlots returns vacant slots, two pools each. Memory for sums comes with the packets that need
// it, since a plan may have far more slots and values than a model has chunks.
func newSlots(n, values, children int, root bool) *slots {
	s := &slots{children: children, values: values, root: root, pools: make([]pool, 2*n)}
	for i := range s.pools {
		s.pools[i].seen = make([]bool, children)
	}
	return s
}

func (s *slots) pool(number uint64) *pool { return &s.pools[number%uint64(len(s.pools))] }

// add takes in a child's packet. An error says that no child can have sent it.
func (s *slots) add(child int, p packet) (reaction, error) {
	q := s.pool(p.number)
	switch turn := uint64(len(s.pools)); {
	case q.progress != vacant && p.number < q.number:
		return quiet, nil // it was on its way until everybody had its result
	case q.progress != vacant && p.number == q.number:
	case len(p.words) > s.values:
		return quiet, fmt.Errorf("it has %d values, a slot has %d", len(p.words), s.values)
	case q.progress == vacant && p.number < turn, q.progress == answered && p.number-q.number == turn:
		q.begin(p)
	default:
		return quiet, errors.New("its slot is not free for it")
	}
	if q.seen[child] {
		return q.again(), nil
	}
	if len(p.words) != len(q.sum) {
		return quiet, fmt.Errorf("it has %d values, that of another child has %d", len(p.words), len(q.sum))
	}
	q.seen[child] = true
	q.count++
	q.peak = max(q.peak, p.peak)
	q.samples += p.samples
	q.late = q.late || p.late
	for i, w := range p.words {
		q.sum[i] += integer(w)
	}
	switch {
	case q.count < s.children:
		return quiet, nil
	case s.root:
		q.progress = answered
		return publish, nil
	}
	q.progress = summed
	return forward, nil
}

// begin lets a pool sum another packet.
func (q *pool) begin(p packet) {
	clear(q.seen)
	q.sum = slices.Grow(q.sum[:0], len(p.words))[:len(p.words)]
	clear(q.sum)
	q.number, q.progress, q.count, q.peak, q.samples, q.late = p.number, summing, 0, 0, 0, false
}

// again is the reaction to a repeat. If all children's have come, the sum may be lost on its way up
// or the result on its way down.
func (q *pool) again() reaction {
	switch q.progress {
	case summed:
		q.late = true
		return forward
	case answered:
		return reply
	}
	return quiet
}

// result takes in the parent's result, and reports whether it is news for the children.
func (s *slots) result(p packet) (news bool, err error) {
	q := s.pool(p.number)
	switch {
	case q.number != p.number || q.progress != summed:
		return false, nil // a repeat
	case len(p.words) != len(q.sum):
		return false, fmt.Errorf("it has %d values, what was sent has %d", len(p.words), len(q.sum))
	}
	for i, w := range p.words {
		q.sum[i] = integer(w)
	}
	q.peak, q.samples, q.late, q.progress = p.peak, p.samples, p.late, answered
	return true, nil
}

// missing returns a child that the oldest packet waits for; ok is false if there is none.
func (s *slots) missing() (child int, ok bool) {
	var oldest *pool
	for i := range s.pools {
		q := &s.pools[i]
		if q.progress == summing && (oldest == nil || q.number < oldest.number) {
			oldest = q
		}
	}
	if oldest == nil {
		return 0, false
	}
	for child, seen := range oldest.seen {
		if !seen {
			return child, true
		}
	}
	return 0, false
}

// window is which packets of a worker are on their way, one a slot at most.
type window struct {
	limit uint64 // packets that there are to send so far
	left  uint64 // of those, without a result
	at    []uint64
	sent  []bool // packet at of the slot is on its way; otherwise it is the next one
}

// reset begins with packet 0.
func (w *window) reset(slots int) {
	w.limit, w.left = 0, 0
	w.at, w.sent = make([]uint64, slots), make([]bool, slots)
	for i := range w.at {
		w.at[i] = uint64(i)
	}
}

func (w *window) slot(number uint64) int { return int(number % uint64(len(w.at))) }

// grant adds to the packets that there are to send. All before have their results.
func (w *window) grant(packets int) {
	w.limit += uint64(packets)
	w.left += uint64(packets)
}

// ready reports whether a packet's turn to be sent has come.
func (w *window) ready(number uint64) bool {
	i := w.slot(number)
	return number < w.limit && w.at[i] == number && !w.sent[i]
}

// send notes that a packet is on its way.
func (w *window) send(number uint64) { w.sent[w.slot(number)] = true }

// result takes in that a packet's result has come, and reports whether it is the first time.
func (w *window) result(number uint64) bool {
	i := w.slot(number)
	if !w.sent[i] || w.at[i] != number {
		return false
	}
	w.at[i] += uint64(len(w.at))
	w.sent[i] = false
	w.left--
	return true
}

// oldest returns the first packet that is on its way; ok is false if none is.
func (w *window) oldest() (number uint64, ok bool) {
	for i, at := range w.at {
		if w.sent[i] && (!ok || at < number) {
			number, ok = at, true
		}
	}
	return number, ok
}

// integer and word turn the 32 bits of an integer into a value of a tensor and back.
func integer(word float32) int32 { return int32(math.Float32bits(word)) }
func word(v int32) float32       { return math.Float32frombits(uint32(v)) }
