package registry

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// fromOther reports whether the sender of a frame can be another member.
func (m *Member) fromOther(f *protos.RegistryFrame) bool {
	from := f.GetFrom()
	return from != raft.None && from != m.id && !raft.IsLocalMsgTarget(from) &&
		validLineage(f.GetSuperseded(), f.GetCluster())
}

// acceptable reports whether members send each other messages like this one. Raft panics at some of
// the others. A proposal or read that a member forwards has no term; every other message has one.
// Only the leader proposes membership changes, so no message may carry such a proposal.
func acceptable(f *protos.RegistryFrame, m *raftpb.Message) bool {
	if raft.IsLocalMsgTarget(m.GetFrom()) {
		return false
	}
	switch m.GetType() {
	case raftpb.MsgProp:
		return m.GetTerm() == 0 && len(m.GetEntries()) > 0 && !slices.ContainsFunc(m.GetEntries(), isForeign)
	case raftpb.MsgReadIndex:
		return m.GetTerm() == 0 && len(m.GetEntries()) == 1
	}
	if m.GetFrom() != f.GetFrom() || m.GetTerm() == 0 {
		return false
	}
	switch m.GetType() {
	case raftpb.MsgReadIndexResp:
		return len(m.GetEntries()) == 1
	case raftpb.MsgSnap:
		s := m.GetSnapshot()
		state, err := restoreState(s.GetData())
		return err == nil && state.cluster == f.GetCluster() && s.GetMetadata().GetConfState() != nil
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgHeartbeat,
		raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow, raftpb.MsgPreVote, raftpb.MsgPreVoteResp:
		return true
	}
	return false
}

// isForeign reports whether no member would forward a proposal of an entry: it is not a command.
func isForeign(e *raftpb.Entry) bool {
	return e.GetType() != raftpb.EntryNormal || proto.Unmarshal(e.GetData(), &protos.RegistryCommand{}) != nil
}
