package registry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// ErrUnsettled says that the voters may still elect a leader, so a recovery must wait.
var ErrUnsettled = errors.New("try again in a few seconds")

const (
	// recoveryGap is the distance between the last entry of a superseded log and the first index
	// of the new one. The old quorum may have committed entries that the new log lacks. The claims
	// and sessions of those entries have smaller indices than any that the new log grants.
	recoveryGap = 1 << 32
	// maxUnproven bounds the entries that a recovery lists.
	maxUnproven = 1000
	// settleTimeouts is the number of election timeouts that must pass without a leader before a
	// recovery.
	settleTimeouts = 3
)

// Recover starts a new registry whose only member is this one, under a new id. It keeps all
// entries in the log, including those that may not have been committed: dropping a committed one
// would undo an acknowledged command. The new registry supersedes the present one. already is true
// if an earlier recovery from this process started the present registry, and it has a leader.
//
// Recover refuses if the registry has a leader or could elect one, or if another process is known
// to have a longer log.
func (m *Member) Recover() (r *protos.RegistryRecovery, already bool, err error) {
	if all := m.state.recoveries; len(all) > 0 && m.failed == nil {
		latest := all[len(all)-1]
		if latest.Process == m.config.Name && (m.onlyVoter() || m.node.BasicStatus().Lead != raft.None) {
			return proto.Clone(latest).(*protos.RegistryRecovery), true, nil
		}
	}
	if err := m.checkRecoverable(); err != nil {
		return nil, false, err
	}
	saved, kept, err := m.recovered()
	if err != nil {
		return nil, false, err
	}
	if err := m.replaceLog(saved, m.state.cluster); err != nil {
		m.stop(err)
		return nil, false, err
	}
	r = m.state.recoveries[len(m.state.recoveries)-1]
	m.logf("registry %x, which this process starts from entry %d, supersedes registry %x",
		r.Cluster, r.Last, r.Superseded)
	for _, k := range kept {
		m.session.finishEntry(m, k.command, k.result)
	}
	m.session.retry(m)
	return proto.Clone(r).(*protos.RegistryRecovery), false, nil
}

// checkRecoverable returns an error if the registry may have a quorum, or if this member must not
// start another.
func (m *Member) checkRecoverable() error {
	status := m.Status()
	heard, voters := m.heardVoters()
	switch {
	case m.failed != nil:
		return fmt.Errorf("this process takes no part in the registry: %w", m.failed)
	case m.state.cluster == 0:
		return errors.New("this process has no copy of the registry")
	case status.Leader != "":
		return fmt.Errorf("the registry has a quorum: %s leads it", status.Leader)
	case m.now-m.led < settleTimeouts*m.config.ElectionTicks:
		return fmt.Errorf("the voters may be electing a leader; %w", ErrUnsettled)
	case voters:
		return fmt.Errorf("a majority of the voters is reachable (%s) and may elect a leader; %w",
			strings.Join(heard, ", "), ErrUnsettled)
	}
	for _, v := range m.byJoining() {
		if h := m.heard[v.Id]; m.isRecent(h) && m.isLonger(h) {
			return fmt.Errorf("process %[1]s has entries that this process lacks: recover from %[1]s, or stop it first",
				v.Name)
		}
	}
	return nil
}

// heardFrame describes the latest frame of a member.
type heardFrame struct {
	at          int    // tick of its arrival
	term, index uint64 // last entry in the member's log
}

// isRecent reports whether a frame arrived recently. A member without a leader sends a request to
// join every ElectionTicks.
func (m *Member) isRecent(h heardFrame) bool {
	return h.at > 0 && m.now-h.at < settleTimeouts*m.config.ElectionTicks
}

// isLonger reports whether a log that ends in the entry of a frame is longer than this member's.
func (m *Member) isLonger(h heardFrame) bool {
	term, index := m.lastEntry()
	return h.term > term || h.term == term && h.index > index
}

// lastEntry returns the term and index of the last entry in the log.
func (m *Member) lastEntry() (term, index uint64) {
	index = m.lastIndex()
	term, err := m.log.Term(index)
	if err != nil {
		return 0, 0
	}
	return term, index
}

// noteHeard records a frame of another member.
func (m *Member) noteHeard(f *protos.RegistryFrame) {
	if m.state.members[f.GetFrom()] == nil {
		return
	}
	h := m.heard[f.GetFrom()]
	h.at = m.now
	if f.GetTo() == 0 {
		h.term, h.index = f.GetLastTerm(), f.GetLastIndex()
	}
	m.heard[f.GetFrom()] = h
}

