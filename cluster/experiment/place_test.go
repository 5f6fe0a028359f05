package experiment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/world"
)

const moving = `
name: moving
data: {set: synthetic-traffic, samples: 1000}
model: {kind: mlp, layers: [93, 5]}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: w, role: worker, count: 19}]
network: {topology: {kind: random-regular, degree: 3}}
evaluate: {sample: 1}
stop: {time: 10s}
schedule:
  - {at: 5s, topology: {kind: star, centre: w2}}
  - {at: 3s, node: w1, do: join}
  - {at: 4s, node: w2, do: leave}
  - {at: 2s, topology: {kind: random-regular, degree: 3}}
  - {at: 1s, node: w2, do: crash}
  - {at: 2s, node: w2, do: join}
`

// placed makes the deployment of the only point of a plan.
func placed(t *testing.T, text string, seed uint64, set ...string) *world.Deployment {
	t.Helper()
	p, err := Parse("moving.yaml", []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	points, err := p.Points(nil)
	if err != nil {
		t.Fatal(err)
	}
	task, err := points[0].Task(NewShelf("", 1, nil), seed)
	if err != nil {
		t.Fatal(err)
	}
	s, err := points[0].Stage(task, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []coordinator.TopologyChange{{At: 2 * time.Second, Topology: 1}, {At: 5 * time.Second, Topology: 2}}
	if got := points[0].topologyChanges(); len(set) == 0 && !cmp.Equal(want, got) {
		t.Errorf("topologies change %v, want %v", got, want)
	}
	return s.Deployment
}

func TestDeploymentSaysWhatTheScheduleDoes(t *testing.T) {
	d := placed(t, moving, 1)
	want := []world.NodeChange{
		{At: time.Second, Node: 2, Do: world.Crash}, {At: 2 * time.Second, Node: 2, Do: world.Join},
		{At: 3 * time.Second, Node: 1, Do: world.Join}, {At: 4 * time.Second, Node: 2, Do: world.Leave},
	}
	if diff := cmp.Diff(want, d.Schedule); diff != "" || d.Detect != 1500*time.Millisecond {
		t.Errorf("detect %v, %s", d.Detect, diff)
	}
	for i, n := range d.Nodes {
		if n.Absent != (n.Name == "w1") {
			t.Errorf("node %d, %s, is absent: %v", i, n.Name, n.Absent)
		}
	}
	if len(d.Topologies) != 3 {
		t.Fatalf("%d topologies", len(d.Topologies))
	}
	for i, g := range d.Topologies {
		if err := g.Validate(len(d.Nodes)); err != nil || g == nil {
			t.Errorf("topology %d: %v", i, err)
		}
	}
	if got := len(d.Topologies[2][2]); got != 19 {
		t.Errorf("the centre has %d neighbours", got)
	}
}

func TestDeploymentIsLossyWhereALinkDropsMessages(t *testing.T) {
	for set, want := range map[string]bool{
		"network.default={delay: 1ms}":                                                 false,
		"network.default={loss: {probability: 1%}}":                                    false,
		"network.default={loss: {probability: 1%, kind: drop}}":                        true,
		"network.links=[{between: [s, w], loss: {probability: 1%, kind: drop}}]":       true,
		"network.links=[{between: [s, w], loss: {probability: 1%}}]":                   false,
		"schedule=[{at: 1s, from: s, to: w, loss: {probability: 1%, kind: drop}}]":     true,
		"schedule=[{at: 1s, from: s, to: w, loss: {probability: 1%}}]":                 false,
		"schedule=[{at: 1s, from: s, to: w, do: down}, {at: 2s, node: w1, do: leave}]": false,
	} {
		if got := placed(t, moving, 1, set, "architecture.delivery=as-is"); got.Lossy != want || got.Reliable {
			t.Errorf("%s: lossy is %v, reliable %v", set, got.Lossy, got.Reliable)
		}
		if got := placed(t, moving, 1, set); got.Lossy != want || !got.Reliable {
			t.Errorf("%s, with sessions: lossy is %v, reliable %v", set, got.Lossy, got.Reliable)
		}
	}
}

// TestRandomTopologyDependsOnSeedAndInstant draws four graphs of the same kind: of two seeds and
// two instants.
func TestRandomTopologyDependsOnSeedAndInstant(t *testing.T) {
	d, other := placed(t, moving, 1), placed(t, moving, 2)
	graphs := []actors.Graph{d.Topologies[0], d.Topologies[1], other.Topologies[0], other.Topologies[1]}
	for i := range graphs {
		for k := range i {
			if cmp.Equal(graphs[i], graphs[k]) {
				t.Errorf("graphs %d and %d are the same", k, i)
			}
		}
	}
	fewer := placed(t, moving, 1,
		"schedule=[{at: 1s, topology: ring}, {at: 2s, topology: {kind: random-regular, degree: 3}}]")
	if diff := cmp.Diff(d.Topologies[:2], []actors.Graph{fewer.Topologies[0], fewer.Topologies[2]}); diff != "" {
		t.Errorf("a change that is added moves the others: %s", diff)
	}
}

func TestPolicySamplesAsThePlanSays(t *testing.T) {
	for sample, want := range map[string]int{"{sample: 7}": 7, "{every: 1s}": 0} {
		p, err := Parse("moving.yaml", []byte(moving), "evaluate="+sample)
		if err != nil {
			t.Fatal(err)
		}
		points, err := p.Points(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := policy(points[0].Spec.Plan).Sample; got != want {
			t.Errorf("%s: a sample of %d, want %d", sample, got, want)
		}
	}
}
