//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/turns"
)

// shortRuns is a plan of runs of about a second that can lose any process. They end by steps: a time
// bound would end them while nodes wait for a busy machine.
const shortRuns = `name: several
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: gossip}
nodes: [{name: peer, count: 3, compute: {step: 10ms}}]
evaluate: {every: 200ms}
stop: {steps: 80}
`

// succession is a cluster in which a submission is followed whose process is then killed.
type succession struct {
	*site
	id        string
	runs      int
	following *program
	heard     *heard
}

// beginSeveral submits the plan of short runs to process a.
func beginSeveral(t *testing.T, runs int, names ...string) *succession {
	t.Helper()
	return begin(t, shortRuns, runs, names...)
}

// begin submits a plan to process a.
func begin(t *testing.T, plan string, runs int, names ...string) *succession {
	t.Helper()
	return (&succession{site: settle(t, names...), runs: runs}).begin(plan, "a")
}

// begin submits a plan to the process of a name.
func (s *succession) begin(plan, name string) *succession {
	s.t.Helper()
	s.write("plan.yaml", plan)
	s.following = s.program(s.flags("submit", "plan.yaml", "--join", s.addresses()[name], "--out", "fetched",
		"--repeats", fmt.Sprint(s.runs))...)
	s.heard = listen(s.t, s.following)
	s.await("submission", s.heard.has("submission "))
	s.id = strings.TrimPrefix(s.heard.find("submission "), "submission ")
	return s
}

// shun has commands ask another process than one.
func (s *succession) shun(name string) {
	for other, address := range s.addresses() {
		if other != name {
			s.join, s.seed = address, address
		}
	}
}

// now is the submission as far as anybody knows who answers: for a moment nobody may.
func (s *succession) now() (now driver.Submission) {
	if _, out, _ := s.run("status", s.id, "--format", "json"); json.Unmarshal([]byte(out), &now) != nil {
		return driver.Submission{}
	}
	return now
}

// survive kills the process that carries the submission out, and returns which one goes on, and how
// long it takes until that one has a run begin.
func (s *succession) survive(from string) (to string, took time.Duration) {
	s.t.Helper()
	return s.outlive(from, os.Kill)
}

// outlive is survive with a signal.
func (s *succession) outlive(from string, sig os.Signal) (to string, took time.Duration) {
	s.t.Helper()
	s.shun(from)
	killed := time.Now()
	if s.signal(sig, from); sig == os.Kill {
		s.nodes[from].end(s.t)
	} else {
		defer s.nodes[from].end(s.t)
	}
	s.await("successor", func() bool {
		now := s.now()
		to = now.Process
		return to != "" && now.Away.IsZero() && to != from
	})
	began := func() (at time.Time) {
		for line := range strings.Lines(s.must("logs", s.id)) {
			text, what, _ := strings.Cut(line, " ")
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				s.t.Fatal(err)
			}
			if at.IsZero() && when.After(killed) && strings.HasPrefix(what, "began on ") {
				at = when
			}
		}
		return at
	}
	s.await("run", func() bool {
		now := s.status(s.id)
		return !began().IsZero() || now.Over()
	})
	if at := began(); !at.IsZero() {
		took = at.Sub(killed)
	}
	return to, took
}

// whole expects the command to end with the whole record, and no run to have been made twice.
func (s *succession) whole() {
	s.t.Helper()
	status := s.following.end(s.t)
	dir := s.path("fetched")
	summary, err := record.ReadSummary(dir)
	if err != nil {
		s.heard.mu.Lock()
		defer s.heard.mu.Unlock()
		s.t.Fatalf("%v; the command ended with %v:\n%s", err, status, strings.Join(s.heard.lines, "\n"))
	}
	if code := status.ExitStatus(); code != cli.ExitDone && (code != cli.ExitDegraded || !onlyLate(s.t, dir)) {
		s.t.Errorf("the command ended with %v", status)
	}
	if len(summary.Runs) != s.runs || !summary.Complete && !onlyLate(s.t, dir) {
		s.t.Errorf("%d runs of %d, complete: %v", len(summary.Runs), summary.RunsPlanned, summary.Complete)
		for _, r := range summary.Runs {
			if r.Outcome != record.Done {
				s.t.Logf("run %d is %s: %+v", r.Number, r.Outcome, r.Incidents)
			}
		}
	}
	log := s.must("logs", s.id)
	kept, made := "", log // by the last process
	if at := strings.LastIndex(log, "goes on at process"); at >= 0 {
		made = log[at:]
		_, kept, _ = strings.Cut(made, ", with ")
		kept, _, _ = strings.Cut(kept, " of ")
	}
	n := strings.Count(made, " done: seed ") + strings.Count(made, " degraded: seed ")
	if fmt.Sprint(s.runs-n) != kept {
		s.t.Errorf("%q of %d runs were there, and %d were made\n%s", kept, s.runs, n, log)
	}
	if list := s.must("submissions"); strings.Count(list, s.id) != 1 {
		s.t.Errorf("the submission is listed more than once:\n%s", list)
	}
}

