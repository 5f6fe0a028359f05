package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
)

const regions = `name: regions
data: {set: synthetic-traffic, samples: 1000}
model: {kind: mlp, layers: [93, 1000, 5]}
architecture: {kind: all-reduce, algorithm: auto}
nodes: [{name: a, count: 2, compute: {step: 5ms}}, {name: b, count: 3, compute: {step: 5ms}}]
network:
  preset: regions-aws-2024
  sites: {a: fra, b: nrt}
  default: {rate: 5 Mbit/s}
  links: [{between: [a, a], delay: 1ms, rate: 10 Gbit/s}, {between: [b, b], delay: 1ms, rate: 10 Gbit/s}]
evaluate: {every: 3 steps}
stop: {steps: 3}
`

func regionsWith(t *testing.T, set ...string) *Plan {
	t.Helper()
	p, err := Parse("regions.yaml", []byte(regions), set...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// weighed returns the costs of the values that the network decides between.
func weighed(p *Plan) ([]Weighed, error) {
	e, err := p.Examine(nil)
	if err != nil {
		return nil, err
	}
	return e.Weighed, nil
}

// recordOf runs a plan and returns the first of its runs as its record has it.
func recordOf(t *testing.T, p *Plan) record.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := Run(context.Background(), p, Options{Out: dir}); err != nil {
		t.Fatal(err)
	}
	s, err := record.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s.Runs[0]
}

func TestRecordSaysWhatWasChosenAndRunsAreThoseOfThatWord(t *testing.T) {
	auto := recordOf(t, regionsWith(t))
	c := auto.Choice
	if c == nil || c.Setting != "architecture.algorithm" || c.Chosen != c.Costs[0].Word || len(c.Costs) != 5 ||
		c.Assumed != "" {
		t.Fatalf("%+v", c)
	}
	var took []float64
	for _, o := range c.Costs {
		stated := recordOf(t, regionsWith(t, "architecture.algorithm="+o.Word))
		took = append(took, stated.Duration)
		if stated.Choice != nil || (stated.Digest == auto.Digest) != (o.Word == c.Chosen) {
			t.Errorf("%s: choice %v, digest %s beside %s of auto", o.Word, stated.Choice, stated.Digest, auto.Digest)
		}
	}
	if slices.Min(took) != took[0] {
		t.Errorf("the runs take %v s, by formula %v", took, c.Costs)
	}
}

// A process of a cluster reads the text alone: what it states is what every one of them runs.
func TestTextOfARunStatesWhatWasChosen(t *testing.T) {
	points, err := regionsWith(t, "seed=4", "architecture.compress={up: [int8]}").Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := points[0].Text(9)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Parse("sent.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	if sent[0].Spec.Choice != nil || !cmp.Equal(sent[0].Spec.Architecture, points[0].Spec.Architecture) {
		t.Errorf("%+v, want %+v", sent[0].Spec.Architecture, points[0].Spec.Architecture)
	}
	resolved, err := regionsWith(t).Resolved(nil)
	if err != nil || !strings.Contains(resolved, "algorithm: auto") {
		t.Errorf("the resolved plan does not say auto: %v\n%s", err, resolved)
	}
}

func TestStatedWordThatCostsMoreThanTwiceTheLeastIsNamed(t *testing.T) {
	all, err := weighed(regionsWith(t, "sweep={architecture.algorithm: [hierarchical, auto]}"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Auto || !all[1].Auto || all[0].Warning+all[1].Warning != "" {
		t.Errorf("%+v", all)
	}
	text := strings.Replace(regions, "algorithm: auto", "algorithm: tree", 1)
	p, err := Parse("regions.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if all, err = weighed(p); err != nil || len(all) != 1 || all[0].Auto {
		t.Fatal(all, err)
	}
	const where = "regions.yaml:4:45: architecture.algorithm: "
	best := all[0].Costs[0]
	want := fmt.Sprintf("by formula an exchange takes %s, and %s", all[0].Of("tree"), best)
	if w := all[0].Warning; all[0].Of("tree").Seconds <= 2*best.Seconds || !strings.HasPrefix(w, where+want) {
		t.Errorf("%q, want %s%s", w, where, want)
	}
}

func TestChoiceSaysWhatItAssumes(t *testing.T) {
	for network, want := range map[string]string{
		"none":                                 assumedText,
		"{default: {delay: 0ms}}":              timelessText,
		"{default: {delay: 1ms}}":              "",
		"{share: fair, default: {delay: 1ms}}": queuedText,
		"{default: {delay: {kind: exponential, mean: 3ms}}}": "",
	} {
		all, err := weighed(regionsWith(t, "network="+network))
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || all[0].Assumed != want || len(all[0].Costs) != 4 {
			t.Errorf("%s: %+v, want %q, and no sites", network, all, want)
		}
		all, err = weighed(regionsWith(t, "network="+network, "architecture.algorithm=ring", "nodes.a.count=60"))
		if err != nil || (all[0].Warning == "") != (want != "") {
			t.Errorf("%s: %+v, %v; want a warning where nothing is assumed", network, all, err)
		}
	}
}

func TestAutoOfMoreWorkersThanItWeighsIsAButterfly(t *testing.T) {
	for set, want := range map[string]string{
		"{}": "butterfly", "{segment: 100}": "ring", "{compress: {up: [float16]}}": "all-to-all",
	} {
		many := regionsWith(t, "nodes.a.count=600", "architecture={kind: all-reduce}")
		if _, value, err := syntax.ParseAssignment("x=" + set); err != nil {
			t.Fatal(err)
		} else {
			for _, f := range value.Fields {
				if err := many.Set("architecture."+f.Key, f.Value.Flow()); err != nil {
					t.Fatal(err)
				}
			}
		}
		all, err := weighed(many)
		if err != nil || len(all) != 1 || all[0].Chosen != want || len(all[0].Costs) > 0 || !all[0].Auto {
			t.Errorf("%s: %+v, %v; want %s, which is not weighed", set, all, err, want)
		}
	}
	if all, err := weighed(regionsWith(t, "nodes.a.count=600", "architecture.algorithm=ring")); err != nil ||
		len(all) > 0 {
		t.Errorf("%+v, %v; want neither", all, err)
	}
}

func TestArchitecturesWithoutAnythingToChooseAreNotWeighed(t *testing.T) {
	if all, err := weighed(regionsWith(t, "architecture={kind: gossip}")); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v; want neither", all, err)
	}
}
