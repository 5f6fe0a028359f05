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
func (s *schedule) ring() {
	next, previous := (s.rank+1)%s.n, (s.rank+s.n-1)%s.n
	steps := 2 * (s.n - 1)
	piece := s.rank // that was received last
	for part := range s.parts(piece) {
		s.part(Send, next, 0, piece, part)
	}
	for step := range steps {
		action := Add
		if step >= s.n-1 {
			action = Replace
		}
		piece = (piece + s.n - 1) % s.n
		for part := range s.parts(piece) {
			s.part(action, previous, step, piece, part)
			if step+1 < steps {
				s.part(Send, next, step+1, piece, part)
			}
		}
	}
}

// parts is how many messages one of n pieces takes.
func (s *schedule) parts(piece int) int {
	values := boundary(s.values, s.n, piece+1) - boundary(s.values, s.n, piece)
	if s.segment == 0 {
		return 1
	}
	return max(1, (values+s.segment-1)/s.segment)
}

// part adds a move of one part of one of n pieces.
func (s *schedule) part(action Action, peer, step, piece, part int) {
	low, high := boundary(s.values, s.n, piece), boundary(s.values, s.n, piece+1)
	parts := s.parts(piece)
	s.moves = append(s.moves, Move{
		Action: action, Peer: peer, Step: step, Index: piece + s.n*part,
		Low: low + boundary(high-low, parts, part), High: low + boundary(high-low, parts, part+1),
	})
}