func TestSubmissionSurvivesTheProcessThatCarriesItOut(t *testing.T) {
	turns.Take(t, 0, 2)
	if testing.Short() {
		t.Skip("starts and kills processes")
	}
	s := beginSeveral(t, 6, "a", "b", "c")
	s.await("finished run", func() bool { return s.status(s.id).Done > 0 })
	to, took := s.survive("a")
	t.Logf("process %s goes on after %v", to, took.Round(time.Millisecond))
	s.whole()
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	s.start("a") // which finds that it has lost the submission
	s.await("one record", func() bool {
		records, err := filepath.Glob(s.path("records-*/plan-*"))
		return err == nil && len(records) == 1
	})
	if list := s.must("submissions"); strings.Count(list, s.id) != 1 {
		t.Errorf("the submission is listed more than once:\n%s", list)
	}
	s.shun(to)
	s.kill(to)
	s.await("copy of the record", func() bool { now := s.now(); return now.Over() && now.Process != to })
	s.must("fetch", s.id, "--out", s.path("copied"))
	original, err := os.ReadFile(s.path("fetched/summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(s.path("copied/summary.json")); err != nil || string(text) != string(original) {
		t.Errorf("the copy's summary is %s, %v", text, err)
	}
	if log := s.must("logs", s.id); !strings.Contains(log, "copy of the record in ") {
		t.Error(log)
	}
	if code, _, errs := s.run("remove", s.id); code != cli.ExitTryAgain || !strings.Contains(errs, "is a copy") {
		t.Errorf("the copy is removed: %d, %s", code, errs)
	}
}

func TestSubmissionIsHandedOverByAProcessThatLeaves(t *testing.T) {
	turns.Take(t, 1, 2)
	if testing.Short() {
		t.Skip("starts and ends processes")
	}
	if took := handOver(t, 1); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A process that leaves hands over sooner than the others could notice its death, in the median.
func TestSubmissionIsHandedOverSoon(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	if took := handOver(t, 5); took > 2*time.Second {
		t.Errorf("it took %v in the median", took)
	}
}

// handOver ends the process that carries out a submission a number of times, and returns the median time
// until another process begins a run.
func handOver(t *testing.T, times int) time.Duration {
	t.Helper()
	s := beginSeveral(t, 4+6*times, "a", "b", "c", "d")
	at := "a"
	var all []time.Duration
	for range times {
		done := s.status(s.id).Done
		s.await("finished run", func() bool { return s.status(s.id).Done > done })
		to, took := s.outlive(at, syscall.SIGTERM)
		t.Logf("%s leaves, and %s begins a run after %v", at, to, took.Round(time.Millisecond))
		all = append(all, took)
		s.await("holder instead", func() bool { return !slices.Contains(s.status(s.id).Holders, at) })
		s.start(at)
		at = to
	}
	s.whole()
	slices.Sort(all)
	return all[len(all)/2]
}

func TestSubmissionSurvivesManyProcesses(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	s := beginSeveral(t, 80, "a", "b", "c", "d", "e", "f") // some are left when the last is replaced
	at, before := "a", ""
	for loss := range 5 {
		done := s.status(s.id).Done
		s.await("finished run", func() bool { return s.status(s.id).Done > done })
		victim, began := at, time.Now()
		if loss%2 == 1 {
			held := s.status(s.id).Holders
			victim = held[slices.IndexFunc(held, func(name string) bool { return name != at })]
			s.shun(victim)
			s.kill(victim)
		} else {
			var took time.Duration
			at, took = s.survive(victim)
			t.Logf("%s begins a run %v after the kill of %s", at, took.Round(time.Millisecond), victim)
		}
		s.await("holder instead", func() bool {
			held := s.status(s.id).Holders
			return len(held) == 3 && !slices.Contains(held, victim)
		})
		t.Logf("%s is replaced after %v", victim, time.Since(began).Round(time.Millisecond))
		if before != "" {
			s.start(before)
		}
		before = victim
	}
	s.whole()
}

func TestSubmissionSurvivesAtAnyInstant(t *testing.T) {
	lengthy(t)
	const times = 10
	for i := range times {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			turns.Row(t, i, times, 3)
			s := beginSeveral(t, 6, "a", "b", "c", "d")
			time.Sleep(time.Duration(rand.Int64N(int64(6 * time.Second)))) //nolint:gosec // any instant will do
			if now := s.status(s.id); now.Over() {
				t.Skip("it was over already")
			}
			_, took := s.survive("a")
			t.Logf("a run began %v after the kill", took.Round(time.Millisecond))
			s.whole()
		})
	}
}

