package registry

import (
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/protos"
)

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

// Contents returns a hash of a state without its registry's number, members and recoveries.
func (s *State) Contents() uint64 {
	c, err := s.clone()
	if err != nil {
		panic(err)
	}
	c.cluster, c.members, c.recoveries = 0, nil, nil
	return c.Digest()
}

// Sessions returns the sessions, sorted by id.
func (s *State) Sessions() []*protos.RegistrySession { return sortedValues(s.sessions) }

// Lineage returns the number of the registry that a member is in or joins.
func (m *Member) Lineage() uint64 {
	l := m.lineage()
	return l.cluster
}

// Supersedes reports whether the registry of one frame supersedes that of another.
func Supersedes(a, b *protos.RegistryFrame) bool {
	one, other := lineageOf(a), lineageOf(b)
	return one.supersedes(&other)
}

// Session returns the id of a member's session; 0 without one.
func (m *Member) Session() uint64 { return m.session.id }

// SkipTickets makes the numbers of a member's commands differ from those of an earlier member of the
// same incarnation.
func (m *Member) SkipTickets(n uint64) { m.session.last = n }
