package registry

import (
	"math/rand/v2"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// timer is a member's election timer. raft's own takes its random numbers from crypto/rand, so raft
// never ticks unless the member leads: a leader's ticks send heartbeats and check the quorum, and
// involve no random number. For a follower the timer does both things that raft's would do.
//
// After Config.ElectionTicks of silence the follower forgets its leader: from then on it grants
// votes to others. raft's follower refuses them while it has a leader and its own clock, which
// stands still here, shows less than the election timeout. A leader that hears from no quorum for
// as long steps down. After a random time between one and two timeouts the follower campaigns.
type timer struct {
	timeout int
	random  *rand.Rand
	silent  int // ticks since the leader was heard, a vote was given, or a campaign began
	due     int // ticks of silence after which the member campaigns
}

func newTimer(timeout int, seed uint64) *timer {
	t := &timer{timeout: timeout, random: rand.New(rand.NewPCG(seed, 0x7265676973747279))}
	t.restart()
	return t
}

func (t *timer) restart() { t.silent, t.due = 0, t.timeout+t.random.IntN(t.timeout) }

// tick advances the time of a member that does not lead.
func (t *timer) tick(node *raft.RawNode) error {
	t.silent++
	if t.silent == t.timeout {
		if err := node.ForgetLeader(); err != nil {
			return err
		}
	}
	if t.silent < t.due {
		return nil
	}
	t.restart()
	return node.Campaign() // learners do not, in raft
}

// observe takes note of a message that raft has handled; before is the status it had then.
func (t *timer) observe(m *raftpb.Message, before, after raft.BasicStatus) {
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat, raftpb.MsgSnap:
		if after.Lead == m.GetFrom() && after.GetTerm() == m.GetTerm() {
			t.silent = 0
		}
	case raftpb.MsgVote:
		if after.GetVote() == m.GetFrom() && after.GetTerm() == m.GetTerm() {
			t.restart()
		}
	default:
		if before.RaftState != after.RaftState {
			t.restart()
		}
	}
}
