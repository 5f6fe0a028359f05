package collective

// allToAll is the direct exchange: every rank sends its vector to all others, and
// every rank adds all of them, its own included, in the order of ranks.
//
//	N ranks, S bytes   steps   messages   bytes     bytes sent by a rank
//	all-to-all         1       N(N−1)     N(N−1)S   (N−1)S
//
// It is the one that needs the fewest steps, and so the fastest where delay
// counts and bytes do not (E. Chan et al., "Collective communication: theory, practice,
// and experience", Concurrency and Computation 19(13), 2007, on lower bounds).
func (s *schedule) allToAll() {
	for distance := range s.n {
		s.whole(Send, (s.rank+distance)%s.n, 0)
	}
	s.whole(Replace, 0, 0)
	for peer := 1; peer < s.n; peer++ {
		s.whole(Add, peer, 0)
	}
}
