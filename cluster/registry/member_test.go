package registry_test

import (
	"slices"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// TestPlantedFaultsAreFound shows that the checks of TestFaults can fail.
func TestPlantedFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("tries many seeds, on one goroutine")
	}
	for name, p := range map[string]plant{
		"a vote is forgotten":                 {forgetsVotes: true},
		"entries are not durable":             {lies: 1},
		"acknowledged before it is committed": {early: true},
	} {
		t.Run(name, func(t *testing.T) {
			from := uint64(1)
			if p.forgetsVotes {
				from = 330 // a seed with two candidates and a restart of a voter between them is rare
			}
			for seed := from; seed <= 5000; seed++ {
				faults := schedule(seed, processesOf(seed))
				if p.forgetsVotes {
					faults = draw(seed, processesOf(seed), 200, []string{"restart", "restart", "loss", "lose"})
				}
				if wrong, _ := play(seed, faults, p); wrong != "" {
					t.Logf("seed %d: %.300s", seed, wrong)
					return
				}
			}
			t.Error("no seed finds it")
		})
	}
}

// TestEqualSeedsHaveEqualHistories compares all messages and results of two runs.
func TestEqualSeedsHaveEqualHistories(t *testing.T) {
	distinct := map[uint64]bool{}
	for seed := uint64(1); seed <= 16; seed++ {
		var digests []uint64
		for range 2 {
			_, w := play(seed, schedule(seed, processesOf(seed)), plant{})
			digests = append(digests, w.trace.Sum64())
		}
		if digests[0] != digests[1] {
			t.Errorf("seed %d: two runs differ", seed)
		}
		distinct[digests[0]] = true
	}
	if len(distinct) < 16 {
		t.Errorf("16 seeds have %d histories", len(distinct))
	}
}

// cluster starts processes one after the other and waits until they agree.
func cluster(t *testing.T, processes int) *world {
	t.Helper()
	w := newWorld(7, processes, plant{})
	for _, p := range w.processes {
		w.start(p)
		w.run(40 * tick) // until it has joined, so that the order is fixed
	}
	w.await()
	if !w.agree() {
		t.Fatalf("no agreement: %s", w.describe())
	}
	return w
}

func wantVoters(t *testing.T, w *world, want ...string) {
	t.Helper()
	if got := w.view().Voters; !slices.Equal(got, want) {
		t.Fatalf("voters %v, want %v: %s", got, want, w.describe())
	}
}

func TestVoters(t *testing.T) {
	t.Run("one of two processes, the first", func(t *testing.T) { wantVoters(t, cluster(t, 2), "a") })
	t.Run("three of four, the first", func(t *testing.T) { wantVoters(t, cluster(t, 4), "a", "b", "c") })
	t.Run("five of seven, the first", func(t *testing.T) { wantVoters(t, cluster(t, 7), "a", "b", "c", "d", "e") })
	t.Run("a silent voter is replaced, and stays a learner", func(t *testing.T) {
		w := cluster(t, 4)
		w.crash(w.processes[1])
		w.run(100 * tick)
		wantVoters(t, w, "a", "c", "d")
		w.start(w.processes[1])
		w.run(100 * tick)
		wantVoters(t, w, "a", "c", "d")
	})
	t.Run("a silent voter of three keeps its vote", func(t *testing.T) {
		w := cluster(t, 3)
		w.crash(w.processes[1])
		w.run(200 * tick)
		wantVoters(t, w, "a", "b", "c")
	})
	t.Run("one that leaves hands its vote over", func(t *testing.T) {
		for leaver := range 4 {
			w := cluster(t, 4)
			p := w.processes[leaver]
			p.member.Leave()
			w.run(30 * tick)
			if s := p.member.Status(); s.Votes || s.Leads {
				t.Fatalf("%s has left: %s", p.name, w.describe())
			}
			w.crash(p)
			w.run(30 * tick)
			if v := w.view().Voters; len(v) != 3 || slices.Contains(v, p.name) {
				t.Errorf("voters %v after %s has left", v, p.name)
			}
		}
	})
	t.Run("the vote of one of two goes to the other", func(t *testing.T) {
		w := cluster(t, 2)
		w.processes[0].member.Leave()
		w.run(30 * tick)
		w.crash(w.processes[0])
		w.run(30 * tick)
		wantVoters(t, w, "b")
	})
}

