package collective

import "math/bits"

// butterfly is recursive halving and doubling. P = 2^⌊log₂N⌋ ranks take part; in log₂P steps each
// exchanges half of the pieces that are left with a partner at distance P/2, P/4, … 1 and adds,
// until it holds the sum of one piece; then back, each step doubling what it holds. The r = N − P
// ranks beyond fold: the odd ones among the first 2r give their vector to the even one before them,
// which stands for both, and get the sum from it at the end.
//
//	N ranks, S bytes   steps               messages        bytes     bytes sent by a rank
//	butterfly          2·log₂P (+ 2, r>0)  2P·log₂P + 2r   2(N−1)S   2S(P−1)/P (+ S)
//
// A rank that folds or stands for two sends another S.
//
// (R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; R. Thakur,
// R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in
// MPICH", International Journal of High Performance Computing Applications 19(1), 2005. Their
// ranks that fold share the first addition with their partners, in halves, at the price of
// another message.)
func (s *schedule) butterfly() {
	levels := bits.Len(uint(s.n)) - 1
	participants := 1 << levels
	folded := s.n - participants
	last := 2*levels + 1 // step; in step 0 and in this one the folded ranks take part
	pair := s.rank < 2*folded
	if pair && s.rank%2 == 1 {
		s.whole(Send, s.rank-1, 0)
		s.whole(Replace, s.rank-1, last)
		return
	}
	if pair {
		s.whole(Add, s.rank+1, 0)
	}
	s.halve(levels, folded)
	s.double(levels, folded)
	if pair {
		s.whole(Send, s.rank+1, last)
	}
}

// halve adds the reduce-scatter among the participants.
func (s *schedule) halve(levels, folded int) {
	place := seat(s.rank, folded)
	first, end := 0, 1<<levels
	for level := range levels {
		distance := 1 << (levels - 1 - level)
		peer := occupant(place^distance, folded)
		middle := first + distance
		if place&distance == 0 {
			s.pieces(Send, peer, 1+level, 1<<levels, middle, end)
			end = middle
		} else {
			s.pieces(Send, peer, 1+level, 1<<levels, first, middle)
			first = middle
		}
		s.pieces(Add, peer, 1+level, 1<<levels, first, end)
	}
}

// double adds the all-gather among the participants.
func (s *schedule) double(levels, folded int) {
	place := seat(s.rank, folded)
	for level := range levels {
		distance := 1 << level
		mine := place &^ (distance - 1)
		partners := mine ^ distance
		peer := occupant(place^distance, folded)
		s.pieces(Send, peer, 1+levels+level, 1<<levels, mine, mine+distance)
		s.pieces(Replace, peer, 1+levels+level, 1<<levels, partners, partners+distance)
	}
}

// seat is the place among the participants of a rank that takes part, and occupant
// the rank at a place.
func seat(rank, folded int) int {
	if rank < 2*folded {
		return rank / 2
	}
	return rank - folded
}

func occupant(place, folded int) int {
	if place < folded {
		return 2 * place
	}
	return place + folded
}
