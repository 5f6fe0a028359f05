package registry

import (
	"cmp"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

const (
	// maxVoters is the largest number of voters.
	maxVoters = 5
	// minVoters is the number of voters below which the leader removes no silent voter: a registry
	// with a single voter would end with it.
	minVoters = 3
)

// maxLag is the largest number of entries that a member may lack when it gets a vote.
const maxLag = 16

// Status is a member's view of the registry.
type Status struct {
	// Cluster is the random number of the registry; 0 before the member has joined.
	Cluster uint64
	// Leader is the leader's process; empty if no leader is known. Without a leader, commands and
	// reads get no answer.
	Leader string
	// Leads and Votes are true if this member is the leader or a voter, Listed if it is a member of
	// the group. Left is true if the group has recorded that it leaves.
	Leads, Votes, Listed, Left bool
	// Changing is true during a change of the voters, which needs a majority of the old and of the new
	// voters.
	Changing bool
	// Voters and Learners are the members' processes, in the order of joining.
	Voters, Learners []string
	// Silent are the voters whose messages a leader has missed for two election timeouts; empty in a
	// member that does not lead.
	Silent []string
	// InMemory are the processes that cannot write their log files, so that their members keep
	// their logs in memory.
	InMemory []string
	// Term is raft's term, Applied the index of the last applied entry.
	Term, Applied uint64
	// Other is a process that recently sent a frame of an unrelated registry; empty without one.
	// Neither registry supersedes the other.
	Other string
	// Err is the reason why the member has stopped; nil if it has not.
	Err error
}

// Status returns the member's view of the registry.
func (m *Member) Status() Status {
	b := m.node.BasicStatus()
	s := Status{Cluster: m.state.cluster, Term: b.GetTerm(), Applied: m.applied, Err: m.failed}
	s.Leads = b.RaftState == raft.StateLeader && m.failed == nil
	if m.failed == nil {
		s.Leader = cmp.Or(m.state.members[b.Lead].GetName(), m.names[b.Lead])
	}
	if m.other != "" && m.now-m.otherHeard < 3*m.config.ReplaceTicks {
		s.Other = m.other
	}
	s.Changing = len(m.conf.GetVotersOutgoing()) > 0
	self, listed := m.state.members[m.id]
	s.Listed, s.Left = listed, self.GetLeft()
	s.Votes = slices.Contains(m.conf.GetVoters(), m.id) || slices.Contains(m.conf.GetVotersOutgoing(), m.id)
	for _, v := range m.byJoining() {
		if v.Volatile {
			s.InMemory = append(s.InMemory, v.Name)
		}
		if !slices.Contains(m.conf.GetVoters(), v.Id) {
			s.Learners = append(s.Learners, v.Name)
			continue
		}
		s.Voters = append(s.Voters, v.Name)
		if s.Leads && m.silent(v.Id, 2*m.config.ElectionTicks) {
			s.Silent = append(s.Silent, v.Name)
		}
	}
	return s
}

// byJoining returns the members in the order of joining.
func (m *Member) byJoining() []*protos.RegistryMember {
	all := m.state.Members()
	slices.SortStableFunc(all, func(a, b *protos.RegistryMember) int { return cmp.Compare(a.Joined, b.Joined) })
	return all
}

// silent reports whether this leader has received no message from another member for some ticks.
func (m *Member) silent(id uint64, ticks int) bool {
	return id != m.id && m.lastHeard != nil && m.now-m.lastHeard[id] >= ticks
}

// manage is the leader's upkeep of the group: it admits members, and grants and revokes votes.
func (m *Member) manage() {
	if m.lastHeard == nil {
		m.lastHeard = map[uint64]int{}
		for id := range m.state.members {
			m.lastHeard[id] = m.now
		}
	}
	m.resendSnapshots()
	m.announce()
	if m.lastChange > 0 && m.now-m.lastChange < m.config.RetryTicks {
		return
	}
	if len(m.conf.GetVotersOutgoing()) > 0 {
		m.leaveJoint()
		return
	}
	for _, id := range slices.Sorted(maps.Keys(m.joins)) {
		added := m.joins[id]
		delete(m.joins, id)
		if m.state.members[id] == nil {
			m.proposeChange([]*raftpb.ConfChangeSingle{singleChange(raftpb.ConfChangeAddLearnerNode, id)}, added)
			return
		}
	}
	if changes := m.voterChanges(); len(changes) > 0 {
		m.proposeChange(changes)
	}
}

func singleChange(t raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: &t, NodeId: &id}
}

