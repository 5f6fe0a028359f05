//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// together makes a step every 20 ms, each of which needs all peers.
const together = `name: together
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce, algorithm: ring}
nodes: [{name: peer, count: 4, compute: {step: 20ms}}]
evaluate: {every: 1s}
record: events
stop: {time: 10s}
`

const placedApart = "--place=peer1=a --place=peer2=b --place=peer3=c --place=peer4=d"

// step is the end of a step in the record of events.
type step struct {
	Time  float64 `json:"time_s"`
	Node  string  `json:"node"`
	Event string  `json:"event"`
	Step  uint64  `json:"step"`
}

// stepsOf reads the ends of a node's steps from a run's record.
func (s *site) stepsOf(record, node string) (at []time.Duration) {
	s.t.Helper()
	f, err := os.Open(s.path(filepath.Join(record, "runs", "0000", "events.jsonl")))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var end step
		if err := json.Unmarshal(lines.Bytes(), &end); err != nil {
			s.t.Fatal(err)
		}
		if end.Node == node && end.Event == "step" {
			at = append(at, time.Duration(end.Time*float64(time.Second)))
		}
	}
	return at
}

// longest is the longest time between two steps that follow each other, and when it began.
func longest(at []time.Duration) (pause, from time.Duration) {
	for i := 1; i < len(at); i++ {
		if d := at[i] - at[i-1]; d > pause {
			pause, from = d, at[i-1]
		}
	}
	return pause, from
}

// beginTogether starts the run on four processes, and returns when it makes steps.
func (s *site) beginTogether(set ...string) (id string) {
	s.t.Helper()
	s.write("plan.yaml", together)
	args := append([]string{"submit", s.path("plan.yaml"), "--detach"}, strings.Fields(placedApart)...)
	for _, assignment := range set {
		args = append(args, "--set", assignment)
	}
	id = strings.TrimSpace(s.must(args...))
	s.await("beginning", s.logged(id, "began on a, b, c, d"))
	s.await("progress", func() bool { return s.status(id).Share > 0.1 })
	return id
}

// endTogether waits for the end of the run, and returns the steps of a node that was there all the
// time.
func (s *site) endTogether(id, state string) []time.Duration {
	s.t.Helper()
	s.ends(id, state, s.path("fetched"))
	return s.stepsOf("fetched", "peer1")
}

func TestEveryArchitectureGoesOnSoonAfterAProcessIsKilled(t *testing.T) {
	lengthy(t)
	t.Parallel()
	all := []string{"all-reduce", "gossip", "d-psgd", "ad-psgd, graph: exponential", "gossip-learning, period: 20ms",
		"noloco, every: 5"}
	for i, architecture := range all {
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(all), 3)
			site := settle(t, "a", "b", "c", "d")
			id := site.beginTogether("architecture={kind: " + architecture + "}")
			killed := time.Now()
			site.kill("d")
			site.await("news of d", site.logged(id, "without d from now on"))
			noticed := site.when(id, "without d from now on").Sub(killed)
			steps := site.endTogether(id, driver.Done)
			pause, from := longest(steps)
			t.Logf("%s, kill -9: out of the view after %v; the longest pause between two steps was %v, from %v on",
				architecture, noticed.Round(time.Millisecond), pause.Round(time.Millisecond),
				from.Round(time.Millisecond))
			if noticed > 2*time.Second || pause > 3*time.Second {
				t.Errorf("noticed after %v, steps paused for %v; want at most 2 s and 3 s", noticed, pause)
			}
			if last := steps[len(steps)-1]; last < 9*time.Second {
				t.Errorf("the last step was at %v of 10 s", last)
			}
		})
	}
}

