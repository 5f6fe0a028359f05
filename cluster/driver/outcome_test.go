package driver_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
)

// peers is a small plan of four peers that exchange models.
const peers = `name: peers
data: {set: synthetic-traffic, samples: 4000, test: 25%}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.02}}
architecture: {kind: gossip}
nodes: [{name: n, count: 4, compute: {step: 5ms}}]
network: {topology: ring, default: {delay: 1ms}}
evaluate: {every: 500ms}
stop: {time: 2s}
`

// hub is a small plan with a parameter server.
const hub = `name: server
data: {set: synthetic-traffic, samples: 4000, test: 25%}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.02}}
architecture: {kind: parameter-server}
nodes:
  - {name: hub, role: server}
  - {name: a, role: worker, compute: {step: 5ms}}
  - {name: b, role: worker, compute: {step: 5ms}}
network: {default: {delay: 1ms}}
evaluate: {every: 500ms}
stop: {time: 2s}
`

// outcome is the only run of a plan.
func outcome(t *testing.T, text string, set ...string) record.Run {
	t.Helper()
	return run(t, load(t, text, set...), driver.Options{}).Runs[0]
}

func TestRunWithoutAnyIncidentIsDone(t *testing.T) {
	for _, text := range []string{peers, hub} {
		if r := outcome(t, text); r.Outcome != record.Done || len(r.Incidents) > 0 || r.Duration != 2 {
			t.Errorf("%s after %v s: %+v", r.Outcome, r.Duration, r.Incidents)
		}
	}
}

func TestNodesThatStoodStillAreNamedWithInstantAndReason(t *testing.T) {
	for _, text := range []string{
		peers, strings.Replace(peers, "{kind: gossip}", "{kind: ad-psgd}", 1),
		strings.Replace(peers, "{kind: gossip}", "{kind: d-psgd}", 1),
		strings.Replace(peers, "{kind: gossip}", "{kind: all-reduce}", 1), hub,
	} {
		r := outcome(t, text, "network.default.loss={probability: 5%, kind: drop}", "architecture.delivery=as-is")
		if r.Outcome != record.Degraded || len(r.Incidents) == 0 || r.Duration != 2 {
			t.Fatalf("%s\n%s: %+v", text, r.Outcome, r)
		}
		for _, i := range r.Incidents {
			if i.At >= 2 || i.Node == "coordinator" || !strings.Contains(i.What, "stalled") ||
				!strings.Contains(i.What, "waits for") {
				t.Errorf("%s: incident %+v", strings.Split(text, "\n")[4], i)
			}
		}
	}
}

// Losses are made good by sending again: nobody stands still, however slow the links are.
func TestRetransmissionIsNoStandstill(t *testing.T) {
	r := outcome(t, peers, "network.default.loss={probability: 20%, kind: retransmit, timeout: 300ms}")
	if r.Outcome != record.Done {
		t.Errorf("%s: %+v", r.Outcome, r.Incidents)
	}
}

// Nothing is lost, but the first exchange takes a year.
func TestRunInWhichEverybodyWaitsToTheEndIsDegraded(t *testing.T) {
	for _, kind := range []string{"gossip", "d-psgd", "all-reduce"} {
		r := outcome(t, strings.Replace(peers, "{kind: gossip}", "{kind: "+kind+"}", 1), "network.default.delay=8760h")
		if r.Outcome != record.Degraded || len(r.Incidents) != 4 || !strings.Contains(r.Incidents[0].What,
			"waits for") {
			t.Errorf("%s: %s, %+v", kind, r.Outcome, r.Incidents)
		}
	}
}

