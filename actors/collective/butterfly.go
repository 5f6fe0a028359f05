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
//
// In step 0 and in the last one, the folded ranks and those that stand for them have a move; in
// each step between, the others send and then wait.
type butterfly struct {
	part
	levels int // log₂P
	folded int // r
}

func newButterfly(p part) *butterfly {
	levels := bits.Len(uint(p.n)) - 1
	return &butterfly{part: p, levels: levels, folded: p.n - 1<<levels}
}

func (s *butterfly) end() int { return 2*s.levels + 1 }

func (s *butterfly) size() int { return 2 * s.end() }

func (s *butterfly) move(position int) move {
	step := (position + 1) / 2
	pair := s.rank < 2*s.folded
	folds := pair && s.rank%2 == 1
	switch edge := step == 0 || step == s.end(); {
	case edge && pair:
		return s.fold(step == 0, folds)
	case edge || folds:
		return move{}
	case step > s.levels:
		return s.double(step, position%2 == 1)
	}
	return s.halve(step, position%2 == 1)
}

// fold is a move between a rank that folds and the one that stands for it: before all others or
// after.
func (s *butterfly) fold(before, folds bool) move {
	var m move
	switch {
	case before && folds:
		m = s.whole(send, s.rank-1, 0)
	case before:
		m = s.whole(add, s.rank+1, 0)
	case folds:
		m = s.whole(replace, s.rank-1, s.end())
	default:
		m = s.whole(send, s.rank+1, s.end())
	}
	m.first = before || folds
	return m
}

// halve is a move of the reduce-scatter among the participants: the half of the partner goes, the
// rank's own comes.
func (s *butterfly) halve(step int, sends bool) move {
	m := s.exchange(step, 1<<(s.levels-step), !sends)
	m.first = step == 1 && s.rank >= 2*s.folded
	if m.action = send; !sends {
		m.action, m.last = add, step == s.levels
		m.onward = m.last
	}
	return m
}

// double is a move of the all-gather among the participants: what the rank has goes, what the
// partner has comes.
func (s *butterfly) double(step int, sends bool) move {
	m := s.exchange(step, 1<<(step-s.levels-1), sends)
	if m.action = send; !sends {
		m.action = replace
		m.first = step == 2*s.levels && s.rank >= 2*s.folded // the half that it gave away in step 1
	}
	return m
}

// exchange is a move between partners at a distance: of the pieces that are the rank's own after
// halving or before doubling, or of the partner's.
func (s *butterfly) exchange(step, distance int, own bool) move {
	place := seat(s.rank, s.folded)
	first := place &^ (distance - 1)
	if !own {
		first ^= distance
	}
	return move{
		peer: occupant(place^distance, s.folded), step: step, index: first,
		low:  boundary(s.values, 1<<s.levels, first),
		high: boundary(s.values, 1<<s.levels, first+distance),
	}
}

func (s *butterfly) find(t tag) int {
	if t.step == s.end() {
		return 2*t.step - 1
	}
	return 2 * t.step
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
