package experiment

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/nn/optim"
)

const compared = `name: compared
data: {set: synthetic-traffic, samples: 800}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 10, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: all-reduce}
nodes: [{name: w, count: 4, compute: {step: 5ms}}]
network: {default: {delay: 1ms}}
stop: {epochs: 2, steps: 1000}
`

func notesOf(t *testing.T, set ...string) string {
	t.Helper()
	p, err := Parse("compared.yaml", []byte(compared), set...)
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.Notes(nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

const twoKinds = "sweep={architecture: [{kind: all-reduce}, {kind: parameter-server, roles: {server: added}}]}"

func TestAUnitThatDiffersInOneComparisonIsTold(t *testing.T) {
	const tuned = "tune={train.optimizer.rate: [0.1, 0.2]}"
	for set, want := range map[string]string{
		"stop.steps=100":          "stop.steps: this bound counts steps of each worker (40 samples each) with",
		"evaluate.every=10 steps": "evaluate.every: this interval counts",
		"train.optimizer.rate={kind: step, first: 0.1, every: 10}":          "the schedule of the learning rate counts reductions",
		"train.optimizer.rate={kind: step, first: 0.1, every: 1 epochs}":    "",
		"train.optimizer.rate={kind: step, first: 0.1, every: 400 samples}": "",
		"train.optimizer.rate={kind: warmup, steps: 5, then: 0.1}":          "the schedule of the learning rate counts",
		"train.optimizer.rate={kind: exponential, first: 1, decay: 0.9}":    "the schedule of the learning rate counts",
		"train.optimizer.rate={kind: inverse, first: 1, half: 9}":           "the schedule of the learning rate counts",
		"train.optimizer.rate={kind: cosine, first: 1, steps: 2 epochs}":    "",
		"evaluate.every=0.5 epochs":                                         "",
	} {
		told := notesOf(t, twoKinds, "data.validation=10%", "tune={train.batch: [10]}", "stop={epochs: 1}", set)
		if told = strings.Replace(told, oneRateText, "", 1); want == "" && strings.Contains(told, "counts") ||
			!strings.Contains(told, want) {
			t.Errorf("%s: told %q, want %q", set, told, want)
		}
	}
	if told := notesOf(t, twoKinds, "data.validation=10%", tuned, "stop={epochs: 1}"); told != "" {
		t.Errorf("told %q of a comparison of equals", told)
	}
}

// The work of a federated round depends on the number of clients, the buffer and the local steps.
func TestRoundsOfOtherWorkAreTold(t *testing.T) {
	sweep := func(values string) string {
		values = strings.ReplaceAll(values, "F", "kind: federated, roles: {server: added}")
		return "sweep={architecture: [" + values + "]}"
	}
	for _, stop := range []string{"stop={rounds: 20}", "evaluate.every=2 rounds"} {
		for _, x := range []struct {
			values string
			want   []string
		}{
			{"{F, count: 2}, {F, buffer: 1, count: 2}, {F, local: {epochs: 5}}",
				[]string{"rounds (2 times a client's", "rounds (1 times a client's", "rounds (20 times a client's"}},
			{"{F, count: 2}, {F, local: {steps: 3}}",
				[]string{"rounds (2 times a client's", "rounds (120 samples each)"}},
			{"{F, local: {steps: 3}}, {F, local: {steps: 4}}", []string{"rounds (120 samples", "rounds (160 samples"}},
			{"{F, count: 2}, {F, count: 2, proximal: 0.1}", nil},
		} {
			told := notesOf(t, sweep(x.values), "data.validation=10%", "tune={train.batch: [10]}",
				"stop={epochs: 1}", stop)
			if x.want == nil && strings.Contains(told, "counts rounds") {
				t.Errorf("%s, %s: told %q of equal rounds", x.values, stop, told)
			}
			for _, want := range x.want {
				if !strings.Contains(told, want) {
					t.Errorf("%s, %s: told %q, want %q", x.values, stop, told, want)
				}
			}
		}
	}
}

const oneRateText = "one learning rate for all architectures favours some of them"

func TestOneLearningRateForSeveralArchitecturesIsTold(t *testing.T) {
	const stop = "stop={epochs: 1}"
	if told := notesOf(
		t,
		twoKinds,
		stop,
	); !strings.Contains(told, oneRateText) ||
		!strings.Contains(told, "up to 4 times") {
		t.Errorf("told %q", told)
	}
	for _, set := range [][]string{
		{"data.validation=10%", "tune={train.optimizer.rate: [0.1, 0.2]}", twoKinds},
		{"sweep={train.batch: [10, 20]}"},
		{"sweep={architecture.kind: [all-reduce, gossip], train.optimizer.rate: [0.1, 0.2]}", "architecture={}"},
	} {
		if told := notesOf(t, append(set, stop)...); strings.Contains(told, oneRateText) {
			t.Errorf("%s: told %q", set, told)
		}
	}
}

// A schedule in epochs falls at the same epoch under every architecture: the counts of an optimizer
// until then, times the samples of each, are the epoch.
func TestAScheduleInEpochsFallsAtTheSameEpochUnderEveryArchitecture(t *testing.T) {
	for _, kind := range catalog.Default().Architectures.All() {
		k := kind.Name
		if k == "in-network" || k == "gaia" {
			continue // which need more than added nodes; their paces are those of all-reduce and a server
		}
		set := []string{"architecture={kind: " + k + "}", "stop={epochs: 1}",
			"train.optimizer.rate={kind: step, first: 1, factor: 0.5, every: 2 epochs}"}
		if k == "gossip-learning" {
			set[0] = "architecture={kind: gossip-learning, period: 10ms}"
		}
		if k == "parameter-server" || k == "federated" {
			set[0] = "architecture={kind: " + k + ", roles: {server: added}}"
		}
		p, err := Parse("compared.yaml", []byte(compared), set...)
		if err != nil {
			t.Fatal(err)
		}
		points, err := p.Points(nil)
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		pace := train.PaceOf(points[0].Spec.Architecture, points[0].crew(600))
		counts := 2 * 600 / (pace.Batches * 10)
		rate := rateAfter(t, &points[0], 600, int(math.Ceil(counts)))
		before := rateAfter(t, &points[0], 600, int(counts)-1)
		if rate != 0.5 || before != 1 {
			t.Errorf("%s: rate %v after %v counts, %v before; want 0.5 and 1", k, rate, counts, before)
		}
	}
}

// settingsInSteps are all settings that count steps or rounds, with how a comparison of
// architectures treats them: by a note where they differ, or because they are a part of the
// architecture, whose steps are those of one worker wherever it has some.
var settingsInSteps = map[string]string{
	"plan.Stop.Steps":      "note",
	"plan.Stop.Rounds":     "note",
	"unit.Interval.Steps":  "note",
	"unit.Interval.Rounds": "note",
}

func TestEverySettingOfAPlanInStepsOrRoundsIsAmongThoseThatAreCompared(t *testing.T) {
	p := reflect.TypeOf(*mustPoint(t).Spec.Plan)
	found := map[string]bool{}
	counts(p, found, map[reflect.Type]bool{})
	for name := range found {
		if settingsInSteps[name] == "" {
			t.Errorf("%s counts steps or rounds, and no comparison looks at it", name)
		}
	}
	for name := range settingsInSteps {
		if !found[name] {
			t.Errorf("no plan has %s", name)
		}
	}
}

// counts finds the whole numbers called Steps or Rounds in a type.
func counts(of reflect.Type, found map[string]bool, seen map[reflect.Type]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || seen[of] || !strings.Contains(of.PkgPath(), "cluster/plan") ||
		strings.HasSuffix(of.PkgPath(), "syntax") {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Type.Kind() == reflect.Int && (f.Name == "Steps" || f.Name == "Rounds") {
			found[fmt.Sprint(of)+"."+f.Name] = true
		}
		counts(f.Type, found, seen)
	}
}

func mustPoint(t *testing.T) *Point {
	t.Helper()
	p, err := Parse("compared.yaml", []byte(compared))
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &points[0]
}

// rateAfter is the rate of a point's optimizer after some of its counts.
func rateAfter(t *testing.T, p *Point, epoch float64, count int) float64 {
	t.Helper()
	m := optim.Clock(p.Spec.Method, p.pace(epoch).Batches*float64(p.Spec.Batch), epoch)
	return m.(optim.Rated).Schedule().Rate(count)
}

func TestSettingsOfArchitecturesThatCountDifferentlyAreTold(t *testing.T) {
	const stop, rates = "stop={epochs: 1}", "train.optimizer.rate=0.1"
	for sweep, want := range map[string]string{
		"{architecture: [{kind: gossip, lead: 4}, {kind: parameter-server, roles: {server: added}, consistency: " +
			"{kind: ssp, bound: 4}}]}": "the bound on how far nodes may be ahead counts steps of a worker (10 samples " +
			"each) with",
		"{architecture: [{kind: gossip, every: 4}, {kind: federated, roles: {server: added}, local: {epochs: 1}}]}": "the interval between exchanges counts steps of each worker (40 samples each) with",
		"{architecture: [{kind: gossip, every: 4}, {kind: noloco, every: 8}]}":                                      "",
		"{architecture: [{kind: gossip, every: 80 samples}, {kind: noloco, every: 0.1 epochs}]}":                    "",
		"{architecture: [{kind: d-psgd, moved: 0.1}, {kind: gossip, every: 4, moved: 0.1}]}":                        "by which moved",
	} {
		told := strings.Replace(notesOf(t, "sweep="+sweep, stop, rates), oneRateText, "", 1)
		if want == "" && strings.Contains(told, "counts") || !strings.Contains(told, want) {
			t.Errorf("%s: told %q, want %q", sweep, told, want)
		}
	}
}

// JSON has no other way to write a number with a unit.
func TestCountsWithUnitsMayBeQuoted(t *testing.T) {
	for _, set := range []string{
		`train.optimizer.rate={kind: step, first: 1, factor: 0.5, every: "2 epochs"}`,
		`architecture={kind: gossip, every: "0.1 epochs"}`,
	} {
		if told := notesOf(t, set, "stop={epochs: 1}"); told != "" {
			t.Errorf("%s: told %q", set, told)
		}
	}
}
