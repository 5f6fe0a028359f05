package registry_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/protos"
)

// claimName submits a claim of the name x.
func (w *world) claimName(p *process, token uint64) {
	w.submit(p, &call{kind: claim, key: "name:x", token: token}, &protos.RegistryCommand{
		Kind: &protos.RegistryCommand_ClaimName{ClaimName: &protos.ClaimName{Name: "x", Token: token}}})
}

// mustRecover recovers from a process.
func mustRecover(t *testing.T, w *world, p *process) *protos.RegistryRecovery {
	t.Helper()
	r, already, err := w.recoverFrom(p)
	if err != nil || already {
		t.Fatalf("%s does not recover: %v, already: %v: %s", p.name, err, already, w.describe())
	}
	return r
}

// expectWhole fails the test after a violation, or if the processes do not agree.
func expectWhole(t *testing.T, w *world) {
	t.Helper()
	w.await()
	if !w.agree() {
		t.Errorf("no agreement: %s", w.describe())
	}
	if wrong, _ := w.linearizable(); wrong != "" || len(w.wrong) > 0 {
		t.Error(wrong, w.wrong)
	}
}

// TestRecovery loses two of three voters for 100 ticks. The survivor continues without them, and the
// two become members of its registry when they return.
func TestRecovery(t *testing.T) {
	w := cluster(t, 3)
	a, b, c := w.processes[0], w.processes[1], w.processes[2]
	w.claimName(c, 1)
	w.run(20 * tick)
	w.crash(a)
	w.crash(b)
	w.run(100 * tick)
	before, id := c.member.State().Cluster(), c.member.ID()
	r := mustRecover(t, w, c)
	if r.Superseded != before || r.Process != "c" || !slices.Equal(r.Dropped, []string{"a", "b"}) ||
		len(r.Unproven) > 0 {
		t.Errorf("%+v", r)
	}
	if c.member.ID() == id || c.member.State().Cluster() != r.Cluster || r.Cluster == before {
		t.Errorf("member %x of registry %x", c.member.ID(), c.member.State().Cluster())
	}
	w.claimName(c, 2)
	w.run(30 * tick)
	if n := c.member.State().Name("x"); n.GetToken() != 1 || len(c.calls) > 0 {
		t.Errorf("%v; %d commands wait", n, len(c.calls))
	}
	again, already, err := c.member.Recover()
	if err != nil || !already || !proto.Equal(again, r) {
		t.Errorf("again: %v, %v, %v", again, already, err)
	}
	w.start(a)
	w.start(b)
	expectWhole(t, w)
	wantVoters(t, w, "c", "a", "b")
	if _, _, err := a.member.Recover(); err == nil || !strings.Contains(err.Error(), "the registry has a quorum") {
		t.Errorf("recovery with a quorum: %v", err)
	}
}

// TestRecoverySurvivesARestart restarts the survivor before another process has returned.
func TestRecoverySurvivesARestart(t *testing.T) {
	w := cluster(t, 3)
	c := w.processes[2]
	w.crash(w.processes[0])
	w.crash(w.processes[1])
	w.run(100 * tick)
	r := mustRecover(t, w, c)
	id := c.member.ID()
	w.crash(c)
	w.start(c)
	w.run(20 * tick)
	if s := c.member.Status(); c.member.ID() != id || !s.Leads || s.Cluster != r.Cluster {
		t.Errorf("%+v", s)
	}
	again, already, err := c.member.Recover()
	if err != nil || !already || !proto.Equal(again, r) {
		t.Errorf("again: %v, %v, %v", again, already, err)
	}
}

