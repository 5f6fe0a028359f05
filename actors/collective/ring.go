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
func (s *schedule) ring() {
	next, previous := (s.rank+1)%s.n, (s.rank+s.n-1)%s.n
	piece := s.rank // that is sent next
	for step := range 2 * (s.n - 1) {
		action := Add
		if step >= s.n-1 {
			action = Replace
		}
		s.pieces(Send, next, step, s.n, piece, piece+1)
		piece = (piece + s.n - 1) % s.n
		s.pieces(action, previous, step, s.n, piece, piece+1)
	}
}
