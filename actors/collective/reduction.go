package collective

import (
	"fmt"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// tag names a chunk inside its round.
type tag struct {
	rank, step, index int
}

// reduction is one rank's part in the rounds of one view. It has neither clock nor
// network: begin and take give it what has happened, next says what is to be sent.
//
// Chunks may come in any order. Since a round that is over at one rank has begun at
// all others, no rank is more than one round ahead, and the chunks that wait
// are at most those of two rounds.
type reduction struct {
	rank   int
	moves  []Move
	places map[tag]int         // of the move that waits for a chunk
	chunks [2][]*protos.Tensor // of an even and an odd round, by the place of their move
	round  uint64
	vector []float32 // nil between rounds
	active bool      // between begin and finish
	at     int       // the place of the next move
	work   float64   // FLOPs of sums since spent was last called
}

func newReduction(a Algorithm, n, rank, values int) *reduction {
	r := &reduction{rank: rank, moves: a.Schedule(n, rank, values), places: map[tag]int{}}
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

// begin starts the round with this rank's vector, in which the sum will be.
func (r *reduction) begin(vector []float32) {
	r.vector, r.active, r.at = vector, true, 0
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

// keep takes in this rank's own piece, which m sends to the rank itself.
func (r *reduction) keep(m *Move, piece *protos.Tensor) {
	r.chunks[r.round&1][r.places[tag{r.rank, m.Step, m.Index}]] = piece
}

// next works off what has arrived up to the next piece to be sent, which the caller
// copies before it calls next again. It is nil if a chunk is missing or nothing is left.
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

// apply does a move whose chunk is there.
func (r *reduction) apply(m *Move, i int) {
	chunks := r.chunks[r.round&1]
	piece := r.vector[m.Low:m.High]
	if m.Action == Add {
		nn.AddScaled(piece, 1, chunks[i].Data)
		r.work += float64(len(piece))
	} else {
		copy(piece, chunks[i].Data)
	}
	chunks[i].Release()
	chunks[i] = nil
}

// blocked reports whether the next move waits for a chunk that is not there.
func (r *reduction) blocked() bool {
	return r.at < len(r.moves) && r.moves[r.at].Action != Send && r.chunks[r.round&1][r.at] == nil
}

// awaited is the rank whose chunk the next move takes in.
func (r *reduction) awaited() int { return r.moves[r.at].Peer }

// spent returns the FLOPs of the sums since it was last called.
func (r *reduction) spent() float64 {
	work := r.work
	r.work = 0
	return work
}

// finish ends the round, all of whose moves are made or none.
func (r *reduction) finish() {
	r.round++
	r.vector, r.active, r.at = nil, false, 0
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
