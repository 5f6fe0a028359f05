//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/protos"
)

// endsWithin expects a process to end within a minute after a signal.
func endsWithin(t *testing.T, p *program, sig os.Signal) syscall.WaitStatus {
	t.Helper()
	const most = time.Minute
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	killed := time.AfterFunc(2*most, func() { _ = p.Process.Kill() })
	defer killed.Stop()
	status := p.end(t)
	if took := time.Since(began); took > most {
		t.Errorf("the process ended %v after the signal, want %v at most", took, most)
	}
	return status
}

// asOperator is a client in this process.
func (s *site) asOperator() *driver.Client {
	s.t.Helper()
	id, err := identity.Load(s.operator)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := driver.Connect(s.t.Context(), []string{s.join}, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A process ends soon after SIGTERM whatever blocks in it, and says goodbye first.
func TestNodeEndsThoughSomethingInItBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, what := range []string{"an actor", "a reader"} {
		t.Run(what, func(t *testing.T) {
			s := settle(t, "a", "b")
			if what == "an actor" {
				stuck := driver.ActorSpec{Name: "stuck", Kind: "tally", Node: "b"}
				actor, err := s.asOperator().Spawn(t.Context(), stuck)
				if err != nil {
					t.Fatal(err)
				}
				if err := actor.Send(t.Context(), protos.NewMessage(wrapperspb.Int64(math.MinInt64))); err != nil {
					t.Fatal(err)
				}
			} else {
				if err := syscall.Mkfifo(s.path("pipe.csv"), 0o600); err != nil {
					t.Skipf("no named pipe can be made: %v", err)
				}
				s.write("plan.yaml", edit(t, shortRuns, "{set: synthetic-traffic, samples: 1500}",
					fmt.Sprintf("{set: csv, file: %s, label: a}", s.path("pipe.csv"))))
				submit := s.program(s.flags("submit", "plan.yaml")...)
				submit.start(t)
			}
			time.Sleep(2 * time.Second) // it blocks
			status := endsWithin(t, s.nodes["b"], syscall.SIGTERM)
			if status.ExitStatus() != cli.ExitDone {
				t.Errorf("status %v", status)
			}
			endsWithin(t, s.nodes["a"], syscall.SIGTERM)
		})
	}
}

// A second signal ends a process at once, while the first waits for what blocks.
func TestSecondSignalEndsANodeAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	s := newSite(t)
	s.must("identity", "issue", s.path("ca"), "--node", "a", "--out", s.path("a"))
	s.write("out/x", "")
	if err := syscall.Mkfifo(s.path("out/submissions-a.jsonl"), 0o600); err != nil {
		t.Skipf("no named pipe can be made: %v", err)
	}
	p := s.program("node", "--bind", "127.0.0.1:0", "--identity", "a", "--out", "out")
	h := listen(t, p)
	s.await("beginning", h.has("begins a cluster"))
	time.Sleep(time.Second) // the ledger is read
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.await("word of the signal", h.has("stopping cleanly"))
	endsWithin(t, p, syscall.SIGTERM)
}

func TestSecondProcessOfAnIdentityIsRefusedTheSameFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := settle(t, "a")
	p := s.program("node", "--bind", "127.0.0.1:0", "--identity", "a", "--out", "records-a")
	p.start(t)
	status := p.end(t)
	want := fmt.Sprintf("records-a, the folder of records, is in use by process %d, which is node a too; --out",
		s.nodes["a"].Process.Pid)
	if status.ExitStatus() != cli.ExitInput || !strings.Contains(p.errs.String(), want) {
		t.Errorf("%v: %s", status, p.errs.String())
	}
	endsWithin(t, s.nodes["a"], syscall.SIGTERM)
	s.seed = ""
	again := s.program("node", "--bind", "127.0.0.1:0", "--identity", "a", "--out", "records-a")
	h := listen(t, again)
	s.await("the next life", h.has("ready at "))
}