func TestRunThatHasDivergedFailsAtTheStepAndTheOthersGoOn(t *testing.T) {
	p := load(t, hub, "repeats=2", "model.layers=[93, 21, 5]", "sweep={train.optimizer.rate: [1e30, 0.02]}")
	r, err := try(t, p, driver.Options{Jobs: 1})
	if err == nil || !strings.Contains(err.Error(), "run 0 (train.optimizer.rate = 1e30, seed 1): node ") ||
		!strings.Contains(err.Error(), "training has diverged: the loss of step ") {
		t.Errorf("got %v", err)
	}
	var outcomes []record.Outcome
	for _, run := range r.Runs {
		outcomes = append(outcomes, run.Outcome)
	}
	equal(t, "outcomes", []record.Outcome{record.Failed, record.Failed, record.Done, record.Done}, outcomes)
	if r.Complete {
		t.Error("a record with failed runs is called complete")
	}
	if i := r.Runs[0].Incidents; len(i) != 1 || i[0].Node != "a" && i[0].Node != "b" || i[0].At <= 0 || i[0].At > 0.1 {
		t.Errorf("incidents %+v", i)
	}
}

// A sample of one model, whose node crashes: another one is looked at, and the run ends at its
// bound.
func TestRunEndsAtItsBoundThoughTheNodeThatIsLookedAtCrashes(t *testing.T) {
	for _, kind := range []string{"gossip", "d-psgd", "ad-psgd", "all-reduce"} {
		for _, node := range []string{"n1", "n2"} {
			r := outcome(t, `
data: {set: synthetic-traffic, samples: 500}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: `+kind+`}
nodes: [{name: n, count: 2, compute: {step: 1ms}}]
evaluate: {every: 0.2 epochs, sample: 1}
stop: {time: 1s}
schedule: [{at: 100ms, node: `+node+`, do: crash}]
detect: 10ms
`)
			if r.Duration != 1 || r.Outcome != record.Done {
				t.Errorf("%s, %s crashes: ended at %v s, %s, %+v", kind, node, r.Duration, r.Outcome, r.Incidents)
			}
		}
	}
}

func TestServerThatGoesTakesTheModelWithItAndTheRunFails(t *testing.T) {
	for schedule, want := range map[string]string{
		"{at: 1s, node: hub, do: crash}":                                  "hub has gone without handing over",
		"{at: 1s, node: hub, do: crash}, {at: 1.5s, node: hub, do: join}": "hub has gone without handing over",
		"{at: 1s, node: hub, do: leave}":                                  "hub leaves, and no other server is there",
	} {
		r, err := driver.Run(t.Context(), load(t, hub, "schedule=["+schedule+"]", "detect=10ms"),
			driver.Options{Out: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schedule, err, want)
		}
		if one := r.Runs[0]; r.Complete || one.Outcome != record.Failed || math.Abs(one.Duration-1) > 0.011 {
			t.Errorf("%s: %s after %v s, complete: %v", schedule, one.Outcome, one.Duration, r.Complete)
		}
	}
}

func TestPauseOfAServerLosesNothing(t *testing.T) {
	r := outcome(t, hub, "schedule=[{at: 1s, node: hub, do: pause, for: 300ms}]")
	if whole := outcome(t, hub); r.Outcome != record.Done || r.Steps >= whole.Steps || r.Steps < whole.Steps*7/10 {
		t.Errorf("%s: %d steps of %d, %+v", r.Outcome, r.Steps, whole.Steps, r.Incidents)
	}
}

func TestPauseOfTheCoordinatorLosesNoStateAndIsTold(t *testing.T) {
	r := run(t, load(t, peers, "stop.time=6s", "schedule=[{at: 1.2s, node: coordinator, do: pause, for: 3s}]"),
		driver.Options{})
	got := r.Runs[0]
	if whole := outcome(t, peers, "stop.time=6s"); got.Outcome != record.Degraded || got.Steps != whole.Steps ||
		got.FinalAccuracy != whole.FinalAccuracy || got.Duration != 6 {
		t.Errorf("%+v, without the pause %+v", got, whole)
	}
	if len(got.Incidents) != 1 || got.Incidents[0].At != 4.2 || got.Incidents[0].Node != "coordinator" {
		t.Errorf("incidents %+v", got.Incidents)
	}
	late := outcome(t, peers, "schedule=[{at: 1.2s, node: coordinator, do: pause, for: 3s}]")
	if late.Outcome != record.Done || late.Duration != 2 {
		t.Errorf("a run that should have ended during the pause: %s after %v s", late.Outcome, late.Duration)
	}
}

