package driver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/recordtest"
	"github.com/gradwire/gradwire/cluster/shelf"
)

// inRounds is a plan that counts in rounds.
const inRounds = `name: rounds
data: {set: synthetic-traffic, samples: 800}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: federated, count: 3, local: {steps: 2}}
nodes: [{name: server}, {name: c, count: 6, compute: {step: 5ms}}]
network: {default: {delay: 2ms}}
evaluate: {every: 4 rounds}
stop: {rounds: 10}
`

// A run that counts in rounds is judged at the end of every fourth, and ends with the tenth. Each
// round has six steps, of which the last ones end with it.
func TestRunsAreJudgedAndEndedByRounds(t *testing.T) {
	for _, clock := range []driver.Clock{driver.Virtual, driver.Real} {
		dir := run(t, load(t, inRounds), driver.Options{Clock: clock}).Dir
		r, err := record.NewReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, data, err := r.Run(0).Read()
		if err != nil {
			t.Fatal(err)
		}
		var steps []uint64
		for _, e := range data.Curve {
			steps = append(steps, e.Step)
		}
		if want := []uint64{0, 24, 48, 60}; !slices.Equal(steps, want) {
			t.Errorf("%v: evaluations after %v steps, want %v", clock, steps, want)
		}
	}
}

// The models of a cluster are those of virtual time.
func TestRoundsOfAClusterHaveTheModelsOfVirtualTime(t *testing.T) {
	c, client := gathered(t, "a", "b", "c")
	for _, settings := range []string{"controls: true", "mean: {kind: median}, attack: {kind: noise, share: 40%}",
		"population: 20", "roles: {aggregator: [c1, c2]}, under: {c1: [c2, c3], c2: [c4, c5]}"} {
		set := []string{"architecture={kind: federated, count: 3, local: {steps: 2}, " + settings + "}",
			"evaluate.every=1 rounds"}
		known := dataOf(t, run(t, load(t, inRounds, append(set, "stop.rounds=14")...), driver.Options{}).Dir)
		_, dir := c.result(client, inRounds, set...)
		data := dataOf(t, dir)
		if len(data.Curve) < 5 {
			t.Errorf("%s: %d evaluations", settings, len(data.Curve))
		}
		if err := recordtest.Among(known, data); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

func TestPresetsAreSpelledOut(t *testing.T) {
	for preset, want := range map[string][]string{
		"fedavg": {"proximal: 0", "controls: false", "weights: samples",
			"outer: {kind: sgd, rate: 1, weight-decay: 0}"},
		"fedprox":  {"proximal: 0.01", "weights: samples"},
		"fednova":  {"weights: steps-normalised"},
		"scaffold": {"controls: true", "weights: equal"},
		"fedavgm":  {"outer: {kind: momentum, rate: 1, momentum: 0.9, nesterov: false, weight-decay: 0}"},
		"fedadam":  {"outer: {kind: adaptive, rate: 0.01, second: adam, beta1: 0.9, beta2: 0.99, tau: 0.001}"},
		"fedyogi":  {"outer: {kind: adaptive, rate: 0.01, second: yogi, beta1: 0.9, beta2: 0.99, tau: 0.001}"},
		"fedasync": {"buffer: 1", "exchange: parameters", "staleness: {kind: polynomial}",
			"outer: {kind: sgd, rate: 0.6"},
		"fedbuff": {"buffer: 10", "exchange: pseudo-gradient", "weights: equal", "staleness: {kind: polynomial}"},
	} {
		text := shown(t, inRounds, "architecture.preset="+preset)
		for _, setting := range append(want, "count: 3", "local: {steps: 2}") {
			if !strings.Contains(text, setting) {
				t.Errorf("%s is not shown with %s:\n%s", preset, setting, text)
			}
		}
		if strings.Contains(text, "preset") || shown(t, text) != text {
			t.Errorf("%s is not shown as a plan that means the same:\n%s", preset, text)
		}
	}
	// What the plan gives counts instead of the preset's.
	text := shown(t, inRounds, "architecture={kind: federated, preset: fedprox, proximal: 0, share: 20%}")
	if !strings.Contains(text, "proximal: 0\n") || !strings.Contains(text, "share: 20%") {
		t.Errorf("the preset has overridden the plan:\n%s", text)
	}
}

func TestPresetsOfAllReduceAreSpelledOut(t *testing.T) {
	for preset, want := range map[string][]string{
		"local-sgd":        {"every: 8"},
		"slowmo":           {"every: 12", "outer: {kind: momentum, rate: 1, momentum: 0.7, nesterov: false, "},
		"diloco":           {"every: 50", "outer: {kind: momentum, rate: 0.7, momentum: 0.9, nesterov: true, "},
		"sparta":           {"every: 1", "sparse: 0.5%"},
		"streaming-diloco": {"every: 100", "fragments: 4", "overlap: 5", "mix: 50%", "momentum: 0.9, nesterov: true, "},
	} {
		text := shown(t, peers, "architecture={kind: all-reduce, preset: "+preset+", algorithm: tree}")
		for _, setting := range append(want, "reduce: models", "algorithm: tree") {
			if !strings.Contains(text, setting) {
				t.Errorf("%s is not shown with %s:\n%s", preset, setting, text)
			}
		}
		if strings.Contains(text, "preset") || shown(t, text) != text {
			t.Errorf("%s is not shown as a plan that means the same:\n%s", preset, text)
		}
	}
	text := shown(t, peers, "architecture={kind: all-reduce, preset: diloco, every: 5, outer: {kind: sgd, rate: 1}}")
	if !strings.Contains(text, "every: 5") || !strings.Contains(text, "outer: {kind: sgd, rate: 1") {
		t.Errorf("the preset has overridden the plan:\n%s", text)
	}
}

// shown is the resolved text of a plan's only point.
func shown(t *testing.T, text string, set ...string) string {
	t.Helper()
	points, err := load(t, text, set...).Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	n, err := points[0].Spec.Plan.Node()
	if err != nil {
		t.Fatal(err)
	}
	return n.YAML()
}

func TestRoundsAreRefusedWhereThereAreNone(t *testing.T) {
	const federated = "architecture={kind: federated, "
	for set, want := range map[string]string{
		"architecture={kind: gossip}": `small.yaml:8:19: evaluate.every: architecture gossip has no rounds; accepted ` +
			`are epochs, steps and a duration`,
		"architecture={kind: gossip} evaluate.every=2s": `small.yaml:9:16: stop.rounds: architecture gossip has no ` +
			`rounds; accepted are epochs, steps and time`,
		federated + "preset: fedbuf}":                 `unknown preset "fedbuf"; did you mean fedbuff?`,
		federated + "compress: {}}":                   `models and updates travel whole`,
		federated + "count: 3, share: 10%}":           `exclude each other`,
		federated + "local: {epochs: 0}}":             `architecture.local.epochs: 0 is out of range`,
		federated + "outer: {kind: sdg}}":             `unknown optimizer "sdg"; did you mean sgd?`,
		federated + "deadline: 0s}":                   `architecture.deadline: 0s is out of range`,
		federated + "preset: fedprox, spare: 2}":      `architecture.spare: `,
		federated + "grace: {quorum: 0%}}":            `architecture.grace.quorum: 0% is out of range`,
		federated + "preset: fedasync, deadline: 1s}": `deadline is 1s: must be left out where buffer is given`,
		federated + "staleness: {kind: hinge}}":       `staleness goes with buffer`,
		federated + "preset: scaffold, population: 9}": `architecture.preset: controls is true: must be false with a ` +
			`population`,
	} {
		var assignments []string
		for _, one := range strings.Split(set, " evaluate") {
			if strings.HasPrefix(one, ".") {
				one = "evaluate" + one
			}
			assignments = append(assignments, one)
		}
		p, err := driver.Parse("small.yaml", []byte(inRounds), assignments...)
		if err == nil {
			_, err = p.Points(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
	points, err := load(t, inRounds, "architecture.population=90", "data.delivery=sent").Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = points[0].Task(shelf.New("", 1, nil), 1)
	if want := "data.delivery: a worker trains any client"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if p := plan.Default(); p.Stop.Rounds != 0 || p.Evaluate.Every.Rounds != 0 {
		t.Error("rounds are counted without being asked for")
	}
}
