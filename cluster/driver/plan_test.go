package driver

import (
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
		"{network.topology: [ring, {label: sparse, kind: tree, branching: 1}]}", "{network.topology.kind: [ring, tree]}",
		"{schedule.0.topology.kind: [tree, star]}", "{detect: [0s, 10s], nodes.w.count: [2, 3]}",
	} {
		p, err := Parse("base.yaml", []byte(base), "sweep="+sweep)
		if err != nil {
			t.Fatal(err)
		}
		text, err := p.Resolved(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("plan.yaml", []byte(text))
		if err != nil {
			t.Fatalf("sweep %s resolves to a plan that cannot be read: %v\n%s", sweep, err, text)
		}
		want, got := spelled(t, p), spelled(t, again)
		if len(want) != len(got) {
			t.Fatalf("sweep %s: %d points, resolved %d", sweep, len(want), len(got))
		}
		for i := range want {
			if want[i] != got[i] {
				t.Errorf("sweep %s, point %d: resolved\n%s\nwant\n%s", sweep, i, got[i], want[i])
			}
		}
	}
}

// spelled returns the points of a plan with all defaults spelled out.
func spelled(t *testing.T, p *Plan) []string {
	t.Helper()
	points, err := p.points(nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, at := range points {
		node, err := at.spec.Plan.Node()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, node.YAML())
	}
	return texts
}
