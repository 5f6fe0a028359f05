package experiment

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
)

const faultyPlan = `
name: faulty
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server}
nodes:
  - {name: s, role: server}
  - {name: w, role: worker, count: 3, compute: {step: 100ms}}
network: {default: {delay: 1ms}}
evaluate: {every: 1s}
stop: {time: 10s}
detect: 0.5s
record: events
`

// happening is an event of a record.
type happening struct {
	Time   float64 `json:"time_s"`
	Node   string
	Event  string
	Origin string
}

// play runs a plan and returns its first run, and the events of it.
func play(t *testing.T, clock Clock, text string) (record.Run, []happening) {
	t.Helper()
	p, err := Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "record")
	report, err := Run(context.Background(), p, Options{Out: out, Clock: clock, KeepRuntime: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(out, "runs", "0000", "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var events []happening
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e happening
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return report.Runs[0], events
}

// count counts the events of a kind of, or by, a node from an instant to another.
func count(events []happening, kind, node string, from, to float64) (n int) {
	for _, e := range events {
		if e.Event == kind && (e.Node == node || e.Origin == node) && e.Time >= from && e.Time < to {
			n++
		}
	}
	return n
}

const eventful = `schedule:
  - {at: 2s, node: w1, do: restart, for: 1s}
  - {at: 3.05s, node: w2, do: slow, factor: 4, for: 2s}
  - {at: 6s, node: w3, do: preempt, notice: 1s, for: 0.5s}
  - {at: 5.05s, node: w2, do: slow, factor: 2, for: 1s}
  - {at: 8s, cut: w1, for: 1s}
  - {at: 9s, node: s, do: slow, factor: 1000, for: 1s}
`

func TestNodesRestartSlowDownArePreemptedAndCutOff(t *testing.T) {
	run, events := play(t, VirtualTime, faultyPlan+eventful)
	for _, x := range []struct {
		what, kind, node string
		from, to         float64
		least, most      int
	}{
		{"before", "step", "w1", 0, 2, 19, 20},
		{"while it is away", "step", "w1", 2.001, 3, 0, 0},
		{"when it is back", "step", "w1", 3, 4, 8, 9},
		{"slow by 4", "step", "w2", 3.15, 5.05, 4, 5},
		{"slow by 2", "step", "w2", 5.25, 6.05, 3, 4},
		{"quick again", "step", "w2", 7, 8, 9, 10},
		{"preempted", "step", "w3", 6.001, 7.5, 0, 0},
		{"back after its notice", "step", "w3", 7.5, 8.5, 8, 10},
		{"cut off", "update", "w1", 8.1, 9, 0, 0},
		{"heard of again", "update", "w1", 9, 10, 1, 10},
	} {
		if n := count(events, x.kind, x.node, x.from, x.to); n < x.least || n > x.most {
			t.Errorf("%s: %d events %s of %s from %v to %v s, want %d to %d", x.what, n, x.kind, x.node, x.from, x.to,
				x.least, x.most)
		}
	}
	if again, _ := play(t, VirtualTime, faultyPlan+eventful); again.Digest != run.Digest || run.Digest == "" {
		t.Errorf("digests %s and %s", run.Digest, again.Digest)
	}
}

const drawnFaults = `faults:
  crash: {mtbf: 4s, nodes: worker, back: 0.5s}
  pause: {mtbf: 4s, for: 0.2s}
  slow: {mtbf: 4s, nodes: [w1, w2], factor: 3, for: 1s}
  cut: {mtbf: 4s, for: 0.3s}
  swizzle: {mtbf: 8s, for: 1s, nodes: w}
`

// TestDrawnFaultsAreThoseOfTheirSchedule runs a plan with faults, and the plan that has what they
// came to as its schedule.
func TestDrawnFaultsAreThoseOfTheirSchedule(t *testing.T) {
	run, _ := play(t, VirtualTime, faultyPlan+drawnFaults)
	p, err := Parse("plan.yaml", []byte(faultyPlan+drawnFaults))
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	points[0].Spec.Plan = points[0].Scheduled(1)
	text, err := points[0].Text(1)
	if err != nil {
		t.Fatal(err)
	}
	scheduled, _ := play(t, VirtualTime, text)
	if scheduled.Digest != run.Digest {
		t.Errorf("digests %s of what was drawn and %s of\n%s", run.Digest, scheduled.Digest, text)
	}
	if calm, _ := play(t, VirtualTime, faultyPlan); calm.Digest == run.Digest {
		t.Error("faults change nothing")
	}
	if other, _ := play(t, VirtualTime, faultyPlan+"seed: 2\n"+drawnFaults); other.Digest == run.Digest {
		t.Error("the seed changes nothing")
	}
}

func TestFaultsHappenInRealTime(t *testing.T) {
	_, events := play(t, RealTime, strings.Replace(faultyPlan, "time: 10s", "time: 2s", 1)+`schedule:
  - {at: 0.5s, node: w1, do: restart, for: 0.5s}
  - {at: 0.5s, node: w2, do: slow, factor: 20, for: 0.5s}
  - {at: 0.5s, cut: w3, for: 0.5s}
`)
	for _, x := range []struct {
		kind, node string
		from, to   float64
		least      int
		most       int
	}{
		{"step", "w1", 0.6, 1, 0, 0}, {"step", "w2", 0.7, 1, 0, 1}, {"update", "w3", 0.7, 1, 0, 0},
		{"step", "w1", 1.1, 10, 1, 100}, {"update", "w3", 1.1, 10, 1, 100},
	} {
		if n := count(events, x.kind, x.node, x.from, x.to); n < x.least || n > x.most {
			t.Errorf("%d events %s of %s from %v to %v s, want %d to %d", n, x.kind, x.node, x.from, x.to, x.least,
				x.most)
		}
	}
}