// proposeChange proposes a membership change. Its context names the added members.
func (m *Member) proposeChange(changes []*raftpb.ConfChangeSingle, added ...*protos.RegistryMember) {
	m.lastChange = m.now
	c := &raftpb.ConfChangeV2{Changes: changes}
	if len(changes) > 1 {
		c.Transition = raftpb.ConfChangeTransitionJointExplicit.Enum()
	}
	var err error
	if len(added) > 0 {
		c.Context, err = proto.Marshal(&protos.RegistryMembers{Members: added})
	}
	if err == nil {
		err = m.node.ProposeConfChange(c)
	}
	if err != nil {
		m.logf("a membership change cannot be proposed: %v", err)
	}
}

// leaveJoint completes a change of the voters. A leader that is not a new voter first transfers its
// leadership.
func (m *Member) leaveJoint() {
	if slices.Contains(m.conf.GetVoters(), m.id) {
		m.proposeChange(nil)
		return
	}
	if best := m.mostComplete(m.conf.GetVoters()); best != 0 {
		m.lastChange = m.now
		m.node.TransferLeader(best)
	}
}

// mostComplete returns the member that has most of the log, among the other members in ids that are
// not silent; 0 if there is none.
func (m *Member) mostComplete(ids []uint64) (best uint64) {
	match := uint64(0)
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		heard := !m.silent(id, m.config.ElectionTicks)
		if id != m.id && heard && slices.Contains(ids, id) && (best == 0 || p.Match > match) {
			best, match = id, p.Match
		}
	})
	return best
}

// applyChange applies a committed membership change. It applies no part of an unreadable change.
func (m *Member) applyChange(data []byte) error {
	var c raftpb.ConfChangeV2
	var added protos.RegistryMembers
	if err := proto.Unmarshal(data, &c); err != nil {
		return err
	}
	if err := proto.Unmarshal(c.GetContext(), &added); err != nil {
		return err
	}
	m.conf, m.lastChange = m.node.ApplyConfChange(&c), 0
	for _, v := range added.Members {
		v.Joined = m.applied
		m.state.members[v.Id] = v
		if m.lastHeard != nil {
			m.lastHeard[v.Id] = m.now
		}
	}
	// A removed member votes until the change is complete, so its name must be known until then.
	in := slices.Concat(m.conf.GetVoters(), m.conf.GetVotersOutgoing(), m.conf.GetLearners(), m.conf.GetLearnersNext())
	maps.DeleteFunc(m.state.members, func(id uint64, _ *protos.RegistryMember) bool { return !slices.Contains(in, id) })
	return nil
}

// voterChanges returns the changes that lead to the desired voters: an odd number, at most
// maxVoters. Active voters keep their votes. Free votes go to active learners that have the log,
// in the order of joining, then to silent voters, and last to departed voters. Five voters become
// three if one or two are silent and there are no other candidates. Fewer than half of the voters
// are volatile, and none is while there are durable candidates. A departed voter first becomes a
// learner, so that it learns of the change, and is removed once it is silent.
func (m *Member) voterChanges() (changes []*raftpb.ConfChangeSingle) {
	members := m.byJoining()
	latest := m.latestMembers(members)
	// A member has departed if it leaves, or if its process lost its log and joined anew.
	departed := func(v *protos.RegistryMember) bool { return v.Left || latest[v.Name] != v.Id }
	processes, active, durable := 0, 0, 0
	var candidates []*protos.RegistryMember
	ranks := map[uint64]int{}
	for _, v := range members {
		if !departed(v) {
			processes++
		}
		if ranks[v.Id] = m.rank(v, departed(v)); ranks[v.Id] > 0 {
			candidates = append(candidates, v)
		}
		if r := ranks[v.Id]; r > 0 && r < rankSilent {
			active++
		}
		if r := ranks[v.Id]; r > 0 && r < rankDeparted && !v.Volatile {
			durable++
		}
	}
	slices.SortStableFunc(candidates, func(a, b *protos.RegistryMember) int {
		return cmp.Compare(ranks[a.Id], ranks[b.Id])
	})
	n := largestOdd(min(len(candidates), max(1, processes), maxVoters))
	n = min(n, max(minVoters, largestOdd(active)), max(1, largestOdd(2*durable-1)))
	candidates = preferDurable(candidates, (n-1)/2)
	if 2*m.countActive(candidates[:n]) <= n {
		return nil // the new voters could not complete the change
	}
	for i, v := range candidates {
		votes := slices.Contains(m.conf.GetVoters(), v.Id)
		switch {
		case i < n && !votes:
			changes = append(changes, singleChange(raftpb.ConfChangeAddNode, v.Id))
		case i >= n && votes:
			changes = append(changes, singleChange(raftpb.ConfChangeAddLearnerNode, v.Id))
		}
	}
	for _, v := range members {
		votes := slices.Contains(m.conf.GetVoters(), v.Id)
		if !votes && departed(v) && m.silent(v.Id, m.config.ReplaceTicks) {
			changes = append(changes, singleChange(raftpb.ConfChangeRemoveNode, v.Id))
		}
	}
	return changes
}

