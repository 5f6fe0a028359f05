package experiment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const short = `
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 32}
architecture: {kind: gossip}
nodes: [{name: w, count: 3, compute: {step: 10ms}}]
network: {default: {delay: 1ms}}
evaluate: {every: 10 steps}
`

// warnings are all warnings of plan check about a plan.
func warnings(t *testing.T, text string, set ...string) []string {
	t.Helper()
	p, err := Parse(filepath.Join(t.TempDir(), "plan.yaml"), []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Examine(nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Forecast(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(e.Notes, f.Notes)
}

// The test combines each kind of stop rule with each list of instants.
func TestInstantsAfterTheEndOfARunAreNamed(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"delay.csv": "time_s,delay_s\n3000,0.001\n", "rate.csv": "time_s,rate_bps\n3000,1e6\n",
		"devices.csv": "device,on_s,off_s\na,0,1\nb,3000,4000\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, stop := range []string{"{epochs: 1}", "{steps: 30}", "{rounds: 3}", "{time: 1s}"} {
		for set, want := range map[string]string{
			"schedule=[{at: 50m, node: w2, do: crash}]":                            "schedule[0].at: this never happens",
			"schedule=[{at: 50m, link: [w1, w2], delay: 1s}]":                      "schedule[0].at: this never happens",
			"schedule=[{at: 50m, cut: [w1, w2], for: 1s}]":                         "schedule[0].at: this never happens",
			"network.default.outages=[{from: 50m, for: 1s}]":                       "from: this never happens",
			"network.default.delay={kind: trace, file: " + file("delay.csv") + "}": "the trace begins at 50m0s",
			"network.default.rate={kind: trace, file: " + file("rate.csv") + "}":   "the trace begins at 50m0s",
			"nodes=[{name: w, count: 3, compute: {step: 10ms}, available: {on: 1h, off: 1h, first: 50m}}, " +
				"{name: v, compute: {step: 10ms}}, {name: u, compute: {step: 10ms}}]": "first: this never happens",
			"nodes=[{name: w, count: 2, compute: {step: 10ms}, available: {file: " + file("devices.csv") + "}}, " +
				"{name: v, compute: {step: 10ms}}, {name: u, compute: {step: 10ms}}]": "1 of 2 devices are never there",
			"checkpoint={every: 50m}":                              "checkpoint.every: this never happens",
			"schedule=[{at: 50ms, node: w2, do: pause, for: 5ms}]": "",
			"checkpoint={every: 50ms}":                             "",
		} {
			kind := "gossip"
			if strings.Contains(stop, "rounds") {
				kind = "federated, roles: {server: added}"
			}
			ends := stop
			if strings.Contains(set, "available") && !strings.Contains(stop, "time") { // available needs stop.time
				ends = strings.TrimSuffix(stop, "}") + ", time: 48h}"
			}
			told := strings.Join(warnings(t, short, "architecture={kind: "+kind+"}", "stop="+ends, set), "\n")
			if n := strings.Count(told, want); want == "" && told != "" || want != "" && n != 1 {
				t.Errorf("%s, %s: want %q once: %s", stop, set, want, told)
			}
		}
	}
}

// An exchange that is never due makes workers train alone.
func TestExchangesThatAreNeverDueAreNamed(t *testing.T) {
	for architecture, want := range map[string]string{
		"{kind: all-reduce, reduce: models, every: 100000}":                          "architecture.every: ",
		"{kind: all-reduce, reduce: models, every: 1000 epochs}":                     "architecture.every: ",
		"{kind: gossip, every: 100000}":                                              "architecture.every: ",
		"{kind: gossip, period: 1h, wait: false}":                                    "architecture.period: ",
		"{kind: noloco, every: 100000}":                                              "architecture.every: ",
		"{kind: noloco, every: 9000000 samples}":                                     "architecture.every: ",
		"{kind: parameter-server, every: 100000, roles: {server: added}}":            "architecture.every: ",
		"{kind: federated, local: {epochs: 1000}, roles: {server: added}}":           "architecture.local.epochs: ",
		"{kind: federated, local: {steps: 100000}, roles: {server: added}}":          "architecture.local.steps: ",
		"{kind: federated, local: {steps: 99999, time: 1s}, roles: {server: added}}": "",
		"{kind: all-reduce, reduce: models, every: 10}":                              "",
		"{kind: gossip, every: 0.1 epochs}":                                          "",
		"{kind: gossip, period: 1s, wait: false}":                                    "",
		"{kind: noloco, every: 10}":                                                  "",
		"{kind: federated, roles: {server: added}}":                                  "",
		"{kind: local}": "",
	} {
		for _, stop := range []string{"{time: 20s}", "{epochs: 60}", "{steps: 2000}"} {
			told := strings.Join(warnings(t, short, "architecture="+architecture, "stop="+stop), "\n")
			n := strings.Count(told, want+"workers train alone: the first exchange is due after ")
			if want == "" && told != "" || want != "" && n != 1 {
				t.Errorf("%s, stop %s: want %q once: %s", architecture, stop, want, told)
			}
		}
	}
}

// A run that ends before its schedule never uses the rates at the end of the schedule.
func TestSchedulesOfRatesLongerThanTheRunAreNamed(t *testing.T) {
	const late = "train.optimizer.rate: the schedule of the rate is longer than the run"
	for rate, want := range map[string]string{
		"{kind: cosine, first: 0.1, steps: 100000}":                                          late,
		"{kind: cosine, first: 0.1, steps: 1000 epochs}":                                     late,
		"{kind: step, first: 0.1, factor: 0.5, every: 9000000 samples}":                      late,
		"{kind: warmup, steps: 100000, then: 0.1}":                                           late,
		"{kind: warmup, steps: 2, then: {kind: cosine, first: 0.1, steps: 1000000}}":         late,
		"{kind: cosine, first: 0.1, steps: 1 epochs}":                                        "",
		"{kind: warmup, steps: 0.1 epochs, then: {kind: step, first: 0.1, every: 1 epochs}}": "",
		"{kind: inverse, first: 0.1, half: 100000}":                                          "",
		"0.1": "",
	} {
		for _, stop := range []string{"{time: 1s}", "{epochs: 3}", "{steps: 100}"} {
			for _, architecture := range []string{"{kind: gossip}", "{kind: federated, roles: {server: added}}"} {
				told := strings.Join(warnings(t, short, "architecture="+architecture, "stop="+stop,
					"train.optimizer={kind: sgd, rate: "+rate+"}"), "\n")
				if n := strings.Count(told, want); want == "" && told != "" || want != "" && n != 1 {
					t.Errorf("%s, %s, stop %s: want %q once: %s", rate, architecture, stop, want, told)
				}
			}
		}
	}
}

// An outer optimizer makes one step per round. Rounds of all-reduce have 10 steps here.
func TestSchedulesOfOuterRatesLongerThanTheRunAreNamed(t *testing.T) {
	const late = "outer.rate: the schedule of the rate is longer than the run: it takes "
	for _, c := range []struct {
		architecture, stop string
		most               int // steps of the outer optimizer in the run
	}{
		{"{kind: federated, roles: {server: added}, outer: ", "{rounds: 20}", 20},
		{"{kind: federated, roles: {server: added}, local: {epochs: 2}, outer: ", "{rounds: 30}", 30},
		{"{kind: all-reduce, reduce: models, every: 10, outer: ", "{steps: 400}", 40},
		{"{kind: all-reduce, reduce: models, every: 10, outer: ", "{epochs: 20, time: 1h}", 23}, // of 23.4 rounds
	} {
		for _, steps := range []int{c.most / 2, c.most, 2 * c.most} {
			told := strings.Join(warnings(t, short, "stop="+c.stop, fmt.Sprintf(
				"architecture=%s{kind: sgd, rate: {kind: cosine, first: 1, steps: %d}}}", c.architecture, steps)), "\n")
			if got := strings.Contains(
				told,
				late+fmt.Sprint(steps)+" steps, and the run makes ",
			); got != (steps > c.most) {
				t.Errorf("%s, stop %s, %d steps: %s", c.architecture, c.stop, steps, told)
			}
		}
	}
}

// A point that meets an instant, or whose run is as long as a schedule, hides nothing about the others.
func TestNotesNameThePointsForWhichTheyHold(t *testing.T) {
	for _, c := range []struct {
		set  []string
		want string
	}{
		{[]string{"schedule=[{at: 10s, node: w2, do: crash}]", "sweep={stop.steps: [30, 9000, 60]}"},
			"(at stop.steps = 30; stop.steps = 60)"},
		{[]string{"schedule=[{at: 10s, node: w2, do: crash}]", "sweep={stop.time: [1s, 1m]}"}, "(at stop.time = 1s)"},
		{[]string{"schedule=[{at: 10s, node: w2, do: crash}]",
			"sweep={stop.steps: [9000, 10, 20, 30, 40, 50]}"},
			"(at stop.steps = 10; stop.steps = 20; stop.steps = 30; and at 2 more points)"},
		{[]string{"train.optimizer={kind: sgd, rate: {kind: cosine, first: 0.1, steps: 100}}",
			"sweep={stop.steps: [30, 150]}"}, "(at stop.steps = 30)"},
		{[]string{"stop={steps: 150}", "sweep={architecture: [{kind: gossip}, {kind: local}]}",
			"data.validation=10%", "train.optimizer={kind: sgd}",
			"tune={train.optimizer.rate: [0.1, {kind: cosine, first: 0.1, steps: 1000}]}"}, ""},
		{[]string{"schedule=[{at: 10s, node: w2, do: crash}]", "sweep={stop.steps: [30, 60]}"}, ""},
	} {
		set := append([]string{"stop={}"}, c.set...)
		told := strings.Join(warnings(t, short, set...), "\n")
		if strings.Count(told, "this never happens")+strings.Count(told, "longer than the run") != 1 ||
			!strings.Contains(told, c.want) || c.want == "" && strings.Contains(told, "(at ") {
			t.Errorf("%v: want %q: %s", c.set, c.want, told)
		}
	}
}