// TestVotersThatFail crashes voters, or makes their disks fail, one after the other.
func TestVotersThatFail(t *testing.T) {
	t.Run("five of which two fall silent become three, and five again", func(t *testing.T) {
		w := cluster(t, 5)
		w.crash(w.processes[0])
		w.crash(w.processes[3])
		w.run(100 * tick)
		wantVoters(t, w, "b", "c", "e")
		w.crash(w.processes[1]) // two of three are left
		w.run(100 * tick)
		if s := w.processes[2].member.Status(); s.Leader == "" {
			t.Errorf("without a leader: %s", w.describe())
		}
		for _, p := range []*process{w.processes[0], w.processes[1], w.processes[3]} {
			w.start(p)
		}
		w.run(200 * tick)
		wantVoters(t, w, "a", "b", "c", "d", "e")
	})
	t.Run("fewer than half have their logs in memory", func(t *testing.T) {
		w := cluster(t, 4)
		for i, want := range [][]string{{"a", "c", "d"}, {"a", "d", "b"}, {"a"}} {
			p := w.processes[i+1]
			p.disk.fault = failedOld
			w.run(1) // so that they fail one after the other
			for p.member.Err() == nil {
				actor := &protos.PutActor{Name: "p", Spec: []byte{0, 0}}
				w.submit(p, &call{kind: put, key: "actor:p"}, &protos.RegistryCommand{
					Kind: &protos.RegistryCommand_PutActor{PutActor: actor}})
				w.run(tick)
			}
			w.useMemory(p)
			w.run(100 * tick)
			wantVoters(t, w, want...)
		}
	})
}

// TestALostLogIsANewMember restarts a voter whose log is missing or damaged.
func TestALostLogIsANewMember(t *testing.T) {
	for name, lose := range map[string]func(d *disk){
		"missing": func(d *disk) { d.saved = nil },
		"damaged": func(d *disk) { d.damaged = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := cluster(t, 3)
			p := w.processes[0]
			before := p.member.ID()
			w.crash(p)
			lose(p.disk)
			w.start(p)
			if s := p.member.Status(); p.member.ID() == before || s.Votes || s.Applied > 0 {
				t.Fatalf("the process is member %x again, or votes: %+v", before, s)
			}
			w.await()
			wantVoters(t, w, "b", "c", "a")
			if len(w.view().Learners) > 0 {
				t.Errorf("the former member is still there: %s", w.describe())
			}
		})
	}
}

// TestAMemberWhoseDiskFailsStops makes the leader's disk fail at a command.
func TestAMemberWhoseDiskFailsStops(t *testing.T) {
	w := cluster(t, 3)
	leader := w.processes[slices.IndexFunc(w.processes, func(p *process) bool { return p.member.Status().Leads })]
	leader.disk.fault = failedNew
	w.submit(leader, &call{kind: put, key: "actor:p", token: 5}, &protos.RegistryCommand{
		Kind: &protos.RegistryCommand_PutActor{PutActor: &protos.PutActor{Name: "p", Spec: []byte{0, 5}}}})
	if s := leader.member.Status(); s.Err == nil || s.Leads || s.Leader != "" {
		t.Fatalf("the member goes on: %+v", s)
	}
	term := w.view().Term
	w.run(60 * tick)
	if s := w.view(); s.Leader == "" || s.Leader == leader.name || s.Term <= term {
		t.Errorf("no other leader: %s", w.describe())
	}
	if r := leader.member.Ready(); len(r.Messages) > 0 {
		t.Errorf("it sends %v", r.Messages)
	}
}

// TestWithoutAQuorum crashes two of three processes. The third reports no leader and keeps the
// acknowledged state. Its pending commands have their effect once there is a quorum again.
func TestWithoutAQuorum(t *testing.T) {
	w := cluster(t, 3)
	name := func(p *process, token uint64) {
		w.submit(p, &call{kind: claim, key: "name:x", token: token}, &protos.RegistryCommand{
			Kind: &protos.RegistryCommand_ClaimName{ClaimName: &protos.ClaimName{Name: "x", Token: token}}})
	}
	a, b, c := w.processes[0], w.processes[1], w.processes[2]
	name(c, 1)
	w.run(20 * tick)
	w.crash(a)
	w.crash(b)
	w.run(60 * tick)
	if s := c.member.Status(); s.Leader != "" || len(s.Voters) != 3 {
		t.Errorf("%+v", s)
	}
	name(c, 2)
	c.reads[c.member.Read()] = &call{called: w.now}
	w.run(100 * tick)
	if len(c.calls) != 1 || len(c.reads) != 1 {
		t.Error("a command or a read has an answer without a quorum")
	}
	w.start(b)
	w.run(100 * tick)
	if n := c.member.State().Name("x"); len(c.calls)+len(c.reads) > 0 || n.GetToken() != 1 {
		t.Errorf("x: %v; %d commands and %d reads wait", n, len(c.calls), len(c.reads))
	}
	if wrong, _ := w.linearizable(); wrong != "" || len(w.wrong) > 0 {
		t.Error(wrong, w.wrong)
	}
}

