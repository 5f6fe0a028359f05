//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/turns"
)

// rolled is a run on five processes that outlasts the restart of all of them.
const rolled = `name: rolled
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: %s
nodes:
%s
network: {default: {delay: 2ms}}
evaluate: {every: 1s}
record: events
checkpoint: {every: 2s}
stop: {time: %v}
`

// speaking builds this test's program, which also runs as gradwire, for other versions of the
// protocol.
func speaking(t *testing.T, dir string, oldest, newest byte) string {
	t.Helper()
	source, err := filepath.Abs("../protocol/protocol.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	own := protocol.Spoken()
	changed := edit(t, string(text), fmt.Sprintf("newest = %d\n", own.Newest), fmt.Sprintf("newest = %d\n", newest))
	changed = edit(t, changed, fmt.Sprintf("oldest = %d\n", own.Oldest), fmt.Sprintf("oldest = %d\n", oldest))
	name := filepath.Join(dir, fmt.Sprintf("speaks-%d-%d", oldest, newest))
	write(t, name+".go", changed)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: name + ".go"}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, name+".json", string(overlay))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", name, "-overlay", name+".json", ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// TestRunGoesOnWhileAllItsProcessesAreUpgraded restarts the five processes of a run in turn, each
// with a build that also speaks the next version of the protocol. The run loses nothing: each
// conductor resumes from the state that the previous conductor saved when it left, and the servers
// apply each step of a worker.
func TestRunGoesOnWhileAllItsProcessesAreUpgraded(t *testing.T) {
	lengthy(t)
	rows := []struct {
		name, lead, architecture string
		nodes                    []string
	}{
		{
			"asp with replicas", "a", "{kind: parameter-server, consistency: asp, servers: {shard: 1 kB, replicas: 1}}",
			[]string{
				"  - {name: server, count: 5, role: server}",
				"  - {name: worker, count: 5, role: worker, compute: {step: 20ms}}",
			},
		},
		{
			"one server", "e", "{kind: parameter-server, consistency: bsp}",
			[]string{
				"  - {name: server, role: server}",
				"  - {name: worker, count: 4, role: worker, compute: {step: 20ms}}",
			},
		},
		{
			"ring", "a", "{kind: all-reduce, algorithm: ring}",
			[]string{"  - {name: peer, count: 5, compute: {step: 20ms}}"},
		},
	}
	for i, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			turns.Row(t, i, len(rows), 3)
			other := speaking(t, t.TempDir(), protocol.Spoken().Newest, protocol.Spoken().Newest+1)
			plan := fmt.Sprintf(rolled, row.architecture, strings.Join(row.nodes, "\n"), time.Minute)
			site := settle(t, "a", "b", "c", "d", "e")
			u := &upgrade{succession: (&succession{site: site, runs: 1}).begin(plan, row.lead)}
			t.Cleanup(u.logNodes)
			u.await("run", func() bool { return u.now().Share > 0.05 })
			u.executable = other
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				u.restart(name)
			}
			lead := u.now().Process
			u.following.end(t)
			u.expectNothingLost()
			if row.name != "ring" {
				u.expectEachStepApplied()
			}
			u.expectAllHostAgain(lead)
		})
	}
}

// upgrade is a cluster whose processes are restarted while a submission runs.
type upgrade struct {
	*succession
	stopped []time.Time // times of the SIGTERMs that each ended a part of the run
}

// logNodes logs the last output of each process and of the submitting program, after a failure.
func (u *upgrade) logNodes() {
	if !u.t.Failed() {
		return
	}
	said := maps.Clone(u.said)
	said["submit"] = u.heard
	for name, h := range said {
		h.mu.Lock()
		u.t.Logf("%s: %s", name, strings.Join(h.lines[max(0, len(h.lines)-20):], "\n"))
		h.mu.Unlock()
	}
}

