package collective

import (
	"math/bits"
	"slices"
)

// hierarchical sums within each site first, so that each value crosses to another site once on its
// way to the sum and once on its way back. The lowest rank of a site leads it. The ranks of a site
// reduce along a tree to their leader. The leaders cut the vector into a piece each: every leader
// sends each other one that one's piece, sums its own, and sends the sum to all of them. Then each
// tree broadcasts.
//
//	N ranks, K sites, S bytes   steps               messages            bytes
//	within sites                2·⌈log₂M⌉           2(N−K)              2(N−K)S
//	between sites               2 (none if K is 1)  2K(K−1)             2(K−1)S
//
// M is the number of ranks of the largest site. A leader sends 2S(K−1)/K bytes to other sites, and
// no more than two delays between sites follow each other. (T. Kielmann et al., "MagPIe: MPI's
// Collective Communication Operations for Clustered Wide Area Systems", PPoPP 1999, for the two
// levels; E. Chan et al., cited at allToAll, for the exchange between leaders.)
//
// A leader goes up the tree, makes the 4(K−1) moves of the exchange, and goes down; another rank
// has the moves of the tree alone. A rank keeps the ranks of its site and the leaders.
type hierarchical struct {
	part
	tree    *tree   // of the site
	members []int32 // ranks of the site, ascending
	leaders []int32 // of all sites, ascending
	site    int     // the place of this rank's leader among the leaders
	up      int     // the steps of a reduction in the largest site
}

// newHierarchical returns a rank's schedule. sites are those of the ranks, any numbers.
func newHierarchical(p part, sites []int32) *hierarchical {
	s := &hierarchical{part: p}
	counts := map[int32]int{}
	largest := 0
	for rank, site := range sites {
		if counts[site]++; counts[site] == 1 {
			if site == sites[p.rank] {
				s.site = len(s.leaders)
			}
			s.leaders = append(s.leaders, int32(rank))
		}
		largest = max(largest, counts[site])
		if site == sites[p.rank] {
			s.members = append(s.members, int32(rank))
		}
	}
	s.up = bits.Len(uint(largest - 1))
	place, _ := slices.BinarySearch(s.members, int32(p.rank))
	s.tree = newTree(part{n: len(s.members), rank: place, values: p.values})
	s.tree.steps = 2*s.up + s.crossings()
	return s
}

// crossings is how many steps the leaders make among themselves.
func (s *hierarchical) crossings() int {
	if len(s.leaders) == 1 {
		return 0
	}
	return 2
}

// exchange is the number of moves that this rank makes with other leaders.
func (s *hierarchical) exchange() int {
	if s.tree.rank > 0 {
		return 0
	}
	return 4 * (len(s.leaders) - 1)
}

func (s *hierarchical) size() int { return s.tree.size() + s.exchange() }

func (s *hierarchical) move(position int) move {
	between := s.exchange()
	switch children := s.tree.children; {
	case between == 0 || position < children:
		m := s.tree.move(position)
		m.peer = int(s.members[m.peer])
		if between > 0 {
			m.last, m.onward = false, false
		}
		return m
	case position < children+between:
		return s.cross(position-children, children == 0)
	}
	m := s.tree.move(position - between)
	m.peer = int(s.members[m.peer])
	return m
}

// cross is a move of the exchange between leaders: each other leader's piece goes to it, the
// leader's own comes from each, its sum goes to each, and the other sums come. A leader that is
// alone in its site has nothing in the output before.
func (s *hierarchical) cross(position int, alone bool) move {
	others := len(s.leaders) - 1
	round, distance := position/others, 1+position%others
	other := (s.site + distance) % len(s.leaders)
	m := move{peer: int(s.leaders[other]), step: s.up}
	switch round {
	case 0:
		m.action, m.index, m.first = send, other, alone
	case 1:
		m.action, m.index, m.first = add, s.site, alone && distance == 1
		m.last = distance == others
		m.onward = m.last
	case 2:
		m.action, m.index, m.step = send, s.site, s.up+1
	default:
		m.action, m.index, m.step, m.first = replace, other, s.up+1, alone
	}
	m.low = boundary(s.values, len(s.leaders), m.index)
	m.high = boundary(s.values, len(s.leaders), m.index+1)
	return m
}

func (s *hierarchical) find(t tag) int {
	if place, here := slices.BinarySearch(s.members, int32(t.rank)); here {
		t.rank = place
		if position := s.tree.find(t); place < s.tree.rank || position < s.tree.children {
			return position
		}
		return -1
	}
	from, leads := slices.BinarySearch(s.leaders, int32(t.rank))
	if !leads || s.tree.rank > 0 {
		return -1
	}
	others := len(s.leaders) - 1
	distance := (from - s.site + len(s.leaders)) % len(s.leaders)
	return s.tree.children + (1+2*(t.step-s.up))*others + distance - 1
}
