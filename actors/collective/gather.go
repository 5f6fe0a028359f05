package collective

// gather has every rank send its part of a vector to all others, so that all have the whole: values
// is the length of a part, and those of a rank are at rank·values. Nothing is summed on the way.
//
//	N ranks, S bytes a part   steps   messages   bytes     bytes sent by a rank
//	gather                    1       N(N−1)     N(N−1)S   (N−1)S
//
// These are the fewest bytes to each rank, of which a ring would take as many and more steps.
type gather struct{ part }

// size is as many positions as all-to-all has.
func (s *gather) size() int { return 2 * s.n }

func (s *gather) move(position int) move {
	m := move{action: send, peer: (s.rank + position) % s.n}
	from := s.rank
	if position >= s.n {
		m.action, m.peer = replace, position-s.n
		from = m.peer
	}
	if m.peer == s.rank {
		return move{}
	}
	m.low, m.high = from*s.values, (from+1)*s.values
	return m
}

func (s *gather) find(t tag) int { return s.n + t.rank }
