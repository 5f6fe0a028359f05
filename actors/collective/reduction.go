package collective

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"unsafe"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// tag names a chunk inside its round.
type tag struct {
	rank, step, index int
}

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
	rank   int
	moves  []Move
	first  []bool              // of each move, whether its values are not in the output yet
	last   []bool              // of each addition, whether its sum is complete
	onward []bool              // of each move, whether the next one sends the same values on
	brief  []bool              // of each addition, whether its sum is sent on and then replaced, but not read
	passed *protos.Tensor      // what is sent on next; nil if that is part of the input or output
	places map[tag]int         // of the move that waits for a chunk
	chunks [2][]*protos.Tensor // of an even and an odd round, by the place of their move
	round  uint64
	input  *protos.Tensor // of the round, nil between rounds
	output *protos.Tensor
	weight float32 // of the sum, by which it is divided
	factor float32 // by which it is multiplied instead, if that is the same; else 0
	active bool    // between begin and finish
	at     int     // the place of the next move
	work   float64 // FLOPs of sums and quotients since spent was last called
}

func newReduction(a *Architecture, n, rank, values int) *reduction {
	r := &reduction{rank: rank, moves: a.Algorithm.schedule(n, rank, values, a.Segment), places: map[tag]int{}}
	r.first, r.last = firsts(r.moves), lasts(r.moves)
	r.onward, r.brief = passing(r.moves, r.first)
	for i, m := range r.moves {
		if m.Action != Send {
			r.places[tag{m.Peer, m.Step, m.Index}] = i
		}
	}
	for i := range r.chunks {
		r.chunks[i] = make([]*protos.Tensor, len(r.moves))
	}
	return r
}

// firsts tells for each move whether no move before took in any of its values. In every schedule it
// is all of them or none.
func firsts(moves []Move) []bool {
	first := make([]bool, len(moves))
	var taken [][2]int // spans of values; those that touch are one, so that there are few
	for i, m := range moves {
		first[i] = !slices.ContainsFunc(taken, func(span [2]int) bool { return span[0] <= m.Low && m.Low < span[1] })
		if m.Action == Send || !first[i] || m.Low == m.High {
			continue
		}
		span := [2]int{m.Low, m.High}
		taken = slices.DeleteFunc(taken, func(other [2]int) bool {
			touches := other[0] <= span[1] && span[0] <= other[1]
			if touches {
				span = [2]int{min(span[0], other[0]), max(span[1], other[1])}
			}
			return touches
		})
		taken = append(taken, span)
	}
	return first
}

// lasts tells for each addition whether no later move takes in any of its values. A rank sends
// incomplete sums on, which are completed elsewhere and replaced in the end.
func lasts(moves []Move) []bool {
	backward := slices.Clone(moves)
	slices.Reverse(backward)
	last := firsts(backward)
	slices.Reverse(last)
	for i, m := range moves {
		last[i] = last[i] && m.Action == Add
	}
	return last
}

// passing tells for each move whether the next one sends the same values on. For an addition to
// which nothing was added before, it tells whether its sum is only sent on and then replaced.
func passing(moves []Move, first []bool) (onward, brief []bool) {
	onward, brief = make([]bool, len(moves)), make([]bool, len(moves))
	cut := partitions(moves)
	after := make([]int, len(moves)) // the place of the next move of the same values
	latest := map[[2]int]int{}
	for i := len(moves) - 1; i >= 0; i-- {
		m := &moves[i]
		span := [2]int{m.Low, m.High}
		next, more := latest[span]
		after[i], latest[span] = len(moves), i
		if !more {
			continue
		}
		after[i] = next
		onward[i] = m.Action != Send && next == i+1 && moves[next].Action == Send
		then := after[next]
		brief[i] = cut && onward[i] && m.Action == Add && first[i] && then < len(moves) && moves[then].Action == Replace
	}
	return onward, brief
}

// partitions reports whether the values of any two moves are the same or none in common.
func partitions(moves []Move) bool {
	sorted := slices.SortedFunc(slices.Values(moves), func(a, b Move) int { return cmp.Or(a.Low-b.Low, a.High-b.High) })
	for i := range len(sorted) - 1 {
		a, b := sorted[i], sorted[i+1]
		if b.Low < a.High && (a.Low != b.Low || a.High != b.High) {
			return false
		}
	}
	return true
}