func TestProcessThatIsStoppedIsDoneWithoutAndTakenInAgainWhenItGoesOn(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	site := settle(t, "a", "b", "c", "d")
	id := site.beginTogether("stop.time=20s")
	stopped := time.Now()
	site.signal(syscall.SIGSTOP, "d")
	site.await("news of d", site.logged(id, "without d from now on"))
	noticed := site.when(id, "without d from now on").Sub(stopped)
	time.Sleep(2 * time.Second) // in which the others go on
	continued := time.Now()
	site.signal(syscall.SIGCONT, "d")
	site.await("return of d", site.logged(id, "d is back"))
	back := site.when(id, "d is back").Sub(continued)
	steps := site.endTogether(id, driver.Done)
	pause, from := longest(steps)
	t.Logf("SIGSTOP: out of the view after %v; the longest pause between two rounds of all-reduce was %v, from %v on; "+
		"back %v after SIGCONT", noticed.Round(time.Millisecond), pause.Round(time.Millisecond),
		from.Round(time.Millisecond), back.Round(time.Millisecond))
	if noticed > 6*time.Second || pause > 10*time.Second || back > 15*time.Second {
		t.Errorf("noticed after %v, rounds paused for %v, back after %v", noticed, pause, back)
	}
	if last := steps[len(steps)-1]; last < 19*time.Second {
		t.Errorf("the last round was at %v of 20 s", last)
	}
	if again := site.stepsOf("fetched", "peer4"); len(again) == 0 || again[len(again)-1] < 19*time.Second {
		t.Errorf("the node that was stopped makes no steps at the end: %d in all\n%s",
			len(again), site.must("logs", id))
	}
}

func TestRunWhoseWorkersAreAllKilledEndsAndNamesThem(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	site := settle(t, "a", "b")
	site.write("plan.yaml", strings.Replace(asynchronous, "{time: 1h}", "{epochs: 100000}", 1))
	id := strings.TrimSpace(site.must("submit", site.path("plan.yaml"), "--place", "server=a", "--place", "worker=b",
		"--detach"))
	site.await("progress", func() bool { return site.status(id).Share > 0 })
	site.kill("b")
	site.await("end", func() bool { return site.status(id).State != driver.Running })
	s := site.status(id)
	if s.State != driver.Failed || !strings.Contains(s.Error, "standstill") ||
		!strings.Contains(s.Error, "without process b: it is gone") {
		t.Errorf("%+v", s)
	}
}

func TestProcessThatIsStartedAgainTellsWhatItsCrashInterrupted(t *testing.T) {
	turns.Take(t, 1, 2)
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	site := settle(t, "b", "a")
	a := site.addresses()["a"]
	site.write("plan.yaml", strings.Replace(asynchronous, "{time: 1h}", "{steps: 300}", 1)+"repeats: 100\n")
	submit := func(set ...string) string {
		return strings.TrimSpace(site.must(append([]string{"submit", site.path("plan.yaml"), "--detach", "--join", a},
			set...)...))
	}
	done := submit("--repeats=1")
	site.ends(done, driver.Done, site.path("whole"))
	running, waiting := submit(), submit()
	site.await("finished run", func() bool { return site.status(running).Done > 0 })
	following := site.program(site.flags("submit", "plan.yaml", "--join", a)...)
	heard := listen(t, following)
	site.await("queue", heard.has("waits for what was submitted to node a before: "+running+", "+waiting))
	site.kill("a")
	site.await("end of the command", heard.has("can no longer be followed: the connection with the process has broken"))
	if s := following.end(t); s.ExitStatus() != cli.ExitFailed {
		t.Errorf("submit ends with %v", s)
	}
	const ledger = "records-a/submissions-a.jsonl"
	text, err := os.ReadFile(site.path(ledger))
	if err != nil {
		t.Fatal(err)
	}
	site.write(ledger, string(text)+`{"id": "half-writ`)
	a = site.start("a")
	for id, want := range map[string]string{done: driver.Done, running: driver.Interrupted,
		waiting: driver.Interrupted} {
		s := site.status(id)
		if s.State != want || s.Folder != "records-a/asynchronous-"+id && s.Folder != "records-a/plan-"+id ||
			!s.Over() {
			t.Errorf("%+v, want %s", s, want)
		}
		if want == driver.Interrupted && !strings.Contains(s.Error, "the process ended while this was ") {
			t.Errorf("%+v", s)
		}
	}
	if code, _, errs := site.run("stop", running); code != cli.ExitInput || !strings.Contains(errs, "is over already") {
		t.Errorf("code %d: %s", code, errs)
	}
	out := site.must("submissions")
	if strings.Count(out, driver.Interrupted) != 3 || strings.Contains(out, driver.Running) {
		t.Error(out)
	}
	site.must("fetch", running, "--out", site.path("part"))
	if s, err := record.ReadSummary(site.path("part")); err != nil || s.Complete || len(s.Runs) == 0 ||
		s.RunsPlanned != 100 {
		t.Errorf("%+v, %v", s, err)
	}
	again := submit("--repeats=1") // it works as before
	site.ends(again, driver.Done, site.path("again"))
}
