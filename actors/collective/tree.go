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
func (s *schedule) tree() {
	levels := bits.Len(uint(s.n - 1))
	own := levels // the level at which the rank meets its parent; rank 0 has none
	if s.rank > 0 {
		own = bits.TrailingZeros(uint(s.rank))
	}
	parent := s.rank & (s.rank - 1)
	for level := range own {
		if child := s.rank + 1<<level; child < s.n {
			s.whole(Add, child, level)
		}
	}
	if s.rank > 0 {
		s.whole(Send, parent, own)
		s.whole(Replace, parent, 2*levels-1-own)
	}
	for level := own - 1; level >= 0; level-- {
		if child := s.rank + 1<<level; child < s.n {
			s.whole(Send, child, 2*levels-1-level)
		}
	}
}
