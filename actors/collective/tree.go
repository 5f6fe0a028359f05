package collective

import "math/bits"

// tree is a reduction along a binomial tree to rank 0, followed by a broadcast along
// the same tree. The parent of a rank is the rank without its lowest set bit.
//
//	N ranks, S bytes   steps       messages   bytes     bytes sent by a rank
//	tree               2·⌈log₂N⌉   2(N−1)     2(N−1)S   S by a leaf, ⌈log₂N⌉·S by rank 0
//
// A rank that receives from several children does so in the steps' order, though no link keeps
// them apart: the longest chain of messages has 2·⌊log₂N⌋.
//
// It sends the fewest messages, but half of the ranks only wait and rank 0 carries the most (R.
// Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in
// MPICH", International Journal of High Performance Computing Applications 19(1), 2005).
//
// A rank waits for its children, sends to its parent, waits for it, and sends to its children, the
// last first.
type tree struct {
	part
	steps    int // 2·⌈log₂N⌉
	own      int // the step in which the rank meets its parent; for rank 0, which has none, ⌈log₂N⌉
	children int // child i is 2^i ranks ahead
}

func newTree(p part) *tree {
	levels := bits.Len(uint(p.n - 1))
	s := &tree{part: p, steps: 2 * levels, own: levels}
	if p.rank > 0 {
		s.own = bits.TrailingZeros(uint(p.rank))
	}
	s.children = min(s.own, bits.Len(uint(p.n-1-p.rank)))
	return s
}

func (s *tree) size() int {
	if s.rank == 0 {
		return 2 * s.children
	}
	return 2*s.children + 2
}

func (s *tree) move(position int) move {
	if position < s.children {
		m := s.whole(add, s.rank+1<<position, position)
		m.first, m.onward = position == 0, position == s.children-1
		m.last = m.onward && s.rank == 0
		m.brief = m.first && m.onward && !m.last
		return m
	}
	parent := s.rank & (s.rank - 1)
	switch after := s.size() - 1 - position; { // moves
	case after < s.children:
		return s.whole(send, s.rank+1<<after, s.steps-1-after)
	case after == s.children:
		m := s.whole(replace, parent, s.steps-1-s.own)
		m.first, m.onward = s.children == 0, s.children > 0
		return m
	}
	m := s.whole(send, parent, s.own)
	m.first = s.children == 0
	return m
}

func (s *tree) find(t tag) int {
	if t.rank > s.rank {
		return t.step
	}
	return s.children + 1
}