// TestAnOldQuorumIsFenced recovers from a process that is cut off from two others, which have a
// quorum and continue. They leave their registry once they hear of the new one.
func TestAnOldQuorumIsFenced(t *testing.T) {
	w := cluster(t, 3)
	a, c := w.processes[0], w.processes[2]
	w.cut[pair(a, c)], w.cut[pair(w.processes[1], c)] = true, true
	w.run(100 * tick)
	mustRecover(t, w, c)
	for range 40 { // entries that c lacks
		w.submit(a, &call{kind: put, key: "actor:p", token: 5}, &protos.RegistryCommand{
			Kind: &protos.RegistryCommand_PutActor{PutActor: &protos.PutActor{Name: "p", Spec: []byte{0, 5}}}})
		w.run(3 * tick)
	}
	w.claimName(a, 1)
	w.claimName(c, 2)
	w.run(40 * tick)
	if x, y := a.member.State().Name("x"), c.member.State().Name("x"); x.GetToken() != 1 || y.GetToken() != 2 {
		t.Errorf("x on both sides: %v, %v", x, y)
	} else if y.Index <= x.Index {
		t.Errorf("the claim in the new registry has index %d, that in the old one %d", y.Index, x.Index)
	}
	clear(w.cut)
	expectWhole(t, w)
	if n := a.member.State().Name("x"); n.GetToken() != 2 {
		t.Errorf("x after the fence: %v", n)
	}
	w.claimName(a, 3)
	w.run(40 * tick)
	if n := a.member.State().Name("x"); n.GetToken() != 2 || len(a.calls) > 0 {
		t.Errorf("x: %v; %d commands wait", n, len(a.calls))
	}
}

// TestTwoRecoveriesOfOneRegistry recovers from two processes that do not hear each other. One
// registry must remain.
func TestTwoRecoveriesOfOneRegistry(t *testing.T) {
	for _, twice := range []bool{false, true} {
		w := cluster(t, 5)
		a, b := w.processes[0], w.processes[1]
		for _, p := range w.processes[2:] {
			w.crash(p)
		}
		w.cut[pair(a, b)] = true
		w.run(100 * tick)
		first, second := mustRecover(t, w, a), mustRecover(t, w, b)
		want := max(first.Cluster, second.Cluster)
		if twice { // two recoveries supersede one, whatever their numbers
			loser := a
			if want == first.Cluster {
				loser = b
			}
			w.start(w.processes[2]) // until it votes beside the loser
			for _, p := range []*process{a, b} {
				w.cut[pair(p, w.processes[2])] = p != loser
			}
			w.start(w.processes[3])
			for _, p := range []*process{a, b} {
				w.cut[pair(p, w.processes[3])] = p != loser
			}
			w.run(200 * tick)
			w.crash(w.processes[2])
			w.crash(w.processes[3])
			w.run(100 * tick)
			want = mustRecover(t, w, loser).Cluster
		}
		clear(w.cut)
		for _, p := range w.processes {
			w.start(p)
		}
		expectWhole(t, w)
		for _, p := range w.processes {
			if got := p.member.State().Cluster(); got != want {
				t.Errorf("%s is in registry %x, want %x", p.name, got, want)
			}
		}
	}
}

// TestSessionsOfTwoRecoveries gives processes of two registries sessions with equal ids. After one
// registry has superseded the other, no process may use the session of another process.
func TestSessionsOfTwoRecoveries(t *testing.T) {
	w := newWorld(7, 4, plant{})
	for _, p := range w.processes {
		w.start(p)
		w.run(60 * tick)
	}
	side := func(i int) int { return i % 2 }
	for _, p := range w.processes {
		for _, q := range w.processes[:p.index] {
			w.cut[pair(p, q)] = side(p.index) != side(q.index)
		}
	}
	a, b, c, d := w.processes[0], w.processes[1], w.processes[2], w.processes[3]
	w.crash(c) // until a and b have recovered
	w.crash(d)
	w.run(100 * tick)
	first, second := mustRecover(t, w, a), mustRecover(t, w, b)
	w.start(c)
	w.start(d)
	w.run(60 * tick)
	w.claimName(c, 5)
	w.claimName(d, 6)
	w.run(30 * tick)
	if c.member.Session() != d.member.Session() || c.member.Session() == 0 {
		t.Fatalf("the sessions are %d and %d", c.member.Session(), d.member.Session())
	}
	loser, winner := c, d
	if first.Cluster > second.Cluster {
		loser, winner = d, c
	}
	for _, p := range []*process{a, b} {
		w.cut[pair(p, loser)] = true
	}
	w.submit(loser, &call{kind: put, key: "actor:p", token: 9}, &protos.RegistryCommand{
		Kind: &protos.RegistryCommand_PutActor{PutActor: &protos.PutActor{Name: "p", Spec: []byte{0, 9}}}})
	w.run(20 * tick)
	for id := range loser.calls {
		if winner.member.Session() != loser.member.Session() {
			t.Fatalf("the session of command %d has ended", id)
		}
	}
	clear(w.cut)
	expectWhole(t, w)
	if got := w.processes[winner.index].member.State().Actor("p"); got != nil {
		t.Errorf("a command of %s has had its effect in a session of %s", loser.name, winner.name)
	}
	if len(loser.calls) > 0 {
		t.Errorf("%s has no answer", loser.name)
	}
}

