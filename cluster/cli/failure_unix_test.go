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
func stepsOf(t *testing.T, dir, node string) (at []time.Duration) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "runs", "0000", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		if s.Node == node && s.Event == "step" {
			at = append(at, time.Duration(s.Time*float64(time.Second)))
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

// when is the time at which something was logged of a run.
func when(t *testing.T, id, what string) time.Time {
	t.Helper()
	for line := range strings.Lines(must(t, "logs", id)) {
		if strings.Contains(line, what) {
			text, _, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("nothing was logged about %s", what)
	return time.Time{}
}

// beginTogether starts the run on four processes, and returns when it makes steps.
func beginTogether(t *testing.T, set ...string) (id string) {
	t.Helper()
	write(t, "plan.yaml", together)
	args := append([]string{"submit", "plan.yaml", "--detach"}, strings.Fields(placedApart)...)
	for _, s := range set {
		args = append(args, "--set", s)
	}
	id = strings.TrimSpace(must(t, args...))
	await(t, "beginning", logged(t, id, "began on a, b, c, d"))
	await(t, "progress", func() bool { return status(t, id).Share > 0.1 })
	return id
}

// endTogether waits for the end of the run, and returns the steps of a node that was there all the time.
func endTogether(t *testing.T, id, state string) []time.Duration {
	t.Helper()
	await(t, "end", func() bool { return status(t, id).State != driver.Running })
	if s := status(t, id); s.State != state {
		t.Fatalf("%+v, want %s\n%s", s, state, must(t, "logs", id))
	}
	must(t, "fetch", id, "--out", "fetched")
	return stepsOf(t, "fetched", "peer1")
}

func TestEveryArchitectureGoesOnSoonAfterAProcessIsKilled(t *testing.T) {
	lengthy(t)
	for _, architecture := range []string{"all-reduce", "gossip", "d-psgd", "ad-psgd, graph: exponential"} {
		t.Run(architecture, func(t *testing.T) {
			_, nodes := settle(t, "a", "b", "c", "d")
			id := beginTogether(t, "architecture={kind: "+architecture+"}")
			killed := time.Now()
			kill(t, nodes["d"])
			await(t, "news of d", logged(t, id, "without d from now on"))
			noticed := when(t, id, "without d from now on").Sub(killed)
			steps := endTogether(t, id, driver.Done)
			pause, from := longest(steps)
			t.Logf("%s, kill -9: out of the view after %v; the longest pause between two steps was %v, from %v on", architecture,
				noticed.Round(time.Millisecond), pause.Round(time.Millisecond), from.Round(time.Millisecond))
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
	if testing.Short() {
		t.Skip("starts and stops processes")
	}
	_, nodes := settle(t, "a", "b", "c", "d")
	id := beginTogether(t, "stop.time=15s")
	stopped := time.Now()
	if err := nodes["d"].Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "news of d", logged(t, id, "without d from now on"))
	noticed := when(t, id, "without d from now on").Sub(stopped)
	time.Sleep(2 * time.Second) // in which the others go on
	continued := time.Now()
	if err := nodes["d"].Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "return of d", logged(t, id, "d is back"))
	back := when(t, id, "d is back").Sub(continued)
	steps := endTogether(t, id, driver.Done)
	pause, from := longest(steps)
	t.Logf("SIGSTOP: out of the view after %v; the longest pause between two rounds of all-reduce was %v, from %v on; back %v after SIGCONT",
		noticed.Round(time.Millisecond), pause.Round(time.Millisecond), from.Round(time.Millisecond), back.Round(time.Millisecond))
	if noticed > 6*time.Second || pause > 10*time.Second || back > 15*time.Second {
		t.Errorf("noticed after %v, rounds paused for %v, back after %v", noticed, pause, back)
	}
	if last := steps[len(steps)-1]; last < 14*time.Second {
		t.Errorf("the last round was at %v of 15 s", last)
	}
	if again := stepsOf(t, "fetched", "peer4"); len(again) == 0 || again[len(again)-1] < 14*time.Second {
		t.Errorf("the node that was stopped makes no steps at the end: %d in all", len(again))
	}
}

func TestRunWhoseWorkersAreAllKilledEndsAndNamesThem(t *testing.T) {
	lengthy(t)
	_, nodes := settle(t, "a", "b")
	write(t, "plan.yaml", strings.Replace(asynchronous, "{time: 1h}", "{epochs: 100000}", 1))
	id := strings.TrimSpace(must(t, "submit", "plan.yaml", "--place", "server=a", "--place", "worker=b", "--detach"))
	await(t, "progress", func() bool { return status(t, id).Share > 0 })
	kill(t, nodes["b"])
	await(t, "end", func() bool { return status(t, id).State != driver.Running })
	if s := status(t, id); s.State != driver.Failed || !strings.Contains(s.Error, "standstill") || !strings.Contains(s.Error, "without process b: it is gone") {
		t.Errorf("%+v", s)
	}
}

func TestProcessThatIsStartedAgainTellsWhatItsCrashInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	seed, nodes := settle(t, "b", "a")
	var all []driver.Node
	if err := json.Unmarshal([]byte(must(t, "nodes", "--format", "json")), &all); err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	a := all[0].Address
	write(t, "plan.yaml", strings.Replace(asynchronous, "{time: 1h}", "{time: 1s}", 1)+"repeats: 100\n")
	submit := func(set ...string) string {
		return strings.TrimSpace(must(t, append([]string{"submit", "plan.yaml", "--detach", "--join", a}, set...)...))
	}
	done := submit("--repeats=1")
	await(t, "end", func() bool { return status(t, done).State == driver.Done })
	running, waiting := submit(), submit()
	await(t, "finished run", func() bool { return status(t, running).Done > 0 })
	following := newProgram(t, "submit", "plan.yaml", "--join", a)
	heard := listen(t, following)
	await(t, "queue", heard.has("waits for what was submitted to node a before: "+running+", "+waiting))
	kill(t, nodes["a"])
	await(t, "end of the command", heard.has("can no longer be followed: the connection with the process has broken"))
	if s := following.end(t); s.ExitStatus() != cli.ExitFailed {
		t.Errorf("submit ends with %v", s)
	}
	const ledger = "records-a/submissions-a.jsonl"
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ledger, string(text)+`{"id": "half-writ`)
	_, a = startNode(t, "a", seed)
	for id, want := range map[string]string{done: driver.Done, running: driver.Interrupted, waiting: driver.Interrupted} {
		s := status(t, id)
		if s.State != want || s.Folder != "records-a/asynchronous-"+id && s.Folder != "records-a/plan-"+id || !s.Over() {
			t.Errorf("%+v, want %s", s, want)
		}
		if want == driver.Interrupted && !strings.Contains(s.Error, "the process ended while this was ") {
			t.Errorf("%+v", s)
		}
	}
	if code, _, errs := gradwire(t, "stop", running); code != cli.ExitInput || !strings.Contains(errs, "is over already") {
		t.Errorf("code %d: %s", code, errs)
	}
	if out := must(t, "submissions"); strings.Count(out, driver.Interrupted) != 3 || strings.Contains(out, driver.Running) {
		t.Error(out)
	}
	must(t, "fetch", done, "--out", "whole")
	must(t, "fetch", running, "--out", "part")
	if s, err := record.ReadSummary("part"); err != nil || s.Complete || len(s.Runs) == 0 || s.RunsPlanned != 100 {
		t.Errorf("%+v, %v", s, err)
	}
	again := submit("--repeats=1") // it works as before
	await(t, "end", func() bool { return status(t, again).State == driver.Done })
}