// Processes that leave at the same time wait for nobody who has left.
func TestProcessesThatLeaveTogetherDoNotWaitForEachOther(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newSite(t)
	var all []*heard
	for _, name := range []string{"a", "b", "c"} {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
		p := s.program("node", "--bind", "127.0.0.1:0", "--identity", name, "--join", s.seed, "--out", "records-"+name)
		h := listen(t, p)
		s.await("node "+name, h.has("ready at "))
		s.nodes[name], all = p, append(all, h)
		if s.seed == "" {
			s.seed = strings.TrimPrefix(h.find("ready at "), "ready at ")
			s.join = s.seed
		}
	}
	s.await("cluster", func() bool { return strings.Count(s.must("nodes"), "\n") == 4 })
	s.signal(syscall.SIGTERM, "a", "b", "c")
	for i, name := range []string{"a", "b", "c"} {
		s.nodes[name].end(t)
		if line := all[i].find("timeout"); line != "" {
			t.Errorf("%s says %q", name, line)
		}
	}
}

// What a node says of where it joins, and what it does while nobody is there.
func TestNodeSaysWhereItJoinsAndKeepsTrying(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newSite(t)
	for _, name := range []string{"a", "b"} {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
	}
	begin := func(env string, args ...string) (*program, *heard) {
		p := s.program(append([]string{"node", "--bind", "127.0.0.1:0", "--out", "out"}, args...)...)
		if env != "" {
			p.Env = append(p.Env, env)
		}
		return p, listen(t, p)
	}
	p, h := begin("GRADWIRE_JOIN=nobody.invalid:7946", "--identity", "a")
	s.await("source", h.has("joins nobody.invalid:7946 (from GRADWIRE_JOIN)"))
	s.await("complaint", h.has("tries to join again: seed nobody.invalid:7946: "))
	time.Sleep(2 * time.Second)
	if h.find("ready at ") != "" {
		t.Error("it is ready without a cluster")
	}
	endsWithin(t, p, syscall.SIGTERM)

	p, h = begin("", "--identity", "a", "--join", "nobody.invalid:7946", "--join-timeout", "1s")
	if status := p.end(t); status.ExitStatus() != cli.ExitFailed || h.find("seed nobody.invalid:7946: ") == "" {
		t.Errorf("status %v", status)
	}

	p, h = begin("GRADWIRE_IDENTITY="+s.path("a"), "--data", "")
	s.await("source", h.has("identity in "+s.path("a")+" (from GRADWIRE_IDENTITY)"))
	s.await("ready", h.has("ready at "))
	endsWithin(t, p, syscall.SIGTERM)

	for _, wrong := range []struct{ flag, value, want string }{
		{"--bind", "7946", `--bind "7946"; accepted is HOST:PORT`},
		{"--advertise", "here", `--advertise "here"; accepted is HOST:PORT`},
		{"--advertise", "0.0.0.0:1", `--advertise "0.0.0.0:1"; accepted is HOST:PORT`},
		{"--join", "there", `--join "there"; accepted is HOST:PORT`},
	} {
		code, _, errs := gradwireHere("node", "--identity", s.path("a"), "--out", s.path("out"), wrong.flag,
			wrong.value)
		if code != cli.ExitInput || !strings.Contains(errs, wrong.want) {
			t.Errorf("%s %s: code %d: %s", wrong.flag, wrong.value, code, errs)
		}
	}
}

// A node in a container is bound to every address, and others reach it nevertheless.
func TestNodeBoundToEveryAddressAdvertisesOneAndSaysSo(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	s := newSite(t)
	for _, name := range []string{"a", "b"} {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
		p := s.program("node", "--bind", "0.0.0.0:0", "--identity", name, "--join", s.seed, "--out", "records-"+name,
			"--node-timeout", "7s")
		h := listen(t, p)
		s.await("ready", h.has("ready at "))
		if h.find("--advertise HOST:PORT says another") == "" {
			t.Error("it does not say what it advertises")
		}
		s.nodes[name] = p
		if s.seed == "" {
			s.seed = strings.TrimPrefix(h.find("ready at "), "ready at ")
			s.join = s.seed
		}
	}
	s.await("cluster", func() bool { return strings.Count(s.must("nodes"), "\n") == 3 })
	s.await("node timeouts", func() bool { return strings.Count(s.must("nodes"), " 7 s ") == 2 })
	for name := range s.nodes {
		endsWithin(t, s.nodes[name], syscall.SIGTERM)
	}
}