// refused checks that a process refuses to recover, and for which reason.
func refused(t *testing.T, w *world, p *process, unsettled bool, want string) {
	t.Helper()
	before := p.member.State().Cluster()
	_, _, err := w.recoverFrom(p)
	if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, registry.ErrUnsettled) != unsettled {
		t.Errorf("%v, want %s", err, want)
	}
	if p.member.State().Cluster() != before {
		t.Errorf("%s has recovered", p.name)
	}
}

// TestRecoveryIsRefused checks every reason for which a member starts no registry.
func TestRecoveryIsRefused(t *testing.T) {
	t.Run("there is a leader", func(t *testing.T) {
		w := cluster(t, 3)
		refused(t, w, w.processes[1], false, "the registry has a quorum")
	})
	t.Run("the leader has just gone", func(t *testing.T) {
		w := cluster(t, 3)
		leader := w.processes[slices.IndexFunc(w.processes, func(p *process) bool { return p.member.Status().Leads })]
		p := w.processes[(leader.index+1)%3]
		w.crash(leader)
		w.crash(w.processes[(leader.index+2)%3])
		w.run(15 * tick)
		refused(t, w, p, true, "may be electing a leader")
	})
	t.Run("a majority is reachable", func(t *testing.T) {
		w := cluster(t, 3)
		a, b := w.processes[0], w.processes[1]
		w.crash(w.processes[2])
		w.run(60 * tick)
		w.mute = true
		w.run(100 * tick)
		refused(t, w, a, true, "a majority of the voters is reachable (a, b)")
		w.cut[pair(a, b)] = true
		w.run(100 * tick)
		mustRecover(t, w, b)
	})
	t.Run("a process without a state", func(t *testing.T) {
		w := newWorld(7, 2, plant{})
		w.start(w.processes[1])
		w.run(100 * tick)
		refused(t, w, w.processes[1], false, "no copy of the registry")
	})
	t.Run("a process that has failed", func(t *testing.T) {
		w := cluster(t, 3)
		p := w.processes[0]
		p.disk.fault = failedOld
		w.claimName(p, 1)
		w.run(20 * tick)
		refused(t, w, p, false, "takes no part in the registry")
	})
}

// TestTheLongestLogIsRecovered refuses to recover from a process that lacks entries of a process that
// it hears.
func TestTheLongestLogIsRecovered(t *testing.T) {
	w := cluster(t, 5)
	a, b := w.processes[0], w.processes[1]
	for _, p := range w.processes {
		w.cut[pair(a, p)] = true
	}
	w.claimName(b, 1)
	w.run(30 * tick)
	for _, p := range w.processes[2:] {
		w.crash(p)
	}
	clear(w.cut)
	w.run(100 * tick)
	refused(t, w, a, false, "process b has entries that this process lacks")
	mustRecover(t, w, b)
	for _, p := range w.processes[2:] {
		w.start(p)
	}
	expectWhole(t, w)
}

