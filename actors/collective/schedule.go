package collective

import "math/bits"

// Algorithm names a way to sum vectors over ranks.
type Algorithm string

// The algorithms. Each one's cost stands at its schedule.
const (
	AllToAll  Algorithm = "all-to-all"
	Ring      Algorithm = "ring"
	Butterfly Algorithm = "butterfly"
	Tree      Algorithm = "tree"
)

// Action is what a Move does.
type Action uint8

// The actions.
const (
	// Send sends a piece of the vector to the peer.
	Send Action = iota + 1
	// Add waits for a piece of the peer and adds it to the vector.
	Add
	// Replace waits for a piece of the peer and puts it in the vector's place.
	Replace
)

// Move is one thing that a rank does in a round: an effect or a wait, as a value.
type Move struct {
	Action Action
	// Peer is the rank at the other end. It is the rank itself where a rank puts its own piece
	// among the others'; such a piece takes no message.
	Peer int
	// Step and Index name the piece beside its sender: the step of the algorithm and
	// which piece of the vector it is, from 0. No two messages of a rank in a round
	// have both in common with the same receiver.
	Step, Index int
	// Low and High bound the piece: values Low to High−1 of the vector. It may be empty.
	Low, High int
}

// Schedule returns what a rank does in a round, in order, to sum vectors of the given number of
// values over n ranks. Each rank walks through its own schedule and holds the sum at the end. It
// panics for an unknown algorithm, a rank outside [0, n) and a negative number of values.
func (a Algorithm) Schedule(n, rank, values int) []Move { return a.schedule(n, rank, values, 0) }

// schedule is Schedule, with the number of values of the largest message of a ring; 0 for no
// bound.
func (a Algorithm) schedule(n, rank, values, segment int) []Move {
	if rank < 0 || rank >= n || values < 0 {
		panic("collective: rank outside of the number of ranks, or a negative number of values")
	}
	if n == 1 {
		return nil
	}
	s := schedule{n: n, rank: rank, values: values, segment: segment}
	switch a {
	case AllToAll:
		s.allToAll()
	case Ring:
		s.ring()
	case Butterfly:
		s.butterfly()
	case Tree:
		s.tree()
	default:
		panic("collective: algorithm does not exist")
	}
	return s.moves
}

// schedule is one rank's schedule in the making.
type schedule struct {
	n, rank, values int
	segment         int // values of a message at most, 0 for no bound; for the ring
	moves           []Move
}

// whole adds a move of the whole vector.
func (s *schedule) whole(action Action, peer, step int) {
	s.moves = append(s.moves, Move{Action: action, Peer: peer, Step: step, High: s.values})
}

// pieces adds a move of the pieces first to end−1 of the vector's parts pieces.
func (s *schedule) pieces(action Action, peer, step, parts, first, end int) {
	s.moves = append(s.moves, Move{
		Action: action, Peer: peer, Step: step, Index: first,
		Low: boundary(s.values, parts, first), High: boundary(s.values, parts, end),
	})
}

// boundary is where piece i begins if values are cut into parts that differ by one value at most.
func boundary(values, parts, i int) int {
	high, low := bits.Mul64(uint64(values), uint64(i))
	quotient, _ := bits.Div64(high, low, uint64(parts))
	return int(quotient)
}
