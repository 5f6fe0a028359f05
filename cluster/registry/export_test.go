package registry

import "github.com/cespare/xxhash/v2"

// Digest returns a hash of a state. Equal states have equal digests.
func (s *State) Digest() uint64 {
	data, err := s.snapshot()
	if err != nil {
		panic(err)
	}
	return xxhash.Sum64(data)
}

// Leaving reports whether a member has been asked to leave.
func (m *Member) Leaving() bool { return m.leaving }

// ProposeEntry has a member propose an entry that need not be a command.
func (m *Member) ProposeEntry(data []byte) error { return m.node.Propose(data) }
