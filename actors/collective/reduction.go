package collective

import (
	"fmt"
	"iter"
	"math"
	"unsafe"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// reduction is one rank's part in the rounds of one view. It has neither clock nor network: begin
// and take tell it what has happened, next says what to send.
//
// Chunks may come in any order. Since a round that is over at one rank has begun at all others, no
// rank is more than one round ahead, and waiting chunks belong to at most two rounds.
//
// The reduction only reads the round's input and puts the mean together in an output: the rank that
// completes the sum of a piece divides it before any other rank gets it. It sends views of input
// and output, not copies. It overwrites an element of the output that it has sent only with a chunk
// made from what the receiver had taken in by then. It forwards a chunk from the memory in which
// the chunk arrived, which is still in the cache. If nobody else holds the chunk, it puts a sum
// that it forwards and later replaces together in that memory too. It does not copy a chunk that
// has arrived in its place in the output (see posts).
type reduction struct {
	rank     int
	schedule schedule
	size     int            // of the schedule; 0 for a rank without others
	chunks   arrivals       // that wait, by the number of their move
	passed   *protos.Tensor // what is sent on next; nil if that is part of the input or output
	round    uint64
	input    *protos.Tensor // of the round, nil between rounds
	output   *protos.Tensor
	weight   float32 // of the sum, by which it is divided
	factor   float32 // by which it is multiplied instead, if that is the same; else 0
	at       int     // the position of the next move
	move     move    // which that is
	work     float64 // FLOPs of sums and quotients since spent was last called
}

func newReduction(a *Architecture, p part, sites []int32) *reduction {
	return scheduled(p, newSchedule(a, p, sites))
}

// scheduled is a rank's part in rounds that go by a schedule.
func scheduled(p part, s schedule) *reduction {
	r := &reduction{rank: p.rank, schedule: s}
	if p.n > 1 {
		r.size = r.schedule.size()
	}
	r.stand(0)
	return r
}

// number counts the positions of all rounds.
func (r *reduction) number(round uint64, position int) uint64 {
	return round*uint64(r.size) + uint64(position)
}

// begin starts the round with this rank's vector, with another one for the sum divided by its
// weight, and with that weight, which is the same for all ranks. The vectors stay the caller's.
func (r *reduction) begin(input, output *protos.Tensor, weight float32) {
	r.input, r.output = input, output
	r.weight, r.factor = weight, reciprocal(weight)
	if r.size == 0 {
		copy(output.Data, input.Data)
		if weight != 1 { // codes are no numbers to be divided
			divide(output.Data, weight)
		}
		r.countQuotients(len(output.Data))
	}
}

// stand makes the move of a position the next one.
func (r *reduction) stand(at int) {
	if r.at = at; at < r.size {
		r.move = r.schedule.move(at)
	}
}

// reciprocal returns 1/x for a power of two and 0 for other numbers. Multiplying by it gives the
// bits of the quotient in a fraction of the time.
func reciprocal(x float32) float32 {
	if fraction, _ := math.Frexp(float64(x)); fraction != 0.5 || x > 1<<64 || x < 1.0/(1<<64) {
		return 0
	}
	return 1 / x
}

// take takes in a chunk of this round or the next, with the caller's reference to it. An
// error says that nobody waits for it; the reference then stays the caller's.
func (r *reduction) take(round uint64, t tag, chunk *protos.Tensor) error {
	if round-r.round > 1 {
		return fmt.Errorf("this rank is in round %d", r.round)
	}
	position := r.schedule.find(t)
	var m move
	if position >= 0 && position < r.size {
		m = r.schedule.move(position)
	}
	if !m.takes(t) {
		return fmt.Errorf("rank %d has no such chunk for rank %d", t.rank, r.rank)
	}
	if len(chunk.Data) != m.high-m.low {
		return fmt.Errorf("it has %d values instead of %d", len(chunk.Data), m.high-m.low)
	}
	number := r.number(round, position)
	if number < r.number(r.round, r.at) || r.chunks.has(number) {
		return fmt.Errorf("it has come before")
	}
	r.chunks.put(number, chunk)
	return nil
}

// posts yields the places of those chunks of the round under way that have not come and can be
// received right in the output. view is the view of the run; before is how many steps of the round
// precede this reduction's. A chunk that replaces values of the output, or is the first to be added
// there, then needs no copy.
//
// A chunk that lands before its turn overwrites nothing that is needed. The first chunk for some
// values finds none of them in the output. A later chunk that replaces values is made from what the
// others have taken in from this rank: they have all that it had to send, and it adds nothing more
// to these values. That holds as long as ranks send each chunk once; a repeated chunk has no place.
func (r *reduction) posts(view uint64, before int) iter.Seq[actors.Place] {
	return func(yield func(actors.Place) bool) {
		for i := range r.size {
			m := r.schedule.move(i)
			fits := m.action == replace || m.action == add && m.first
			if !fits || m.peer == r.rank || r.chunks.has(r.number(r.round, i)) {
				continue
			}
			name := protos.PlaceName{View: view, Round: r.round, Rank: int32(m.peer), Step: uint32(m.step + before),
				Index: uint32(m.index)}
			if !yield(actors.Place{Name: name, Low: m.low, High: m.high}) {
				return
			}
		}
	}
}

// keep takes in this rank's own piece, which m sends to the rank itself.
func (r *reduction) keep(m *move, piece *protos.Tensor) {
	own := r.schedule.find(tag{r.rank, m.step, m.index})
	r.chunks.put(r.number(r.round, own), piece)
}

// next works off what has arrived up to the next piece to be sent, and returns that move. There is
// none if a chunk is missing or nothing is left.
func (r *reduction) next() (m move, sends bool) {
	for r.at < r.size && !sends && !r.blocked() {
		m = r.move
		if sends = m.action == send; m.waits() {
			r.apply(&m, r.chunks.take(r.number(r.round, r.at)))
		}
		r.stand(r.at + 1)
	}
	return m, sends
}

// piece returns what the move that next has returned last sends, with a reference for the caller.
func (r *reduction) piece(m *move) *protos.Tensor {
	if t := r.passed; t != nil {
		r.passed = nil
		return t
	}
	from := r.output
	if m.first {
		from = r.input
	}
	return from.View(m.low, m.high)
}

// apply does a move with its chunk.
func (r *reduction) apply(m *move, chunk *protos.Tensor) {
	input, output := r.input.Data[m.low:m.high], r.output.Data[m.low:m.high]
	switch {
	case m.action == replace:
		if !same(output, chunk.Data) {
			copy(output, chunk.Data)
		}
		if m.onward {
			r.passed = chunk
			return
		}
	case m.brief && chunk.Sole():
		r.add(m, chunk.Data, chunk.Data, input)
		r.passed = chunk
		return
	case m.first:
		r.add(m, output, input, chunk.Data)
	default:
		r.add(m, output, output, chunk.Data)
	}
	chunk.Release()
}

// same reports whether two vectors of one length are in the same memory.
func same(a, b []float32) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }

