package collective

// ring is reduce-scatter followed by all-gather along a ring: the vector is cut into
// N pieces, each rank sends one piece a step to the next rank. In the first half
// a piece collects the values of all ranks on its way, starting from the rank of its number; in
// the second the sums go round.
//
//	N ranks, S bytes   steps     messages   bytes     bytes sent by a rank
//	ring               2(N−1)    2N(N−1)    2(N−1)S   2S(N−1)/N
//
// No algorithm sends fewer bytes a rank (P. Patarasuk and X. Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", Journal of Parallel
// and Distributed Computing 69(2), 2009).
//
// With a segment, pieces of more values than that travel as several messages, and a rank sends
// on what it has of a piece while the rest is still to come: adding, sending and receiving
// overlap, in memory that is still in the cache.
//
// A rank has 2N−1 turns, in each of which it takes in a piece and sends it on, part by part: two
// positions each. In the first turn it takes in nothing and in the last it sends nothing. Pieces
// differ by a value, and so some may have one part fewer than there are positions for.
type ring struct {
	part
	segment int // values of a message at most, 0 for no bound
	parts   int // of the largest piece
}

func newRing(p part, segment int) *ring {
	s := &ring{part: p, segment: segment}
	s.parts = s.cut((p.values + p.n - 1) / p.n)
	return s
}

// cut is how many messages a number of values take.
func (s *ring) cut(values int) int {
	if s.segment == 0 {
		return 1
	}
	return max(1, (values+s.segment-1)/s.segment)
}

func (s *ring) size() int { return 2 * s.parts * (2*s.n - 1) }

func (s *ring) move(position int) move {
	turn, part := position/2, 0
	if s.parts > 1 {
		turn, part = turn/s.parts, turn%s.parts
	}
	m := s.onTurn(turn, position%2 == 1)
	if m.action == nothing {
		return move{}
	}
	piece := s.rank - turn
	for piece < 0 {
		piece += s.n
	}
	low, high := boundary(s.values, s.n, piece), boundary(s.values, s.n, piece+1)
	if parts := s.cut(high - low); part >= parts {
		return move{}
	} else if parts > 1 {
		low, high = low+boundary(high-low, parts, part), low+boundary(high-low, parts, part+1)
	}
	m.index, m.low, m.high = piece+s.n*part, low, high
	return m
}

// onTurn is what is done to each part of a turn's piece.
func (s *ring) onTurn(turn int, sends bool) move {
	end := 2*s.n - 2
	switch {
	case sends && turn < end:
		return move{action: send, peer: (s.rank + 1) % s.n, step: turn, first: turn == 0}
	case sends || turn == 0:
		return move{}
	}
	m := move{action: replace, peer: (s.rank + s.n - 1) % s.n, step: turn - 1, onward: turn < end,
		first: turn <= s.n} // in turn N its own piece comes back as a sum
	if turn < s.n {
		m.action, m.last, m.brief = add, turn == s.n-1, turn < s.n-1
	}
	return m
}

func (s *ring) find(t tag) int { return 2 * ((t.step+1)*s.parts + t.index/s.n) }
