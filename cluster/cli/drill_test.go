package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/cli"
)

// drilled is a plan of two workers, one of which crashes and comes back.
const drilled = `name: drilled
data: {set: synthetic-traffic, samples: 1000}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: parameter-server}
nodes:
  - {name: hub, role: server}
  - {name: w, role: worker, count: 2, compute: {step: 20ms}}
network: {default: {delay: 5ms}}
evaluate: {every: 100ms}
stop: {time: 2s}
detect: 50ms
schedule: [{at: 500ms, node: w1, do: restart, for: 300ms}]
`

func TestDrillSaysWhatEachFaultCost(t *testing.T) {
	enter(t, drilled)
	code, out, errs := gradwire(t, "drill", "plan.yaml", "--out", "drill")
	expectCode(t, cli.ExitDone, code, errs)
	for _, part := range []string{"0.5 s: restart of w1 until 0.8 s", "goodput", "digest-repeats", "held"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	text, err := os.ReadFile(filepath.Join("drill", "drill.json"))
	var r struct {
		Faults []struct {
			Noticed float64 `json:"noticed_s"`
		}
		Goodput struct{ Share float64 }
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.Faults) != 1 || !(r.Goodput.Share > 0.8 && r.Goodput.Share < 1) {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := os.Stat(filepath.Join("drill", "drill.png")); err != nil {
		t.Error(err)
	}
}

func TestDrillOfASweepHasABlockForEachPoint(t *testing.T) {
	enter(t, drilled+"sweep: {train.batch: [16, 32, 64]}\n")
	code, out, errs := gradwire(t, "drill", "plan.yaml", "--where", "batch!=16")
	expectCode(t, cli.ExitDone, code, errs)
	for _, part := range []string{"Points drilled: 2. Invariants broke at 0 of them.\n", "point 1: train.batch=32\n",
		"point 2: train.batch=64\n"} {
		if strings.Count(out, part) != 1 {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if strings.Count(out, "0.5 s: restart of w1 until 0.8 s") != 2 {
		t.Error(out)
	}
	code, _, errs = gradwire(t, "drill", "plan.yaml", "--where", "batch=17")
	if code != cli.ExitInput || !strings.Contains(errs, `train.batch is never "17"; accepted: 16; 32; 64`) {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestDrillRefusesWhatHasNoFaults(t *testing.T) {
	enter(t, strings.Replace(drilled, "schedule:", "# ", 1))
	code, _, errs := gradwire(t, "drill", "plan.yaml")
	if code != cli.ExitInput || !strings.Contains(errs, "nothing to drill") {
		t.Errorf("code %d: %s", code, errs)
	}
}

func TestDrillOfSeedsTellsHowManyPlansWatchedEachInvariant(t *testing.T) {
	code, out, errs := gradwire(t, "drill", "--seeds", "5", "--from", "7")
	expectCode(t, cli.ExitDone, code, errs)
	if !strings.Contains(out, "digest-repeats      5") || !strings.Contains(out, "5 plans, from seed 7") {
		t.Error(out)
	}
	if !strings.Contains(errs, "5 of 5 plans") {
		t.Errorf("the progress is told as %s", errs)
	}
}

func TestDrillCountsFaultsThatTheRunDidNotMeet(t *testing.T) {
	late := edit(t, drilled, "node: w1, do: restart, for: 300ms}]",
		"node: w1, do: pause, for: 100ms}, {at: 600ms, node: w2, do: pause, for: 50ms}, "+
			"{at: 1900ms, node: w1, do: pause, for: 10ms}, {at: 1950ms, node: w2, do: pause, for: 10ms}]")
	enter(t, edit(t, late, "stop: {time: 2s}", "stop: {time: 2s, steps: 60}"))
	code, out, errs := gradwire(t, "drill", "plan.yaml", "--out", "drill")
	expectCode(t, cli.ExitDone, code, errs)
	for _, part := range []string{
		"A fault's costs are counted until the next fault", "Not listed: 2 more faults, due after the end of the run at ",
		"\nrecord in ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in\n%s", part, out)
		}
	}
	if strings.Contains(out, "1.9 s: ") {
		t.Errorf("a fault after the end is listed:\n%s", out)
	}
	if !strings.Contains(errs, "5 of 5 runs, 100 %") {
		t.Errorf("told: %s", errs)
	}
}