// add adds two vectors. A sum that is complete it divides as well.
func (r *reduction) add(m *move, sum, a, b []float32) {
	r.work += float64(len(sum))
	switch {
	case !m.last:
		nn.ScaledSum(sum, 1, a, b)
		return
	case r.factor != 0:
		nn.ScaledSum(sum, r.factor, a, b)
	default:
		const part = 4096 // stays in the cache
		for low := 0; low < len(sum); low += part {
			high := min(low+part, len(sum))
			nn.ScaledSum(sum[low:high], 1, a[low:high], b[low:high])
			divide(sum[low:high], r.weight)
		}
	}
	r.countQuotients(len(sum))
}

// countQuotients counts the work of dividing n values.
func (r *reduction) countQuotients(n int) {
	if r.weight != 1 {
		r.work += float64(n)
	}
}

func divide(values []float32, divisor float32) {
	for i := range values {
		values[i] /= divisor
	}
}

// blocked reports whether the next move waits for a chunk that is not there.
func (r *reduction) blocked() bool {
	return r.at < r.size && r.move.waits() && !r.chunks.has(r.number(r.round, r.at))
}

// awaited is the rank whose chunk the next move takes in.
func (r *reduction) awaited() int { return r.move.peer }

// spent returns the FLOPs of sums and quotients since it was last called.
func (r *reduction) spent() float64 {
	work := r.work
	r.work = 0
	return work
}

// finish ends the round, all of whose moves are made or none.
func (r *reduction) finish() {
	r.round++
	r.input, r.output = nil, nil
	r.stand(0)
}

// drop gives back all chunks that have come. The reduction is not used again.
func (r *reduction) drop() { r.chunks.drop() }