// TestUnprovenEntries recovers from a leader whose latest claim has reached no other process.
func TestUnprovenEntries(t *testing.T) {
	w := cluster(t, 3)
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.member.Status().Leads })
	leader := w.processes[i]
	w.claimName(leader, 1) // opens a session
	w.run(30 * tick)
	for _, p := range w.processes {
		w.cut[pair(leader, p)] = true
	}
	w.submit(leader, &call{kind: claim, key: "name:y", token: 9}, &protos.RegistryCommand{
		Kind: &protos.RegistryCommand_ClaimName{ClaimName: &protos.ClaimName{Name: "y", Token: 9}}})
	w.run(100 * tick)
	if leader.member.State().Name("y") != nil || len(leader.calls) != 1 {
		t.Fatal("the claim has had its effect without a quorum")
	}
	r := mustRecover(t, w, leader)
	want := "claim name (name y, token 9) by " + leader.name
	if !slices.ContainsFunc(r.Unproven, func(u *protos.RegistryUnproven) bool { return u.Command == want }) {
		t.Errorf("unproven: %v, want %s", r.Unproven, want)
	}
	if n := leader.member.State().Name("y"); n.GetToken() != 9 || len(leader.calls) > 0 {
		t.Errorf("y: %v; %d commands wait", n, len(leader.calls))
	}
	clear(w.cut)
	expectWhole(t, w)
}

// TestALoneFounderJoinsTheOthers restarts the first process without its log, so that it founds
// another registry. Once it hears the others it must join theirs.
func TestALoneFounderJoinsTheOthers(t *testing.T) {
	w := cluster(t, 3)
	a := w.processes[0]
	w.claimName(w.processes[1], 1)
	w.run(20 * tick)
	w.crash(a)
	a.disk.saved, a.founds = nil, true
	for _, p := range w.processes[1:] {
		w.cut[pair(a, p)] = true
	}
	w.start(a)
	w.claimName(a, 2)
	w.run(50 * tick)
	if s := a.member.Status(); !s.Leads || a.member.State().Name("x").GetToken() != 2 {
		t.Fatalf("a has founded no registry: %+v", s)
	}
	clear(w.cut)
	expectWhole(t, w)
	if n := a.member.State().Name("x"); n.GetToken() != 1 {
		t.Errorf("x: %v", n)
	}
}

// TestLoneFoundersJoinOne lets four processes found registries, and then meet. One registry must
// remain, even if a founder joins a registry that its own members leave later.
func TestLoneFoundersJoinOne(t *testing.T) {
	for seed := range uint64(20) {
		w := newWorld(seed, 4, plant{})
		for _, p := range w.processes {
			p.founds = true
			for _, q := range w.processes[:p.index] {
				w.cut[pair(p, q)] = true
			}
			w.start(p)
		}
		w.run(60 * tick)
		for _, p := range w.processes {
			if !p.member.Status().Leads {
				t.Fatalf("%s has founded no registry", p.name)
			}
		}
		clear(w.cut)
		expectWhole(t, w)
	}
}

// TestAWaitingMemberSupersedesNothing recovers from a and loses a's log after b and c have given up
// theirs. b gets its former log back. It must keep it although c waits for a's registry, and the
// operator can recover from it.
func TestAWaitingMemberSupersedesNothing(t *testing.T) {
	w := cluster(t, 3)
	a, b, c := w.processes[0], w.processes[1], w.processes[2]
	w.crash(b)
	w.crash(c)
	w.run(100 * tick)
	saved := *b.disk.saved
	former := a.member.State().Cluster()
	lost := mustRecover(t, w, a).Cluster
	w.cut[pair(b, c)] = true
	w.start(c)
	for c.member.Lineage() != lost || c.member.State().Cluster() != 0 {
		w.run(1)
	}
	w.crash(a)
	w.run(100 * tick)
	b.disk.saved = &saved
	w.start(b)
	clear(w.cut)
	w.run(200 * tick)
	if got := b.member.State().Cluster(); got != former {
		t.Fatalf("b is in registry %x, not %x", got, former)
	}
	mustRecover(t, w, b)
	w.crash(c)
	c.disk.saved, a.disk.saved = nil, nil
	w.start(a)
	w.start(c)
	expectWhole(t, w)
}

