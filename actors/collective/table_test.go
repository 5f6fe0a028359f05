package collective

import (
	"cmp"
	"math/bits"
	"slices"
)

// table is the dumb second implementation of schedules: the moves of a rank in a list, each
// algorithm written down from the first move to the last, and what becomes of their values found by
// looking at all of them.
type table struct {
	n, rank, values int
	segment         int
	moves           []move
}

func newTable(a Algorithm, n, rank, values, segment int) *table {
	s := &table{n: n, rank: rank, values: values, segment: segment}
	switch {
	case n == 1:
	case a == AllToAll:
		s.allToAll()
	case a == Ring:
		s.ring()
	case a == Butterfly:
		s.butterfly()
	case a == Tree:
		s.tree()
	case a == Hierarchical:
		s.hierarchical(grouping(n))
	}
	first, last := firsts(s.moves), lasts(s.moves)
	onward, brief := passing(s.moves, first)
	for i := range s.moves {
		m := &s.moves[i]
		m.first, m.last, m.onward, m.brief = first[i], last[i], onward[i], brief[i]
	}
	return s
}

func (s *table) ring() {
	next, previous := (s.rank+1)%s.n, (s.rank+s.n-1)%s.n
	steps := 2 * (s.n - 1)
	piece := s.rank // that was received last
	for part := range s.parts(piece) {
		s.part(send, next, 0, piece, part)
	}
	for step := range steps {
		a := add
		if step >= s.n-1 {
			a = replace
		}
		piece = (piece + s.n - 1) % s.n
		for part := range s.parts(piece) {
			s.part(a, previous, step, piece, part)
			if step+1 < steps {
				s.part(send, next, step+1, piece, part)
			}
		}
	}
}

// parts is how many messages one of n pieces takes.
func (s *table) parts(piece int) int {
	values := boundary(s.values, s.n, piece+1) - boundary(s.values, s.n, piece)
	if s.segment == 0 {
		return 1
	}
	return max(1, (values+s.segment-1)/s.segment)
}

// part adds a move of one part of one of n pieces.
func (s *table) part(a action, peer, step, piece, part int) {
	low, high := boundary(s.values, s.n, piece), boundary(s.values, s.n, piece+1)
	parts := s.parts(piece)
	s.moves = append(s.moves, move{
		action: a, peer: peer, step: step, index: piece + s.n*part,
		low: low + boundary(high-low, parts, part), high: low + boundary(high-low, parts, part+1),
	})
}

func (s *table) butterfly() {
	levels := bits.Len(uint(s.n)) - 1
	participants := 1 << levels
	folded := s.n - participants
	last := 2*levels + 1 // step; in step 0 and in this one the folded ranks take part
	pair := s.rank < 2*folded
	if pair && s.rank%2 == 1 {
		s.whole(send, s.rank-1, 0)
		s.whole(replace, s.rank-1, last)
		return
	}
	if pair {
		s.whole(add, s.rank+1, 0)
	}
	s.halve(levels, folded)
	s.double(levels, folded)
	if pair {
		s.whole(send, s.rank+1, last)
	}
}

// halve adds the reduce-scatter among the participants.
func (s *table) halve(levels, folded int) {
	place := seat(s.rank, folded)
	first, end := 0, 1<<levels
	for level := range levels {
		distance := 1 << (levels - 1 - level)
		peer := occupant(place^distance, folded)
		middle := first + distance
		if place&distance == 0 {
			s.pieces(send, peer, 1+level, 1<<levels, middle, end)
			end = middle
		} else {
			s.pieces(send, peer, 1+level, 1<<levels, first, middle)
			first = middle
		}
		s.pieces(add, peer, 1+level, 1<<levels, first, end)
	}
}

// double adds the all-gather among the participants.
func (s *table) double(levels, folded int) {
	place := seat(s.rank, folded)
	for level := range levels {
		distance := 1 << level
		mine := place &^ (distance - 1)
		partners := mine ^ distance
		peer := occupant(place^distance, folded)
		s.pieces(send, peer, 1+levels+level, 1<<levels, mine, mine+distance)
		s.pieces(replace, peer, 1+levels+level, 1<<levels, partners, partners+distance)
	}
}

func (s *table) allToAll() {
	for distance := range s.n {
		s.whole(send, (s.rank+distance)%s.n, 0)
	}
	s.whole(replace, 0, 0)
	for peer := 1; peer < s.n; peer++ {
		s.whole(add, peer, 0)
	}
}

func (s *table) tree() {
	levels := bits.Len(uint(s.n - 1))
	own := levels // the level at which the rank meets its parent; rank 0 has none
	if s.rank > 0 {
		own = bits.TrailingZeros(uint(s.rank))
	}
	parent := s.rank & (s.rank - 1)
	for level := range own {
		if child := s.rank + 1<<level; child < s.n {
			s.whole(add, child, level)
		}
	}
	if s.rank > 0 {
		s.whole(send, parent, own)
		s.whole(replace, parent, 2*levels-1-own)
	}
	for level := own - 1; level >= 0; level-- {
		if child := s.rank + 1<<level; child < s.n {
			s.whole(send, child, 2*levels-1-level)
		}
	}
}

