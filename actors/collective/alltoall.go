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
type allToAll struct{ part }

// size is N sends, the rank's own included, and as many waits.
func (s *allToAll) size() int { return 2 * s.n }

func (s *allToAll) move(position int) move {
	if position < s.n {
		m := s.whole(send, (s.rank+position)%s.n, 0)
		m.first = true
		return m
	}
	peer := position - s.n
	if peer == 0 {
		m := s.whole(replace, 0, 0)
		m.first = true
		return m
	}
	m := s.whole(add, peer, 0)
	m.last = peer == s.n-1
	return m
}

func (s *allToAll) find(t tag) int { return s.n + t.rank }