// TestHostileFrames checks that a member ignores frames that no member sends.
func TestHostileFrames(t *testing.T) {
	w := cluster(t, 3)
	p := w.processes[0]
	for _, f := range []*protos.RegistryFrame{
		{}, {To: p.member.ID()}, {To: p.member.ID(), Message: []byte{1, 2, 3}},
		{To: p.member.ID(), From: 5, Message: []byte{8, 2}},        // a proposal without entries
		{To: p.member.ID(), From: 5, Message: []byte{8, 0}},        // to campaign
		{To: p.member.ID(), From: 5, Message: []byte{8, 6, 24, 5}}, // a sender that is not the frame's
		{Cluster: 1, From: 5, Name: "stranger"},
	} {
		p.member.Step(f)
		w.deliverReady(p)
	}
	w.run(50 * tick)
	if s := w.view(); len(s.Voters)+len(s.Learners) != 3 || s.Leader == "" {
		t.Errorf("%+v", s)
	}
}

// TestForgedMessages checks that the leader and a follower ignore messages at which raft panics.
func TestForgedMessages(t *testing.T) {
	w := cluster(t, 3)
	garbage := []*raftpb.Entry{{Data: []byte{1, 2, 3}}}
	for i, p := range w.processes[:2] {
		other := w.processes[1-i].member.ID()
		for _, f := range []struct {
			from, term uint64
			kind       raftpb.MessageType
			entries    []*raftpb.Entry
			snapshot   *raftpb.Snapshot
		}{
			{from: other, kind: raftpb.MsgProp, entries: garbage},
			{from: other, kind: raftpb.MsgProp, entries: []*raftpb.Entry{{Type: raftpb.EntryConfChangeV2.Enum()}}},
			{from: other, kind: raftpb.MsgProp, term: 1 << 40, entries: []*raftpb.Entry{{}}},
			{from: other, kind: raftpb.MsgReadIndex, term: 1 << 40, entries: []*raftpb.Entry{{}}},
			{from: other, kind: raftpb.MsgVote},
			{from: other, kind: raftpb.MsgAppResp},
			{from: other, kind: raftpb.MsgSnap, term: 1 << 40, snapshot: snapshot([]byte{1, 2, 3})},
			{from: p.member.ID(), kind: raftpb.MsgHeartbeat, term: 1 << 40},
			{from: raft.LocalAppendThread, kind: raftpb.MsgHeartbeat, term: 1 << 40},
		} {
			data, err := proto.Marshal(&raftpb.Message{
				Type: &f.kind, From: &f.from, To: new(p.member.ID()), Term: &f.term,
				Entries: f.entries, Snapshot: f.snapshot,
			})
			if err != nil {
				t.Fatal(err)
			}
			p.member.Step(&protos.RegistryFrame{Cluster: p.member.State().Cluster(), From: f.from, To: p.member.ID(),
				Name: "b", Message: data})
			w.deliverReady(p)
		}
	}
	w.run(50 * tick)
	for _, p := range w.processes {
		if s := p.member.Status(); s.Err != nil || s.Leader == "" || s.Term > 1000 {
			t.Errorf("%s: %+v", p.name, s)
		}
	}
	if len(w.wrong) > 0 {
		t.Error(w.wrong)
	}
}

// TestAnEntryThatIsNoCommandIsSkipped commits an entry that no member can read.
func TestAnEntryThatIsNoCommandIsSkipped(t *testing.T) {
	w := cluster(t, 3)
	before := w.view().Applied
	leader := w.processes[slices.IndexFunc(w.processes, func(p *process) bool { return p.member.Status().Leads })]
	if err := leader.member.ProposeEntry([]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	w.deliverReady(leader)
	w.run(20 * tick)
	for _, p := range w.processes {
		if s := p.member.Status(); s.Err != nil || s.Applied <= before {
			t.Errorf("%s: %+v", p.name, s)
		}
	}
	w.submit(w.processes[1], &call{kind: put, key: "actor:p", token: 5}, &protos.RegistryCommand{
		Kind: &protos.RegistryCommand_PutActor{PutActor: &protos.PutActor{Name: "p", Spec: []byte{0, 5}}}})
	w.run(20 * tick)
	for _, p := range w.processes {
		if p.member.State().Actor("p") == nil {
			t.Errorf("%s applies no further command", p.name)
		}
	}
	if len(w.wrong) > 0 {
		t.Error(w.wrong)
	}
}

func snapshot(data []byte) *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
		Index: new(uint64(1 << 40)), Term: new(uint64(1)), ConfState: &raftpb.ConfState{},
	}}
}

// TestTheLogIsBounded issues more commands than a log may have entries.
func TestTheLogIsBounded(t *testing.T) {
	w := cluster(t, 3)
	for range 100 {
		w.issue(w.processes[1])
		w.run(10 * tick)
	}
	for _, p := range w.processes {
		if n := len(p.disk.saved.Entries); n > 12+maxBatch {
			t.Errorf("%s has %d entries stored", p.name, n)
		}
	}
	if w.view().Applied < 60 {
		t.Errorf("only %d entries", w.view().Applied)
	}
}

// maxBatch is the largest number of entries that an update stores before the log is compacted.
const maxBatch = 16

var _ registry.Storage = (*disk)(nil)
