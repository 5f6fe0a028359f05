package registry

import (
	"math/rand/v2"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// timer is a member's election timer. It replaces raft's, whose random numbers come from
// crypto/rand and would make histories differ. raft's clock therefore ticks only in a leader, where
// it sends heartbeats and checks the quorum without random numbers.
//
// After Config.ElectionTicks of silence the timer makes the follower forget its leader. Until then
// the follower votes for no other member: it knows a leader, and raft's own clock, which stands
// still, never shows that the leader is silent. A leader that hears from no quorum for
// Config.ElectionTicks steps down. After a random time between one and two timeouts of silence the
// timer makes the follower campaign.
type timer struct {
	timeout int
	random  *rand.Rand
	silent  int // ticks since the leader's last message, the member's last vote or campaign
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
	return node.Campaign() // no effect in a learner
}

// observe resets the timer if the message that raft has just handled calls for it. The statuses
// are raft's before and after the message.
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
