package experiment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolvedPlanHasTheSamePointsAsThePlan(t *testing.T) {
	const base = `
name: base
data: {set: synthetic-traffic, samples: 1000}
model: {kind: mlp, layers: [93, 5]}
train: {batch: 8, optimizer: {kind: sgd}}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: w, role: worker, count: 2}]
network: {default: {delay: 1ms}}
schedule: [{at: 1m, topology: {kind: tree}}, {at: 2m, node: w2, do: crash}]
stop: {epochs: 1}
`
	for _, sweep := range []string{
		"{}", "{train.optimizer.kind: [sgd, adam]}", "{train.optimizer.kind: [momentum, sgd], train.batch: [4, 8]}",
		"{data.split: [{label: a, kind: shards}, {label: b, kind: iid}]}", "{data.split.kind: [shards, iid]}",
		"{network.default.delay: [1ms, {label: walk, kind: random-walk, first: 1s..5s, step: 0.5s}]}",
		"{nodes.w.count: [2, 3], nodes.w.compute: [{step: 5ms}, {speed: 1 GFLOP/s}]}", "{stop.epochs: [1, 2]}",
		"{network.topology: [ring, {label: sparse, kind: tree, branching: 1}]}",
		"{network.topology.kind: [ring, tree]}",
		"{schedule.0.topology.kind: [tree, star]}", "{detect: [0s, 10s], nodes.w.count: [2, 3]}",
		"{zip: {train.batch: [4, 8], train.optimizer.rate: [0.1, 0.2]}, detect: [0s, 1s]}", "{nodes.s.name: [server]}",
		"{nodes.w: [{name: w, role: worker, count: 3}]}", "{network.default.delay: [1ms]}", "{seed: [3, 4]}",
	} {
		t.Run(sweep, func(t *testing.T) { resolves(t, "base.yaml", base, "sweep="+sweep) })
	}
	// Nodes without a role get the roles of the architecture, which is varied.
	alike := []string{"architecture={kind: all-reduce}", "nodes=[{name: n, count: 3}]", "network.topology=ring",
		"schedule=[]"}
	for _, sweep := range []string{
		"{architecture.kind: [all-reduce, gossip]}",
		"{architecture: [{label: a, kind: d-psgd}, {label: b, kind: all-reduce, every: 2}]}",
		"{architecture.kind: [ad-psgd, all-reduce], detect: [0s, 10s]}",
	} {
		t.Run(sweep, func(t *testing.T) { resolves(t, "base.yaml", base, append(alike, "sweep="+sweep)...) })
	}
}

func TestResolvedPlanThatNamesFilesHasTheSamePointsAsThePlan(t *testing.T) {
	const file = "../../examples/links/plan.yaml" // which names a trace and a topology beside it
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const trace = "../../examples/links/bottleneck.csv"
	other := filepath.Join(t.TempDir(), "other.csv")
	if err := os.WriteFile(other, []byte("time_s,delay_ms\n0,10\n1,20\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("{from: riga, to: oslo, delay: 1ms}, ", 6) +
		"{from: lyon, to: oslo, delay: {kind: trace, file: " + other + "}}"
	for _, sweep := range []string{
		// Its file has an absolute name, since its text is too long for a label.
		"{network.links: [[" + long + "], []]}",
		"{network.links.kyiv->rome: [{from: rome, to: kyiv, delay: {kind: trace, file: " + trace + "}}]}",
		"{network.links.kyiv->rome.delay.file: [" + trace + ", " + other +
			"], network.links.kyiv->rome.to: [bern, rome]}",
		"{network.default.delay: [10ms, 20ms]}",
		"{network.links.6.delay.file: [" + trace + ", " + other + "]}",
		"{network.links.kyiv->rome.delay: [{kind: trace, file: " + trace +
			"}, {label: constant, value: 3ms}], network.default.delay: [1ms, 2ms]}",
	} {
		t.Run(sweep, func(t *testing.T) { resolves(t, file, string(text), "sweep="+sweep) })
	}
}

func TestExamplesResolveToPlansOfTheSamePoints(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range append(files, deeper...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Points(nil); err != nil {
			continue // an architecture of the example's own
		}
		count++
		t.Run(file, func(t *testing.T) { resolves(t, file, string(text)) })
	}
	if count < 12 {
		t.Errorf("only %d examples can be read", count)
	}
}

// resolves checks that a plan and what it resolves to, in another folder, have the same points.
func resolves(t *testing.T, file, text string, set ...string) {
	t.Helper()
	p, err := Parse(file, []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	want := spelled(t, p)
	resolved, err := p.Resolved(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("another/plan.yaml", []byte(resolved))
	if err != nil {
		t.Fatalf("the resolved plan cannot be read: %v\n%s", err, resolved)
	}
	got := spelled(t, again)
	if len(want) != len(got) {
		t.Fatalf("%d points, resolved %d", len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("point %d: resolved\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if twice, err := again.Resolved(nil); err != nil || twice != resolved {
		t.Errorf("resolved twice: %v\n%s\nonce\n%s", err, twice, resolved)
	}
}

// spelled returns the points of a plan with all defaults spelled out.
func spelled(t *testing.T, p *Plan) []string {
	t.Helper()
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, at := range points {
		node, err := at.Spec.Plan.Node()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, node.YAML())
	}
	return texts
}