// begin starts the round with this rank's vector, with another one for the sum divided by its
// weight, and with that weight, which is the same for all ranks. The vectors stay the caller's.
func (r *reduction) begin(input, output *protos.Tensor, weight float32) {
	r.input, r.output, r.active, r.at = input, output, true, 0
	r.weight, r.factor = weight, reciprocal(weight)
	if len(r.moves) == 0 {
		copy(output.Data, input.Data)
		divide(output.Data, weight)
		r.countQuotients(len(output.Data))
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
	i, ok := r.places[t]
	if !ok {
		return fmt.Errorf("rank %d has no such chunk for rank %d", t.rank, r.rank)
	}
	if m := &r.moves[i]; len(chunk.Data) != m.High-m.Low {
		return fmt.Errorf("it has %d values instead of %d", len(chunk.Data), m.High-m.Low)
	}
	chunks := r.chunks[round&1]
	if chunks[i] != nil || round == r.round && r.active && i < r.at {
		return fmt.Errorf("it has come before")
	}
	chunks[i] = chunk
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
		for i := range r.moves {
			m := &r.moves[i]
			fits := m.Action == Replace || m.Action == Add && r.first[i]
			if !fits || m.Peer == r.rank || r.chunks[r.round&1][i] != nil {
				continue
			}
			name := protos.PlaceName{View: view, Round: r.round, Rank: int32(m.Peer), Step: uint32(m.Step + before),
				Index: uint32(m.Index)}
			if !yield(actors.Place{Name: name, Low: m.Low, High: m.High}) {
				return
			}
		}
	}
}

// keep takes in this rank's own piece, which m sends to the rank itself.
func (r *reduction) keep(m *Move, piece *protos.Tensor) {
	r.chunks[r.round&1][r.places[tag{r.rank, m.Step, m.Index}]] = piece
}

// next works off what has arrived up to the next piece to be sent. It is nil if a chunk is
// missing or nothing is left.
func (r *reduction) next() *Move {
	for r.at < len(r.moves) && !r.blocked() {
		m := &r.moves[r.at]
		r.at++
		if m.Action == Send {
			return m
		}
		r.apply(m, r.at-1)
	}
	return nil
}

// piece returns what the move that next has returned last sends, with a reference for the caller.
func (r *reduction) piece() *protos.Tensor {
	if t := r.passed; t != nil {
		r.passed = nil
		return t
	}
	m, from := &r.moves[r.at-1], r.output
	if r.first[r.at-1] {
		from = r.input
	}
	return from.View(m.Low, m.High)
}

// apply does a move whose chunk is there.
func (r *reduction) apply(m *Move, i int) {
	chunks := r.chunks[r.round&1]
	chunk := chunks[i]
	chunks[i] = nil
	input, output := r.input.Data[m.Low:m.High], r.output.Data[m.Low:m.High]
	switch {
	case m.Action == Replace:
		if !same(output, chunk.Data) {
			copy(output, chunk.Data)
		}
		if r.onward[i] {
			r.passed = chunk
			return
		}
	case r.brief[i] && chunk.Sole():
		r.add(i, chunk.Data, chunk.Data, input)
		r.passed = chunk
		return
	case r.first[i]:
		r.add(i, output, input, chunk.Data)
	default:
		r.add(i, output, output, chunk.Data)
	}
	chunk.Release()
}

// same reports whether two vectors of one length are in the same memory.
func same(a, b []float32) bool { return unsafe.SliceData(a) == unsafe.SliceData(b) }

// add adds two vectors. A sum that is complete it divides as well.
func (r *reduction) add(i int, sum, a, b []float32) {
	r.work += float64(len(sum))
	switch {
	case !r.last[i]:
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
	return r.at < len(r.moves) && r.moves[r.at].Action != Send && r.chunks[r.round&1][r.at] == nil
}

// awaited is the rank whose chunk the next move takes in.
func (r *reduction) awaited() int { return r.moves[r.at].Peer }

// spent returns the FLOPs of sums and quotients since it was last called.
func (r *reduction) spent() float64 {
	work := r.work
	r.work = 0
	return work
}

// finish ends the round, all of whose moves are made or none.
func (r *reduction) finish() {
	r.round++
	r.input, r.output, r.active, r.at = nil, nil, false, 0
}

// drop gives back all chunks that have come. The reduction is not used again.
func (r *reduction) drop() {
	for _, chunks := range r.chunks {
		for i, chunk := range chunks {
			if chunk != nil {
				chunk.Release()
				chunks[i] = nil
			}
		}
	}
}