func TestRunWhoseCoordinatorCrashesHasFailedAndKeepsItsCurve(t *testing.T) {
	r, err := try(t, load(t, peers, "schedule=[{at: 1.2s, node: coordinator, do: crash}]"), driver.Options{})
	if err == nil || len(r.Runs) != 1 || r.Runs[0].Outcome != record.Failed || r.Runs[0].Duration != 1.2 ||
		len(r.Traces[0].Curve) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// The final accuracy is the accuracy of the saved models, whichever models are judged.
func TestSavedModelsAreThoseThatAreJudged(t *testing.T) {
	for _, c := range []struct {
		of, record string
		one, each  bool
	}{
		{"mean", "summary", false, true}, {"all", "summary", false, true}, {"any", "summary", false, true},
		{"average-model", "summary", true, false}, {"average-model", "models", true, true},
	} {
		r := run(t, load(t, peers, "evaluate.of="+c.of, "record="+c.record), driver.Options{})
		for name, wanted := range map[string]bool{"model.safetensors": c.one, "models.safetensors": c.each} {
			if _, err := os.Stat(filepath.Join(r.Dir, "runs", "0000", name)); (err == nil) != wanted || err != nil &&
				!errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s, record: %s: %s is there: %v, want %v", c.of, c.record, name, err == nil, wanted)
			}
		}
		if r.Runs[0].Of != record.Of(c.of) {
			t.Errorf("the record says %q, want %q", r.Runs[0].Of, c.of)
		}
	}
}

// One of the rates hardly trains: a cluster finds that out, as virtual time does, and runs with the
// other.
func TestSubmissionUsesTheValueThatItsTuningChose(t *testing.T) {
	t.Parallel()
	c, client := gathered(t, "a", "b")
	tune := []string{"data.validation=10%", "tune={train.optimizer.rate: [0.000001, 0.05]}",
		"train.optimizer={kind: sgd}", "stop={steps: 200}", "evaluate.every=50ms"}
	s, dir := c.result(client, long, tune...)
	tunings, err := record.ReadTunings(dir)
	if err != nil || len(tunings) != 1 || len(tunings[0].Candidates) != 2 {
		t.Fatalf("%+v, %v", tunings, err)
	}
	tried := tunings[0].Candidates
	if tunings[0].Chosen != 1 || tried[0].FinalAccuracy >= tried[1].FinalAccuracy {
		t.Errorf("%+v", tunings[0])
	}
	if a := s.Runs[0].FinalAccuracy; a < 0.6 {
		t.Errorf("accuracy %v: the run has not used the rate that was chosen", a)
	}
}

// Half of the peers stand still under either rate: what was tried says so, as the runs do.
func TestWhatWasTriedSaysThatItStoodStill(t *testing.T) {
	r := run(t, load(t, peers, "architecture={kind: d-psgd, delivery: as-is}", "data.validation=10%",
		"tune={train.optimizer.rate: [0.02, 0.05]}",
		"network.default.loss={probability: 5%, kind: drop}", "train.optimizer={kind: sgd}"), driver.Options{})
	tunings, err := record.ReadTunings(r.Dir)
	if err != nil || len(tunings) != 1 {
		t.Fatalf("%+v, %v", tunings, err)
	}
	for _, c := range tunings[0].Candidates {
		if c.Outcome != record.Degraded || len(c.Incidents) == 0 {
			t.Errorf("%v: %s, %+v", c.Values, c.Outcome, c.Incidents)
		}
	}
}
