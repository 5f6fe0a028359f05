package gossip

// set is a set of small numbers that keeps its memory. The zero value is empty.
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

// remove reports whether i was there.
func (s *set) remove(i int) bool {
	if !s.has(i) {
		return false
	}
	s.words[i>>6] &^= 1 << (i & 63)
	s.count--
	return true
}