// restart stops a process, starts it with the other build, and waits until the run makes progress
// again.
func (u *upgrade) restart(name string) {
	u.t.Helper()
	u.shun(name)
	now := u.status(u.id)
	if now.Over() {
		u.t.Skipf("the run was over before %s was restarted: the machine is busy", name)
	}
	conducts, before := now.Process == name, len(u.parts())
	began := time.Now()
	u.signal(syscall.SIGTERM, name)
	if status := u.nodes[name].end(u.t); status.ExitStatus() != cli.ExitDone {
		u.t.Errorf("%s ended with %v: %v", name, status, u.said[name].lines)
	}
	gone := time.Since(began)
	u.start(name)
	u.await("return of "+name, func() bool {
		all := u.members()
		return len(all) == 5 && !slices.ContainsFunc(all, func(n driver.Node) bool { return n.Leaves })
	})
	u.t.Logf("%s, which conducts: %v, has gone after %v and is back after %v", name, conducts,
		gone.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	u.await("return to the run, or its continuation", func() bool {
		if len(u.parts()) == before+1 {
			u.stopped = append(u.stopped, began)
			return true
		}
		return !conducts && u.logged(u.id, name+" is back")()
	})
	share := u.now().Share
	u.await("progress", func() bool { return u.now().Share > share })
	u.await("three copies", func() bool { now := u.now(); return len(now.Holders) == 3 && len(now.Lacking) == 0 })
}

// part is a part of the run: its start, and the times on the run's clock from which it resumed and
// at which it was last saved.
type part struct {
	began    time.Time
	from, to time.Duration
	saved    bool // a leaving process saved it
}

// parts returns the parts of the run that the log shows. Successive parts differ in their
// conductor or their processes.
func (u *upgrade) parts() (all []part) {
	u.t.Helper()
	next := part{}
	for line := range strings.Lines(u.must("logs", u.id)) {
		at, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		duration := func(text string) time.Duration {
			d, err := time.ParseDuration(text)
			if err != nil {
				u.t.Fatal(err)
			}
			return d
		}
		if _, from, is := strings.Cut(text, " goes on from its checkpoint at "); is {
			next.from = duration(from)
		}
		if to, is := strings.CutPrefix(text, "is saved at "); is && len(all) > 0 {
			to, _, _ = strings.Cut(to, ",")
			all[len(all)-1].to, all[len(all)-1].saved = duration(to), true
		}
		if strings.HasPrefix(text, "began on ") {
			began, err := time.Parse(time.RFC3339, at)
			if err != nil {
				u.t.Fatal(err)
			}
			next.began = began
			all = append(all, next)
		}
	}
	return all
}

// expectNothingLost checks that each part of the run resumes from the state that the previous part
// saved last, and that at most 2 s lie between that state and the SIGTERM. The wall clock measures
// those 2 s. It can be ahead of the run's clock, which starts after the log says that the run
// began.
func (u *upgrade) expectNothingLost() {
	u.t.Helper()
	all := u.parts()
	if len(all) != 1+len(u.stopped) || len(u.stopped) == 0 {
		u.t.Fatalf("%d parts, but %d stops:\n%s", len(all), len(u.stopped), u.must("logs", u.id))
	}
	for i, at := range u.stopped {
		before, next := all[i], all[i+1]
		lost := before.from + at.Sub(before.began) - next.from
		u.t.Logf("part %d: saved at %v; the next goes on from %v after %v, with %v lost", i, before.to, next.from,
			next.began.Sub(at).Round(time.Millisecond), max(lost, 0))
		if !before.saved || next.from != before.to || lost > 2*time.Second {
			u.t.Errorf("part %d: saved: %v at %v, but the next goes on from %v: %v are lost\n%s", i, before.saved,
				before.to, next.from, lost, u.must("logs", u.id))
		}
	}
}

// lane identifies the pushes of one incarnation of a worker to one shard.
type lane struct {
	worker string
	shard  int
	life   uint64
}

// updates counts, in the recorded events, the steps of each worker and the updates that each of
// its pushes caused.
func (u *upgrade) updates() (steps map[string]int, applied map[lane]map[uint64]int) {
	u.t.Helper()
	text, err := os.ReadFile(u.path("fetched/runs/0000/events.jsonl"))
	if err != nil {
		u.t.Fatal(err)
	}
	steps, applied = map[string]int{}, map[lane]map[uint64]int{}
	for line := range strings.Lines(string(text)) {
		var e struct {
			Node, Event, Origin string
			Shard               int
			Life, Push          uint64
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			u.t.Fatal(err)
		}
		switch e.Event {
		case "step":
			steps[e.Node]++
		case "update":
			at := lane{e.Origin, e.Shard, e.Life}
			if applied[at] == nil {
				applied[at] = map[uint64]int{}
			}
			applied[at][e.Push]++
		}
	}
	return steps, applied
}

// expectEachStepApplied checks that every shard applied each push of each worker exactly once, and
// that each step has a push. The last push of each incarnation of a worker may have been in flight
// when the run ended or the worker's process left.
func (u *upgrade) expectEachStepApplied() {
	u.t.Helper()
	steps, applied := u.updates()
	pushes, lives := map[string]map[int]int{}, map[string]map[int]int{}
	for at, of := range applied {
		if pushes[at.worker] == nil {
			pushes[at.worker], lives[at.worker] = map[int]int{}, map[int]int{}
		}
		pushes[at.worker][at.shard] += len(of)
		lives[at.worker][at.shard]++
		latest, times := slices.Max(slices.Collect(maps.Keys(of))), slices.Max(slices.Collect(maps.Values(of)))
		if latest != uint64(len(of)) || times > 1 {
			u.t.Errorf("%d pushes of %s were applied at shard %d, one of them %d times; the latest was %d", len(of),
				at.worker, at.shard, times, latest)
		}
	}
	for worker, n := range steps {
		missing := 0
		for shard, m := range pushes[worker] {
			if missing = max(missing, n-m); n-m > lives[worker][shard] {
				u.t.Errorf("%s made %d steps, but shard %d applied %d", worker, n, shard, m)
			}
		}
		u.t.Logf("%s made %d steps; at most %d pushes were in flight at an end", worker, n, missing)
	}
}

// expectAllHostAgain checks that the next run has nodes on all processes.
func (u *upgrade) expectAllHostAgain(lead string) {
	u.t.Helper()
	next := strings.Replace(shortRuns, "count: 3", "count: 5", 1)
	u.write("next.yaml", strings.Replace(next, "steps: 80", "steps: 10", 1))
	id := strings.TrimSpace(u.must("submit", u.path("next.yaml"), "--join", u.addresses()[lead], "--detach"))
	u.ends(id, driver.Done, u.path("next"))
	hosts := map[string]bool{}
	for _, process := range u.status(id).Placement {
		hosts[process] = true
	}
	if len(hosts) != 5 {
		u.t.Errorf("the next run is on %v", u.status(id).Placement)
	}
}

// The cluster refuses a process whose build shares no version of the protocol with it. Both sides
// name the process and say which side to upgrade; the process ends with the exit code for bad
// input. After an upgrade of the cluster the process joins.
func TestProcessOfAnotherProtocolIsRefusedByName(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	s := newSite(t)
	now := protocol.Spoken().Newest
	both, next := speaking(t, s.dir, now, now+1), speaking(t, s.dir, now+1, now+1)
	for _, name := range []string{"a", "b", "c"} {
		s.must("identity", "issue", s.path("ca"), "--node", name, "--out", s.path(name))
	}
	s.join = s.start("a")
	s.seed = s.join
	s.executable = both
	s.start("b")
	refuse := func(name, executable, want string) {
		t.Helper()
		p := s.program("node", "--name", name, "--bind", "127.0.0.1:0", "--identity", name, "--join", s.seed, "--out",
			"records-"+name)
		if p.Path = executable; executable == "" {
			p.Path = os.Args[0]
		}
		p.start(t)
		status := p.end(t)
		if said := p.out.String() + p.errs.String(); status.ExitStatus() != cli.ExitInput ||
			!strings.Contains(said, want) {
			t.Errorf("%s ended with %v: %s\nwant: %s", name, status, said, want)
		}
		s.await("word of "+name, func() bool {
			out := s.must("nodes")
			return strings.Contains(out, "not let in: process "+name+" (build ") && strings.Contains(out, want)
		})
	}
	refuse("c", next, fmt.Sprintf(" speaks protocol %d, this cluster %d: first upgrade the others to a build that "+
		"speaks both", now+1, now))
	s.join = s.addresses()["b"]
	s.seed = s.join
	s.signal(syscall.SIGTERM, "a")
	s.nodes["a"].end(t)
	s.await("the departure of a", func() bool { return len(s.members()) == 1 })
	s.executable = next
	s.start("c")
	refuse("a", "", fmt.Sprintf(" speaks protocol %d, this cluster %d: upgrade a", now, now+1))
	s.executable = both
	s.start("a")
	s.await("all", func() bool { return len(s.members()) == 3 })
	if out := s.must("nodes"); strings.Contains(out, "not let in") {
		t.Error(out)
	}
}

// A process that receives SIGTERM accepts no submission while it saves its run. The save waits for
// a silent process of the run. Other processes see that the process is leaving.
func TestProcessThatLeavesTakesNoSubmission(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	s := begin(t, savedRun, 1, "a", "b", "c")
	s.await("run", func() bool { return s.now().Share > 0.05 })
	s.shun("a")
	silent := ""
	for _, process := range s.now().Placement {
		if process != "a" && s.addresses()[process] != s.join {
			silent = process
		}
	}
	at := s.addresses()["a"]
	s.signal(syscall.SIGSTOP, silent)
	s.signal(syscall.SIGTERM, "a")
	s.await("word that a leaves", func() bool {
		return slices.ContainsFunc(s.members(), func(n driver.Node) bool { return n.Name == "a" && n.Leaves })
	})
	if out := s.must("nodes"); !strings.Contains(out, ", leaves") {
		t.Error(out)
	}
	code, _, errs := s.run("submit", s.path("plan.yaml"), "--join", at, "--detach")
	if code != cli.ExitTryAgain || !strings.Contains(errs, "process a is about to leave the cluster") {
		t.Errorf("code %d: %s", code, errs)
	}
	s.signal(syscall.SIGCONT, silent)
	s.nodes["a"].end(t)
	s.whole()
}
