package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/registry"
	"github.com/gradwire/gradwire/cluster/registry/host"
	"github.com/gradwire/gradwire/protos"
)

// wire carries frames between hosts in memory.
type wire struct {
	t    *testing.T
	dir  string
	life uint64

	mu    sync.Mutex
	hosts map[string]*host.Host
	cut   map[string]bool
}

func newWire(t *testing.T) *wire {
	w := &wire{t: t, dir: t.TempDir(), hosts: map[string]*host.Host{}, cut: map[string]bool{}}
	t.Cleanup(func() {
		for name := range w.hosts {
			w.kill(name)
		}
	})
	return w
}

func (w *wire) start(name string, found bool) *host.Host {
	w.t.Helper()
	w.life++
	h, err := host.Open(host.Config{
		Process: name, Incarnation: w.life, File: filepath.Join(w.dir, name), MayFound: found,
		Others: func() []string { return []string{"a", "b", "c"} },
		Send:   func(to string, f *protos.RegistryFrame) { w.send(name, to, f) },
		Log:    func(format string, args ...any) { w.t.Logf(name+": "+format, args...) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[name] = h
	return h
}

func (w *wire) send(from, to string, f *protos.RegistryFrame) {
	w.mu.Lock()
	h := w.hosts[to]
	lost := from == to || h == nil || w.cut[from] || w.cut[to]
	w.mu.Unlock()
	if !lost {
		h.Receive(proto.Clone(f).(*protos.RegistryFrame))
	}
}

// kill closes a host without leaving.
func (w *wire) kill(name string) {
	w.mu.Lock()
	h := w.hosts[name]
	delete(w.hosts, name)
	w.mu.Unlock()
	if h == nil {
		return
	}
	if err := h.Close(); err != nil {
		w.t.Error(err)
	}
}

// await polls a host until its status satisfies a condition.
func (w *wire) await(why string, h *host.Host, is func(s registry.Status) bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(h.Status()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %+v", why, h.Status())
		}
	}
}

func patience(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func claimName(t *testing.T, h *host.Host, name string, token uint64) *protos.RegistryResult {
	t.Helper()
	r, err := h.Do(patience(t, time.Minute), &protos.RegistryCommand{Kind: &protos.RegistryCommand_ClaimName{
		ClaimName: &protos.ClaimName{Name: name, Token: token},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(t *testing.T, h *host.Host) (all []string) {
	t.Helper()
	if err := h.Read(patience(t, time.Minute), func(s *registry.State) {
		for _, n := range s.Names() {
			all = append(all, fmt.Sprintf("%s of %s", n.Name, n.Owner.Name))
		}
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// three starts three hosts and waits until all of them vote.
func three(w *wire) {
	w.t.Helper()
	w.start("a", true)
	for _, name := range []string{"b", "c"} {
		w.start(name, false)
	}
	for name, h := range w.hosts {
		w.await(name+" does not vote", h, func(s registry.Status) bool {
			return s.Votes && s.Leader != "" && len(s.Voters) == 3 && !s.Changing
		})
	}
}

func TestThreeHosts(t *testing.T) {
	w := newWire(t)
	three(w)
	if r := claimName(t, w.hosts["b"], "x", 1); r.Code != protos.RegistryResult_DONE {
		t.Errorf("%v", r)
	}
	if r := claimName(t, w.hosts["c"], "x", 2); r.Code != protos.RegistryResult_TAKEN || r.Owner.Name != "b" {
		t.Errorf("%v", r)
	}
	leader := w.hosts["a"].Status().Leader
	w.kill(leader)
	others := slices.DeleteFunc([]string{"a", "b", "c"}, func(name string) bool { return name == leader })
	if r := claimName(t, w.hosts[others[0]], "y", 3); r.Code != protos.RegistryResult_DONE {
		t.Errorf("%v", r)
	}
	again := w.start(leader, true)
	w.await("it does not return", again, func(s registry.Status) bool { return s.Votes && s.Leader != "" })
	if got := names(t, again); !slices.Contains(got, "y of "+others[0]) {
		t.Errorf("%s has %v", leader, got)
	}
}

// TestAllHostsAreKilled closes all hosts. A majority that restarts has the acknowledged claims.
func TestAllHostsAreKilled(t *testing.T) {
	w := newWire(t)
	three(w)
	claimName(t, w.hosts["a"], "x", 1)
	for _, name := range []string{"a", "b", "c"} {
		w.kill(name)
	}
	for _, name := range []string{"c", "b"} {
		w.start(name, false)
	}
	if got := names(t, w.hosts["c"]); !slices.Equal(got, []string{"x of a"}) {
		t.Errorf("%v", got)
	}
}

func TestNoQuorumIsSaid(t *testing.T) {
	w := newWire(t)
	three(w)
	w.mu.Lock()
	w.cut["a"] = true
	w.mu.Unlock()
	a := w.hosts["a"]
	w.await("it does not notice", a, func(s registry.Status) bool { return s.Leader == "" })
	_, err := a.Do(patience(t, time.Second), &protos.RegistryCommand{Kind: &protos.RegistryCommand_PutActor{
		PutActor: &protos.PutActor{Name: "x"}}})
	const want = "no quorum: this process hears no majority of the voters a, "
	if !errors.Is(err, host.ErrNoQuorum) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	if err := a.Read(patience(t, time.Second), func(*registry.State) {}); !errors.Is(err, host.ErrNoQuorum) {
		t.Errorf("%v", err)
	}
	if r := claimName(t, w.hosts["b"], "x", 1); r.Code != protos.RegistryResult_DONE {
		t.Errorf("%v", r)
	}
	w.mu.Lock()
	w.cut["a"] = false
	w.mu.Unlock()
	if r := claimName(t, a, "x", 2); r.Code != protos.RegistryResult_TAKEN {
		t.Errorf("%v", r)
	}
}

// TestAMemberThatPanicsIsReplaced makes a member panic at a heartbeat whose commit index exceeds
// its log. Until the next start, calls go to a new member that keeps its log in memory.
func TestAMemberThatPanicsIsReplaced(t *testing.T) {
	w := newWire(t)
	three(w)
	b, ids := w.hosts["b"], map[string]uint64{}
	var cluster uint64
	if err := b.ReadLocal(patience(t, time.Minute), func(s *registry.State) {
		cluster = s.Cluster()
		for _, m := range s.Members() {
			ids[m.Name] = m.Id
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.cut["b"] = true
	w.mu.Unlock()
	waiting := make(chan error, 1)
	go func() { waiting <- b.Read(t.Context(), func(*registry.State) {}) }()
	message, err := proto.Marshal(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(ids["a"]),
		To: new(ids["b"]), Term: new(uint64(1 << 40)), Commit: new(uint64(1 << 40))})
	if err != nil {
		t.Fatal(err)
	}
	b.Receive(&protos.RegistryFrame{Cluster: cluster, From: ids["a"], To: ids["b"], Name: "a", Message: message})
	w.await("b does not continue", b, func(s registry.Status) bool { return s.Cluster == 0 })
	w.mu.Lock()
	w.cut["b"] = false
	w.mu.Unlock()
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	claimName(t, b, "x", 1)
	w.await("b does not vote from memory", b, func(s registry.Status) bool {
		return s.Votes && slices.Equal(s.InMemory, []string{"b"}) && len(s.Voters) == 3
	})
	w.kill("b")
	w.await("b votes from its file", w.start("b", false), func(s registry.Status) bool {
		return s.Votes && len(s.InMemory) == 0 && len(s.Voters) == 3
	})
}

// TestAProcessWithoutAFileVotesFromMemory starts three hosts. One cannot create its log file, and
// votes from memory: after the loss of another host the registry still has a quorum.
func TestAProcessWithoutAFileVotesFromMemory(t *testing.T) {
	w := newWire(t)
	if err := os.Mkdir(filepath.Join(w.dir, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	three(w)
	if s := w.hosts["c"].Status(); !slices.Equal(s.InMemory, []string{"b"}) {
		t.Errorf("%v have their logs in memory", s.InMemory)
	}
	starts := func(*registry.State) { t.Error("a registry starts from memory") }
	if _, err := w.hosts["b"].Recover(patience(t, time.Minute), starts); err == nil ||
		!strings.Contains(err.Error(), "in memory only") {
		t.Errorf("b recovers: %v", err)
	}
	w.kill("a")
	claimName(t, w.hosts["c"], "x", 1)
}

func TestLeave(t *testing.T) {
	w := newWire(t)
	three(w)
	claimName(t, w.hosts["c"], "x", 1)
	for _, name := range []string{"a", "b"} {
		if err := w.hosts[name].Leave(patience(t, time.Minute)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := w.hosts[name].Status(); s.Votes || s.Listed && !s.Left {
			t.Errorf("%s has left: %+v", name, s)
		}
		w.kill(name)
	}
	if got := names(t, w.hosts["c"]); !slices.Equal(got, []string{"x of c"}) {
		t.Errorf("%v", got)
	}
	if v := w.hosts["c"].Status().Voters; !slices.Equal(v, []string{"c"}) {
		t.Errorf("voters %v", v)
	}
}

// TestRecoveryOfAHost kills two of three hosts. The third recovers, and the two become its voters
// when they return with their old logs.
func TestRecoveryOfAHost(t *testing.T) {
	w := newWire(t)
	three(w)
	claimName(t, w.hosts["a"], "x", 1)
	names(t, w.hosts["c"]) // until c has the claim
	former := w.hosts["c"].Status().Cluster
	w.kill("a")
	w.kill("b")
	c := w.hosts["c"]
	var r *host.Recovery
	for {
		var owners []string
		var err error
		r, err = c.Recover(patience(t, time.Minute), func(s *registry.State) {
			for _, n := range s.Names() {
				owners = append(owners, n.Owner.Name)
			}
		})
		if err == nil {
			if r.Already || !slices.Equal(owners, []string{"a"}) || r.Superseded != former {
				t.Errorf("%+v, names of %v", r, owners)
			}
			break
		}
		if quorum := strings.Contains(err.Error(), "the registry has a quorum"); !quorum &&
			!errors.Is(err, registry.ErrUnsettled) || owners != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if saved, err := load(t, r.Copy); err != nil || saved.Identity.Name != "c" {
		t.Errorf("the copy of the old log: %v, %v", saved, err)
	}
	if again, err := c.Recover(patience(t, time.Minute), func(*registry.State) {}); err != nil || !again.Already {
		t.Errorf("again: %v, %v", again, err)
	}
	if r := claimName(t, c, "x", 2); r.Code != protos.RegistryResult_TAKEN || r.Owner.Name != "a" {
		t.Errorf("%v", r)
	}
	w.start("a", true)
	w.start("b", false)
	for name, h := range w.hosts {
		w.await(name+" does not vote", h, func(s registry.Status) bool { return s.Votes && s.Cluster == r.Cluster })
	}
	claimName(t, w.hosts["a"], "y", 3) // opens a session, which ends the claims of the earlier incarnation
	if got := names(t, w.hosts["b"]); !slices.Equal(got, []string{"y of a"}) {
		t.Errorf("%v", got)
	}
}
