package registry

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// session is a member's end of its session: it numbers commands, and repeats them until the member
// has applied their entries itself.
type session struct {
	id      uint64 // 0 while there is none
	nonce   uint64 // of the command that opens one; 0 if there is none under way
	due     int    // when the command that opens one is repeated
	last    uint64
	pending map[uint64]*pending
}

// pending is a command that has no result yet.
type pending struct {
	command *protos.RegistryCommand
	session uint64 // the session in which it was proposed last; 0 if never
	due     int
}

// Submit gives a command, whose session and number are not set, to the registry. Ready returns its
// result with the ticket.
func (m *Member) Submit(c *protos.RegistryCommand) (ticket uint64) {
	s := &m.session
	s.last++
	if s.pending == nil {
		s.pending = map[uint64]*pending{}
	}
	s.pending[s.last] = &pending{command: c, due: m.now}
	s.retry(m)
	return s.last
}

// Cancel gives a command up. It may have its effect nevertheless, if it was proposed.
func (m *Member) Cancel(ticket uint64) { delete(m.session.pending, ticket) }

// retry proposes the commands that are due.
func (s *session) retry(m *Member) {
	if len(s.pending) == 0 || m.failed != nil {
		return
	}
	if s.id == 0 {
		s.open(m)
		return
	}
	tickets := slices.Sorted(maps.Keys(s.pending))
	for _, ticket := range tickets {
		p := s.pending[ticket]
		if m.now < p.due && p.session == s.id {
			continue
		}
		p.due, p.session = m.now+m.config.RetryTicks, s.id
		c := proto.Clone(p.command).(*protos.RegistryCommand)
		c.Session, c.Sequence, c.Below = s.id, ticket, tickets[0]
		m.propose(c)
	}
}

// open proposes to open a session.
func (s *session) open(m *Member) {
	if s.nonce != 0 && m.now < s.due {
		return
	}
	if s.nonce == 0 {
		s.nonce = m.newID()
	}
	s.due = m.now + m.config.RetryTicks
	process := &protos.RegistryProcess{Name: m.config.Name, Incarnation: m.config.Incarnation}
	m.propose(&protos.RegistryCommand{Kind: &protos.RegistryCommand_Open{
		Open: &protos.OpenSession{Process: process, Nonce: s.nonce},
	}})
}

// finishEntry takes the result of an entry, if it is that of this member's session.
func (s *session) finishEntry(m *Member, c *protos.RegistryCommand, r *protos.RegistryResult) {
	if open := c.GetOpen(); open != nil {
		if open.GetNonce() == s.nonce && s.nonce != 0 && open.GetProcess().GetName() == m.config.Name {
			s.adopt(m, r)
		}
		return
	}
	if c.Session == 0 || c.Session != s.id {
		return
	}
	switch {
	case r.Code == protos.RegistryResult_NO_SESSION && m.state.sessions[s.id] != nil:
		return // a late copy of a command whose result is known
	case r.Code == protos.RegistryResult_NO_SESSION:
		// No copy of a pending command was applied in this session, or the member would have applied
		// it too. So the next session may have the pending commands.
		s.id = 0
		s.retry(m)
		return
	}
	s.finish(m, c.Sequence, r)
}

func (s *session) adopt(m *Member, r *protos.RegistryResult) {
	s.nonce = 0
	if r.Code == protos.RegistryResult_DONE {
		s.id = r.Index
		s.retry(m)
		return
	}
	m.logf("a later incarnation of this process is in the registry")
	s.abandon(m, func(*pending) bool { return true })
}

func (s *session) finish(m *Member, ticket uint64, r *protos.RegistryResult) {
	if s.pending[ticket] != nil {
		delete(s.pending, ticket)
		m.ready.Results = append(m.ready.Results, Outcome{ticket, r})
	}
}

// finishRestored takes the results of commands whose entries a snapshot has replaced.
func (s *session) finishRestored(m *Member) {
	if s.id == 0 {
		return
	}
	known := m.state.sessions[s.id]
	if known == nil {
		s.id = 0
		s.abandon(m, func(p *pending) bool { return p.session != 0 })
		return
	}
	for _, ticket := range slices.Sorted(maps.Keys(s.pending)) {
		if r := known.Results[ticket]; r != nil {
			s.finish(m, ticket, r)
		}
	}
}

// abandon ends pending commands without a result.
func (s *session) abandon(m *Member, affected func(*pending) bool) {
	for _, ticket := range slices.Sorted(maps.Keys(s.pending)) {
		if affected(s.pending[ticket]) {
			s.finish(m, ticket, result(protos.RegistryResult_NO_SESSION))
		}
	}
}
