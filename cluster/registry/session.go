package registry

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// session is the client side of a member's session. It numbers commands and repeats each until the
// member has applied the command's entry.
type session struct {
	id      uint64              // 0 while no session is open
	nonce   uint64              // nonce of the pending command that opens a session; 0 without one
	refused bool                // the registry knows a later incarnation
	due     int                 // tick at which the command that opens a session is repeated
	last    uint64              // latest ticket
	pending map[uint64]*pending // commands without a result, by ticket
}

// pending is a command without a result.
type pending struct {
	command *protos.RegistryCommand
	session uint64 // session of the latest proposal; 0 before the first
	due     int    // tick at which the command is proposed again
}

// Submit proposes a command and repeats it until its result is known. Ready returns the result with
// the ticket. The command's session and sequence are set here.
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

// Cancel stops repeating a command. A command that was proposed may still have its effect.
func (m *Member) Cancel(ticket uint64) { delete(m.session.pending, ticket) }

// retry proposes the commands that are due.
func (s *session) retry(m *Member) {
	_, listed := m.state.members[m.id]
	switch {
	case m.failed != nil || len(s.pending) == 0 && (s.id != 0 || s.refused || !listed):
		return
	case s.id == 0: // even without a command, to end the claims of earlier incarnations at once
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

// open proposes the command that opens a session.
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

// finishEntry finishes the pending command of an applied entry, if the entry belongs to this
// session.
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
		return // a late duplicate of a finished command
	case r.Code == protos.RegistryResult_NO_SESSION:
		// The session has ended. The member has applied every earlier entry, so it would have finished
		// a command that had its effect. The pending commands may be repeated in another session.
		s.id = 0
		s.retry(m)
		return
	}
	s.finish(m, c.Sequence, r)
}

// adopt uses the session that a command of this member has opened, or ends all commands if the
// registry refused it.
func (s *session) adopt(m *Member, r *protos.RegistryResult) {
	s.nonce = 0
	if r.Code == protos.RegistryResult_DONE {
		s.id = r.Index
		s.retry(m)
		return
	}
	s.refused = true
	m.logf("the registry refuses commands of this process: it knows a later incarnation")
	s.abandon(m, func(*pending) bool { return true })
}

func (s *session) finish(m *Member, ticket uint64, r *protos.RegistryResult) {
	if s.pending[ticket] != nil {
		delete(s.pending, ticket)
		m.ready.Results = append(m.ready.Results, Outcome{ticket, r})
	}
}

// finishRestored finishes commands by their results in a snapshot, which replaced their entries.
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

// restart forgets the session when the member joins another registry, where the session's id may
// belong to another process.
func (s *session) restart(m *Member) {
	s.id, s.nonce = 0, 0
	s.abandon(m, func(p *pending) bool { return p.session != 0 })
}

// abandon finishes pending commands with NO_SESSION, because their effects cannot be known.
func (s *session) abandon(m *Member, affected func(*pending) bool) {
	for _, ticket := range slices.Sorted(maps.Keys(s.pending)) {
		if affected(s.pending[ticket]) {
			s.finish(m, ticket, result(protos.RegistryResult_NO_SESSION))
		}
	}
}