// heardVoters returns the processes of the reachable voters, including this one, and reports
// whether they are a majority.
func (m *Member) heardVoters() (names []string, majority bool) {
	reachable := func(id uint64) bool { return id == m.id || m.isRecent(m.heard[id]) }
	most := func(voters []uint64) bool {
		n := 0
		for _, id := range voters {
			if reachable(id) {
				n++
			}
		}
		return len(voters) == 0 || 2*n > len(voters)
	}
	for _, v := range m.byJoining() {
		if slices.Contains(m.conf.GetVoters(), v.Id) && reachable(v.Id) {
			names = append(names, v.Name)
		}
	}
	return names, most(m.conf.GetVoters()) && most(m.conf.GetVotersOutgoing())
}

// keptCommand is the command of an unproven entry, and its result.
type keptCommand struct {
	command *protos.RegistryCommand
	result  *protos.RegistryResult
}

// recovered returns the log of the new registry, and the commands of the entries that this member
// has not applied.
func (m *Member) recovered() (*Saved, []keptCommand, error) {
	s, err := m.state.clone()
	if err != nil {
		return nil, nil, err
	}
	last := m.lastIndex()
	r := &protos.RegistryRecovery{Superseded: s.cluster, Cluster: m.newID(), Process: m.config.Name, Last: last,
		Announced: m.announcedCommit}
	for _, v := range m.byJoining() {
		if v.Name != m.config.Name && !slices.Contains(r.Dropped, v.Name) {
			r.Dropped = append(r.Dropped, v.Name)
		}
	}
	kept, err := m.applyTail(s, r)
	if err != nil {
		return nil, nil, err
	}
	for _, earlier := range s.recoveries {
		earlier.Unproven, earlier.Unlisted, earlier.Dropped = nil, 0, nil
	}
	index, term := last+recoveryGap, m.node.BasicStatus().GetTerm()+1
	id := m.newID()
	s.cluster, s.recoveries = r.Cluster, append(s.recoveries, r)
	s.members = map[uint64]*protos.RegistryMember{id: {Id: id, Name: m.config.Name, Joined: index}}
	data, err := s.snapshot()
	return &Saved{
		Identity: &protos.RegistryIdentity{Name: m.config.Name, Id: id},
		Hard:     &raftpb.HardState{Term: &term, Vote: new(uint64(0)), Commit: &index},
		Snapshot: &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
			Index: &index, Term: &term, ConfState: &raftpb.ConfState{Voters: []uint64{id}},
		}},
	}, kept, err
}

// applyTail applies to a state the entries that this member has not applied, and lists them. It
// skips membership changes, because the new registry has members of its own.
func (m *Member) applyTail(s *State, r *protos.RegistryRecovery) (kept []keptCommand, err error) {
	if r.Last == m.applied {
		return nil, nil
	}
	entries, err := m.log.Entries(m.applied+1, r.Last+1, math.MaxUint64)
	if err != nil {
		return nil, fmt.Errorf("cannot read the end of the registry's log: %w", err)
	}
	for _, e := range entries {
		var c protos.RegistryCommand
		if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 || proto.Unmarshal(e.GetData(), &c) != nil {
			continue
		}
		text := describe(s, &c)
		kept = append(kept, keptCommand{&c, s.apply(e.GetIndex(), &c)})
		if len(r.Unproven) == maxUnproven {
			r.Unlisted++
			continue
		}
		r.Unproven = append(r.Unproven, &protos.RegistryUnproven{Index: e.GetIndex(), Command: text})
	}
	return kept, nil
}

// describe returns the text of a command, such as "claim name (name x, token 5) by b".
func describe(s *State, c *protos.RegistryCommand) string {
	message := c.ProtoReflect()
	kind := message.WhichOneof(message.Descriptor().Oneofs().ByName("kind"))
	if kind == nil {
		return "a command of an unknown kind"
	}
	text := strings.ReplaceAll(string(kind.Name()), "_", " ")
	if kind.Message() == nil {
		return text + fmt.Sprintf(" (member %x)", message.Get(kind).Uint())
	}
	var values []string
	inner := message.Get(kind).Message()
	fields := inner.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if inner.Has(f) && f.Message() == nil && f.Kind().String() != "bytes" && !f.IsList() {
			values = append(values, fmt.Sprintf("%s %v", f.Name(), inner.Get(f)))
		}
	}
	if len(values) > 0 {
		text += " (" + strings.Join(values, ", ") + ")"
	}
	by := s.sessions[c.Session].GetProcess().GetName()
	if by == "" {
		by = c.GetOpen().GetProcess().GetName()
	}
	if gone := c.GetReleaseProcess().GetProcess(); gone != nil {
		text += " of " + gone.Name
	}
	if by != "" {
		text += " by " + by
	}
	return text
}
