package driver_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/cluster/turns"
)

// interrupted is a plan whose models depend on no timing, and whose run takes long enough to be
// interrupted.
const interrupted = `name: interrupted
data: {set: synthetic-traffic, samples: 3000}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: momentum, rate: 0.05}}
nodes: [{name: peer, count: 4, compute: {step: 10ms}}]
network: {topology: ring, default: {delay: 3ms, rate: 20 Mbit/s}}
evaluate: {every: 5 steps}
stop: {steps: 200}
record: events
checkpoint: {every: 150ms}
`

// dataOf is the data of a record's only run.
func dataOf(t *testing.T, dir string) *record.Data {
	t.Helper()
	r, err := record.NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, data, err := r.Run(0).Read()
	if err != nil {
		t.Fatal(err)
	}
	return &data
}

// eventsOf opens those of a record's only run.
func eventsOf(t *testing.T, dir string) *os.File {
	t.Helper()
	r, err := record.NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := r.Run(0).Events()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// saves waits until so many checkpoints of a run have been made since it was called.
func (c *testCluster) saves(n int) {
	c.t.Helper()
	seen := map[string]bool{}
	look := func() int {
		names, err := filepath.Glob(filepath.Join(c.dir, "records", "*", "runs", "0000", "checkpoints", "*.state"))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, name := range names {
			seen[filepath.Base(name)] = true // others have copies
		}
		return len(seen)
	}
	for before := look(); c.t.Context().Err() == nil && look() < before+n; {
		runtime.Gosched()
	}
}

// TestAnotherProcessGoesOnWithTheRunUnderWay has the process leave that conducts a run and hosts a
// node of it. The models of the run are those of the run in virtual time, bit for bit: of what was
// on its way between the processes nothing is missing, and nothing came twice.
func TestAnotherProcessGoesOnWithTheRunUnderWay(t *testing.T) {
	deliveries := map[string]string{
		"{kind: all-reduce}": "local", "{kind: d-psgd}": "sent",
		"{kind: parameter-server, consistency: bsp, roles: {server: [peer1]}}":           "sent",
		"{kind: federated, controls: true, local: {steps: 3}, roles: {server: [peer1]}}": "sent",
	}
	for i, architecture := range slices.Sorted(maps.Keys(deliveries)) {
		delivery := deliveries[architecture]
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(deliveries), 3)
			t.Parallel()
			set := []string{"architecture=" + architecture, "data.delivery=" + delivery}
			virtual := run(t, load(t, interrupted, append(set, "evaluate={every: 1ms}", "stop={steps: 300}")...),
				driver.Options{})
			c := newCluster(t)
			leave := c.serve("a")
			for _, name := range []string{"b", "c", "d"} {
				defer c.serve(name)()
			}
			operator := c.client(identity.Operator)
			c.gather(operator, 4)
			id := submit(t, operator, interrupted, set...)
			c.saves(3)
			leave()
			_, summary, dir := c.ended(operator, id)
			if r := summary.Runs[0]; r.Outcome == record.Failed || len(r.Incidents) == 0 ||
				!strings.Contains(r.Incidents[0].What, "went on from its state") {
				t.Fatalf("%s, %+v\n%s", r.Outcome, r.Incidents, c.logOf(operator, id))
			}
			if err := recordtest.Among(dataOf(t, virtual.Dir), dataOf(t, dir)); err != nil {
				t.Error(err)
			}
			recordtest.EachOnce(t, eventsOf(t, virtual.Dir), eventsOf(t, dir))
		})
	}
}

// TestRecordOfARunThatIsStoppedAgainAndAgainHasEachStepOnce compares the events of runs on several
// processes with those of the run in virtual time.
func TestRecordOfARunThatIsStoppedAgainAndAgainHasEachStepOnce(t *testing.T) {
	all := map[string]int{ // steps of each worker; with a server, steps of all workers together
		"{kind: all-reduce}": 200, "{kind: d-psgd}": 300,
		"{kind: parameter-server, consistency: bsp, roles: {server: [peer1]}}": 900,
	}
	for i, architecture := range slices.Sorted(maps.Keys(all)) {
		steps := all[architecture]
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(all), 3)
			t.Parallel()
			set := []string{"architecture=" + architecture, fmt.Sprintf("stop={steps: %d}", 2*steps)}
			virtual := run(t, load(t, interrupted, set...), driver.Options{})
			set[1] = fmt.Sprintf("stop={steps: %d}", steps)
			c, operator := gathered(t, "a", "b", "c", "d")
			id := submit(t, operator, interrupted, set...)
			for range 5 {
				c.saves(1)
				if err := operator.Stop(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				reach(t, operator, id, driver.Stopped)
				var err error
				if id, err = operator.Continue(t.Context(), id, nil); err != nil {
					t.Fatal(err)
				}
			}
			_, summary, dir := c.ended(operator, id)
			if r := summary.Runs[0]; r.Outcome != record.Degraded || len(r.Incidents) < 5 {
				t.Errorf("%s, %+v", r.Outcome, r.Incidents)
			}
			recordtest.EachOnce(t, eventsOf(t, virtual.Dir), eventsOf(t, dir))
		})
	}
}

func TestSubmissionThatWasStoppedGoesOnAsAnotherOne(t *testing.T) {
	t.Parallel()
	c, operator := gathered(t, "a")
	id := submit(t, operator, interrupted, "architecture={kind: all-reduce}", "stop={steps: 60}")
	if _, err := operator.Continue(t.Context(), id, nil); err == nil ||
		!strings.Contains(err.Error(), "it can go on when") {
		t.Errorf("a submission that has not ended: %v", err)
	}
	c.saves(2)
	if err := operator.Stop(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	reach(t, operator, id, driver.Stopped)
	note := ""
	next, err := operator.Continue(t.Context(), id[:6], func(text string) { note = text })
	if err != nil || next == id || !strings.Contains(note, next+" does not survive process a") {
		t.Fatalf("submission %s, %v, told %q", next, err, note)
	}
	s, summary, _ := c.ended(operator, next)
	if s.State != driver.Degraded || len(summary.Runs) != 1 || summary.Runs[0].Incidents[0].At == 0 {
		t.Errorf("%+v, %+v", s, summary.Runs)
	}
	var wrong *driver.InputError
	if _, err := operator.Continue(t.Context(), next, nil); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "all of its runs are finished") {
		t.Errorf("a submission that is finished: %v", err)
	}
	if s, err := operator.Status(t.Context(), id); err != nil || s.ID != next {
		t.Errorf("submission %s leads to %q, %v; want %s, which has its record", id, s.ID, err, next)
	}
}
