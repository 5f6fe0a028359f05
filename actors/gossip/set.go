package gossip

import "slices"

// nodes is a set of positions in ascending order. It takes memory for those that are in it.
type nodes []int

func (s *nodes) add(node int) {
	if i, found := slices.BinarySearch(*s, node); !found {
		*s = slices.Insert(*s, i, node)
	}
}

// remove reports whether the node was there.
func (s *nodes) remove(node int) bool {
	i, found := slices.BinarySearch(*s, node)
	if found {
		*s = slices.Delete(*s, i, i+1)
	}
	return found
}

// set is a set of small numbers that keeps its memory, in proportion to the largest. The zero value
// is empty.
type set struct {
	words []uint64
	count int
}

func (s *set) has(i int) bool {
	return i>>6 < len(s.words) && s.words[i>>6]>>(i&63)&1 == 1
}

func (s *set) add(i int) {
	if s.has(i) {
		return
	}
	for i>>6 >= len(s.words) {
		s.words = append(s.words, 0)
	}
	s.words[i>>6] |= 1 << (i & 63)
	s.count++
}