// TestTwoRegistriesWithMembersAreReported joins the processes of two registries with two members
// each. Neither gives way, and both report the other.
func TestTwoRegistriesWithMembersAreReported(t *testing.T) {
	w := newWorld(7, 4, plant{})
	w.processes[2].founds = true
	for _, a := range w.processes[:2] {
		for _, b := range w.processes[2:] {
			w.cut[pair(a, b)] = true
		}
	}
	for _, p := range w.processes {
		w.start(p)
		w.run(40 * tick)
	}
	for _, p := range w.processes {
		w.claimName(p, 1)
	}
	w.run(40 * tick)
	clear(w.cut)
	w.run(400 * tick)
	if a, c := w.processes[0].member.Status(), w.processes[2].member.Status(); a.Cluster == c.Cluster ||
		a.Other != "c" || c.Other != "a" || len(a.Learners) != 1 || len(c.Learners) != 1 {
		t.Error(w.describe())
	}
}

// TestLineagesAreOrdered checks that of two registries of one origin exactly one supersedes the
// other, and that this order is transitive.
func TestLineagesAreOrdered(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	frame := func() *protos.RegistryFrame {
		f := &protos.RegistryFrame{Cluster: 100 + random.Uint64N(20)}
		for n := range random.Uint64N(4) {
			f.Superseded = append(f.Superseded, n+1)
		}
		if len(f.Superseded) == 0 {
			f.Cluster = 1 // the origin itself
		}
		return f
	}
	for range 5000 {
		a, b, c := frame(), frame(), frame()
		ab, ba := registry.Supersedes(a, b), registry.Supersedes(b, a)
		if ab && ba || !ab && !ba && a.Cluster != b.Cluster {
			t.Fatalf("%v and %v: %v, %v", a, b, ab, ba)
		}
		if ab && registry.Supersedes(b, c) && a.Cluster != c.Cluster && !registry.Supersedes(a, c) {
			t.Fatalf("not transitive: %v, %v, %v", a, b, c)
		}
	}
}

// storedTerm returns the term of an entry that a process has stored; 0 without one.
func (p *process) storedTerm(index uint64) uint64 {
	i := slices.IndexFunc(p.disk.saved.Entries, func(e *raftpb.Entry) bool { return e.GetIndex() == index })
	if i < 0 {
		return 0
	}
	return p.disk.saved.Entries[i].GetTerm()
}

// TestARecoverySaysHowFarItIsBehind gives a follower a message of its leader that follows on
// entries which the follower lacks. The follower cannot keep the message's entries, but it learns
// their commit index.
func TestARecoverySaysHowFarItIsBehind(t *testing.T) {
	w := cluster(t, 3)
	i := slices.IndexFunc(w.processes, func(p *process) bool { return p.member.Status().Leads })
	leader, p := w.processes[i], w.processes[(i+1)%3]
	last, latest := p.lastStored(), leader.member.Status().Term
	for term, commit := range map[uint64]uint64{latest: last + 7, latest - 1: last + 70} { // the latter is stale
		data, err := proto.Marshal(&raftpb.Message{Type: raftpb.MsgApp.Enum(), From: new(leader.member.ID()),
			To: new(p.member.ID()), Term: &term, LogTerm: &term, Index: &commit, Commit: &commit})
		if err != nil {
			t.Fatal(err)
		}
		p.member.Step(&protos.RegistryFrame{Cluster: p.member.State().Cluster(), From: leader.member.ID(),
			Name: leader.name, To: p.member.ID(), Message: data})
		w.deliverReady(p)
	}
	for _, other := range w.processes {
		if other != p {
			w.crash(other)
		}
	}
	w.run(100 * tick)
	if r := mustRecover(t, w, p); r.Last != last || r.Announced != last+7 {
		t.Errorf("last %d, announced %d; want %d, %d", r.Last, r.Announced, last, last+7)
	}
}