func TestSubmissionWhoseProcessIsKilledFiveTimesEndsWithOneRecord(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	s := beginSeveral(t, 24, "a", "b", "c", "d")
	at := "a"
	for range 5 {
		done := s.status(s.id).Done
		s.await("finished run", func() bool { return s.status(s.id).Done > done })
		to, took := s.survive(at)
		t.Logf("%s is killed, and %s begins a run after %v", at, to, took.Round(time.Millisecond))
		s.start(at)
		at = to
	}
	s.whole()
	s.await("one record", func() bool {
		records, err := filepath.Glob(s.path("records-*/plan-*"))
		return err == nil && len(records) == 1
	})
}

// longRun is a plan of a run in which each process has what nobody else has.
const longRun = `name: long
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: momentum, rate: 0.1}}
architecture: {kind: parameter-server, consistency: bsp, servers: {shard: 1 kB}}
nodes:
  - {name: server, count: 2, role: server}
  - {name: worker, count: 4, role: worker, compute: {step: 10ms}}
network: {default: {delay: 5ms}}
evaluate: {every: 1s}
stop: {steps: 5000}
checkpoint: {every: 500ms}
`

// TestRunGoesOnThoughItsConductorIsKilledFiveTimes kills the conductor at random instants of one
// run, which goes on each time from a checkpoint later than the one before.
func TestRunGoesOnThoughItsConductorIsKilledFiveTimes(t *testing.T) {
	lengthy(t)
	turns.Take(t, 2, 3)
	plan := strings.Replace(longRun, "steps: 5000", "steps: 9000", 1) // so that it outlasts the kills on a busy machine
	s := begin(t, plan, 1, "a", "b", "c", "d")
	at, kills := "a", 5
	for range kills {
		more := rand.Int64N(int64(2 * time.Second)) //nolint:gosec // any instant will do
		time.Sleep(1500*time.Millisecond + time.Duration(more))
		to, took := s.survive(at)
		t.Logf("%s is killed, and %s goes on after %v", at, to, took.Round(time.Millisecond))
		s.start(at)
		at = to
	}
	s.whole()
	var before time.Duration
	went := 0
	for line := range strings.Lines(s.must("logs", s.id)) {
		_, text, goesOn := strings.Cut(line, " goes on from its checkpoint at ")
		if !goesOn {
			continue
		}
		from, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || from <= before {
			t.Errorf("it goes on from %v after %v, %v", from, before, err)
		}
		before, went = from, went+1
	}
	if went != kills {
		t.Errorf("it went on %d times, want %d", went, kills)
	}
	summary, err := record.ReadSummary(s.path("fetched"))
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, i := range summary.Runs[0].Incidents {
		if strings.Contains(i.What, "went on from its state here") {
			told++
		}
	}
	if told != kills {
		t.Errorf("the record tells of %d interruptions, want %d: %+v", told, kills, summary.Runs[0].Incidents)
	}
}

func TestNodesThatArePlacedOnAProcessThatDiesWaitForIt(t *testing.T) {
	lengthy(t)
	turns.Take(t, 0, 3)
	s := settle(t, "a", "b", "c")
	s.write("plan.yaml", shortRuns)
	id := strings.TrimSpace(s.must("submit", s.path("plan.yaml"), "--join", s.addresses()["a"], "--repeats=3",
		"--detach", "--place=peer1=a"))
	s.await("finished run", func() bool { return s.status(id).Done > 0 })
	for name, address := range s.addresses() {
		if name != "a" {
			s.join, s.seed = address, address
		}
	}
	s.kill("a")
	s.await("successor", s.logged(id, "waits for a place for each node: "))
	s.start("a")
	s.ends(id, driver.Done, s.path("fetched"))
	log := s.must("logs", id)
	if _, later, _ := strings.Cut(log, "waits for a place"); !strings.Contains(later, "began on ") {
		t.Error(log)
	}
}

// Who is paused for longer than it is waited for finds that another one has gone on.
func TestProcessThatWasSilentForTooLongWritesNoMore(t *testing.T) {
	lengthy(t)
	turns.Take(t, 1, 3)
	s := beginSeveral(t, 50, "a", "b", "c")
	s.await("finished run", func() bool { return s.status(s.id).Done > 0 })
	for name, address := range s.addresses() {
		if name != "a" {
			s.join = address
		}
	}
	s.signal(syscall.SIGSTOP, "a")
	stopped := time.Now()
	s.await("successor", func() bool {
		now := s.now()
		return now.Process != "a" && now.Done > 2
	})
	t.Logf("another process goes on after %v", time.Since(stopped).Round(time.Second))
	s.signal(syscall.SIGCONT, "a")
	s.whole()
	records, err := filepath.Glob(s.path("records-*/plan-*"))
	if err != nil || len(records) != 1 || strings.Contains(records[0], "records-a") {
		t.Errorf("records in %v, %v", records, err)
	}
}