// preferDurable leaves the first few volatile candidates in place, and moves the others to the
// end.
func preferDurable(candidates []*protos.RegistryMember, few int) []*protos.RegistryMember {
	var first, last []*protos.RegistryMember
	for _, v := range candidates {
		if v.Volatile && few == 0 {
			last = append(last, v)
			continue
		}
		if first = append(first, v); v.Volatile {
			few--
		}
	}
	return append(first, last...)
}

// latestMembers returns the id of each process's current member, given all members in the order of
// joining. The current member is the last that joined, unless that member is silent and an earlier
// one is not: a delayed request to join may come from a member that its process has replaced.
func (m *Member) latestMembers(members []*protos.RegistryMember) map[string]uint64 {
	latest := map[string]uint64{}
	for _, v := range members {
		former, known := latest[v.Name]
		if !known || !m.silent(v.Id, m.config.ReplaceTicks) || m.silent(former, m.config.ReplaceTicks) {
			latest[v.Name] = v.Id
		}
	}
	return latest
}

// countActive returns how many of the members have answered the leader recently.
func (m *Member) countActive(members []*protos.RegistryMember) (n int) {
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		chosen := slices.ContainsFunc(members, func(v *protos.RegistryMember) bool { return v.Id == id })
		if chosen && (p.RecentActive || id == m.id) {
			n++
		}
	})
	return n
}

// largestOdd returns the largest odd number up to n, or 0 for 0.
func largestOdd(n int) int { return max(0, (n-1)|1) }

// Ranks of candidates for votes, the best first.
const (
	rankVoter           = iota + 1 // a voter
	rankLearner                    // a learner that has the log
	rankVolatileVoter              // a volatile voter
	rankVolatileLearner            // a volatile learner that has the log
	rankSilent                     // a silent voter
	rankDeparted                   // a departed voter
)

// rank returns a member's rank among the candidates for votes; 0 if it is not a candidate.
func (m *Member) rank(v *protos.RegistryMember, departed bool) int {
	votes := slices.Contains(m.conf.GetVoters(), v.Id)
	switch {
	case votes && departed:
		return rankDeparted
	case votes && m.silent(v.Id, m.config.ReplaceTicks):
		return rankSilent
	case votes && v.Volatile:
		return rankVolatileVoter
	case votes:
		return rankVoter
	case !departed && !m.silent(v.Id, m.config.ElectionTicks) && m.caughtUp(v.Id):
		if v.Volatile {
			return rankVolatileLearner
		}
		return rankLearner
	}
	return 0
}

// caughtUp reports whether a member has the log but for the last maxLag entries.
func (m *Member) caughtUp(id uint64) (is bool) {
	m.node.WithProgress(func(other uint64, _ raft.ProgressType, p tracker.Progress) {
		is = is || other == id && p.State == tracker.StateReplicate && p.Match+maxLag >= m.applied
	})
	return is
}

// resendSnapshots makes raft send a snapshot again if its receiver has not confirmed it in time.
func (m *Member) resendSnapshots() {
	m.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		sent, known := m.snapshotSent[id]
		switch {
		case p.State != tracker.StateSnapshot:
			delete(m.snapshotSent, id)
		case !known:
			m.snapshotSent[id] = m.now
		case m.now-sent >= 2*m.config.ElectionTicks:
			delete(m.snapshotSent, id)
			m.node.ReportSnapshot(id, raft.SnapshotFailure)
		}
	})
}