func (s *table) hierarchical(sites []int32) {
	members := map[int32][]int{}
	var leaders []int
	up := 0 // levels of the largest tree
	for rank, site := range sites {
		if members[site] = append(members[site], rank); len(members[site]) == 1 {
			leaders = append(leaders, rank)
		}
		up = max(up, bits.Len(uint(len(members[site])-1)))
	}
	down := up
	if len(leaders) > 1 {
		down += 2
	}
	own := members[sites[s.rank]]
	at := &table{n: len(own), rank: slices.Index(own, s.rank), values: s.values}
	at.tree()
	for _, m := range at.moves {
		if levels := bits.Len(uint(len(own) - 1)); m.step >= levels {
			m.step += down + up - 2*levels
		}
		m.peer = own[m.peer]
		if at.rank == 0 && m.action == send && len(s.moves) == countAdds(s.moves) {
			s.leaders(leaders, up)
		}
		s.moves = append(s.moves, m)
	}
	if len(own) == 1 {
		s.leaders(leaders, up)
	}
}

// countAdds counts the additions among moves.
func countAdds(moves []move) (n int) {
	for _, m := range moves {
		if m.action == add {
			n++
		}
	}
	return n
}

// leaders adds the exchange of pieces between the leaders of sites.
func (s *table) leaders(leaders []int, step int) {
	k := len(leaders)
	own := slices.Index(leaders, s.rank)
	for _, part := range []struct {
		action action
		step   int
		own    bool
	}{{send, step, false}, {add, step, true}, {send, step + 1, true}, {replace, step + 1, false}} {
		for distance := 1; distance < k; distance++ {
			other := (own + distance) % k
			piece := other
			if part.own {
				piece = own
			}
			s.pieces(part.action, leaders[other], part.step, k, piece, piece+1)
		}
	}
}

// whole adds a move of the whole vector.
func (s *table) whole(a action, peer, step int) {
	s.moves = append(s.moves, move{action: a, peer: peer, step: step, high: s.values})
}

// pieces adds a move of the pieces first to end−1 of the vector's parts pieces.
func (s *table) pieces(a action, peer, step, parts, first, end int) {
	s.moves = append(s.moves, move{
		action: a, peer: peer, step: step, index: first,
		low: boundary(s.values, parts, first), high: boundary(s.values, parts, end),
	})
}

// firsts tells for each move whether no move before took in any of its values. In every schedule it
// is all of them or none.
func firsts(moves []move) []bool {
	first := make([]bool, len(moves))
	var taken [][2]int // spans of values; those that touch are one, so that there are few
	for i, m := range moves {
		first[i] = !slices.ContainsFunc(taken, func(span [2]int) bool { return span[0] <= m.low && m.low < span[1] })
		if m.action == send || !first[i] || m.low == m.high {
			continue
		}
		span := [2]int{m.low, m.high}
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
func lasts(moves []move) []bool {
	backward := slices.Clone(moves)
	slices.Reverse(backward)
	last := firsts(backward)
	slices.Reverse(last)
	for i, m := range moves {
		last[i] = last[i] && m.action == add
	}
	return last
}

// passing tells for each move whether the next one sends the same values on. For an addition to
// which nothing was added before, it tells whether its sum is only sent on and then replaced.
func passing(moves []move, first []bool) (onward, brief []bool) {
	onward, brief = make([]bool, len(moves)), make([]bool, len(moves))
	cut := partitions(moves)
	after := make([]int, len(moves)) // the place of the next move of the same values
	latest := map[[2]int]int{}
	for i := len(moves) - 1; i >= 0; i-- {
		m := &moves[i]
		span := [2]int{m.low, m.high}
		next, more := latest[span]
		after[i], latest[span] = len(moves), i
		if !more {
			continue
		}
		after[i] = next
		onward[i] = m.action != send && next == i+1 && moves[next].action == send
		then := after[next]
		brief[i] = cut && onward[i] && m.action == add && first[i] && then < len(moves) && moves[then].action == replace
	}
	return onward, brief
}

// partitions reports whether the values of any two moves are the same or none in common.
func partitions(moves []move) bool {
	sorted := slices.SortedFunc(slices.Values(moves), func(a, b move) int { return cmp.Or(a.low-b.low, a.high-b.high) })
	for i := range len(sorted) - 1 {
		a, b := sorted[i], sorted[i+1]
		if b.low < a.high && (a.low != b.low || a.high != b.high) {
			return false
		}
	}
	return true
}
