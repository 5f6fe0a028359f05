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
	// Hierarchical goes by the sites of the workers.
	Hierarchical Algorithm = "hierarchical"
	// Auto is one of the others, see [Architecture.Choose].
	Auto Algorithm = "auto"
)

// action is what a move does.
type action uint8

const (
	// nothing is the action of a position that has no move.
	nothing action = iota
	// send sends a piece of the vector to the peer.
	send
	// add waits for a piece of the peer and adds it to the vector.
	add
	// replace waits for a piece of the peer and puts it in the vector's place.
	replace
)

// move is one thing that a rank does in a round: an effect or a wait, as a value.
type move struct {
	action action
	// What becomes of the move's values. The mean is put together in an output; what a move before
	// has taken in is there, the rest in the input. In every schedule either all values of a move
	// are in the output already or none.
	first  bool // none is in the output yet
	last   bool // of an addition: its sum is complete, no move after it takes in any of its values
	onward bool // of a wait: the next move sends the same values on
	brief  bool // of an onward addition that is the first: its sum is replaced later, and not read before

	// peer is the rank at the other end. It is the rank itself where a rank puts its own piece
	// among the others'; such a piece takes no message.
	peer int
	// step and index name the piece beside its sender: the step of the algorithm and
	// which piece of the vector it is, from 0. No two messages of a rank in a round
	// have both in common with the same receiver.
	step, index int
	// low and high bound the piece: values low to high−1 of the vector. It may be empty.
	low, high int
}

// tag names a chunk inside its round.
type tag struct {
	rank, step, index int
}

// takes reports whether the move waits for a chunk.
func (m *move) takes(t tag) bool {
	return m.waits() && m.peer == t.rank && m.step == t.step && m.index == t.index
}

// waits reports whether the move needs a chunk.
func (m *move) waits() bool { return m.action == add || m.action == replace }

// schedule is what a rank does in a round, in order, to sum the vectors of all ranks. Each rank
// walks through its own schedule and holds the sum at the end. Moves are computed when they are
// needed, so a schedule takes the same memory for any number of ranks, but for the lists of
// a hierarchical one.
type schedule interface {
	// size is the number of positions.
	size() int
	// move is what is done at a position, from 0 to size−1; nothing at some.
	move(position int) move
	// find returns the position of the move that waits for a chunk. Where none does, it is any
	// number.
	find(t tag) int
}

// newSchedule returns what a rank of n does to sum vectors of the given number of values. sites are
// those of the ranks, which Hierarchical needs. It panics for an algorithm that is unknown or Auto,
// a rank outside [0, n), a negative number of values and missing sites.
func newSchedule(a *Architecture, p part, sites []int32) schedule {
	if p.rank < 0 || p.rank >= p.n || p.values < 0 {
		panic("collective: rank outside of the number of ranks, or a negative number of values")
	}
	switch a.Algorithm {
	case AllToAll:
		return &allToAll{p}
	case Ring:
		return newRing(p, a.Segment)
	case Butterfly:
		return newButterfly(p)
	case Tree:
		return newTree(p)
	case Hierarchical:
		if len(sites) != p.n {
			panic("collective: a rank without a site")
		}
		return newHierarchical(p, sites)
	}
	panic("collective: algorithm does not exist")
}

// part is one rank's in a sum of n vectors.
type part struct{ n, rank, values int }

// whole is a move of the whole vector.
func (p *part) whole(a action, peer, step int) move {
	return move{action: a, peer: peer, step: step, high: p.values}
}

// boundary is where piece i begins if values are cut into parts that differ by one value at most.
func boundary(values, parts, i int) int {
	high, low := bits.Mul64(uint64(values), uint64(i))
	quotient, _ := bits.Div64(high, low, uint64(parts))
	return int(quotient)
}
