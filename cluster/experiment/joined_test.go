package experiment

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/turns"
)

// joined is a plan in which n4 joins at 300 ms. Its line delays what it asks for by 0.5 s and
// what it gets by 0.5 s, so that many evaluations meet it without a model. n3 loses its model
// in a crash at 1 s and joins again at 1.1 s.
const joined = `
name: joined
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 60, 5]}
train: {batch: 8, optimizer: {kind: momentum}}
architecture: {kind: local}
nodes:
  - {name: n1, compute: {step: 10ms}}
  - {name: n2, compute: {step: 11ms}}
  - {name: n3, compute: {step: 12ms}}
  - {name: n4, compute: {step: 30ms}, delay: 500ms}
network: {topology: ring, default: {delay: 1ms, rate: 30 Mbit/s}}
schedule:
  - {at: 300ms, node: n4, do: join}
  - {at: 1s, node: n3, do: crash}
  - {at: 1100ms, node: n3, do: join}
detect: 15ms
evaluate: {every: 25ms, of: all}
stop: {time: 6s}
`

// crash is the number of the evaluation at which n3 crashes.
const crash = 41

// A verdict on the untrained model is the one on the initial model, to the last bit of its loss.
func TestNodeThatJoinsIsEvaluatedFromItsFirstTrainedModelOn(t *testing.T) {
	for i, architecture := range architectures {
		t.Run(architecture, func(t *testing.T) {
			turns.Row(t, i, len(architectures), 3)
			t.Parallel()
			s := stagedPlan(t, joined, "architecture="+architecture)
			if len(s.holders) < 2 || s.joint {
				return // the nodes that hold the model do not join
			}
			w, err := sim.New(s.simulation())
			if err != nil {
				t.Fatal(err)
			}
			e := finish(t, s, w)
			first, last := e.Data.Models[0], e.Run.Last
			looked, back := map[uint64]int{}, map[string]bool{}
			for _, v := range e.Data.Models {
				looked[v.Number]++
				back[v.Node] = back[v.Node] || v.Number == last
				joined := v.Node == "n4" || v.Node == "n3" && v.Number > crash
				if joined && v.Loss == first.Loss {
					t.Errorf("evaluation %d is of the untrained model of %s", v.Number, v.Node)
				}
			}
			for _, c := range e.Data.Curve {
				if c.Models != looked[c.Number] {
					t.Errorf("evaluation %d is of %d models by the curve, of %d by their verdicts", c.Number, c.Models,
						looked[c.Number])
				}
			}
			judged := s.judged()
			if judged.Count != looked[last] || len(judged.Nodes) != judged.Count || len(e.Run.Models) != judged.Count {
				t.Errorf("the run ends with %v and %d models, the last evaluation is of %d", judged, len(e.Run.Models),
					looked[last])
			}
			for _, node := range judged.Nodes {
				if !back[node] {
					t.Errorf("%s is named, and the last evaluation is not of it", node)
				}
			}
			for _, node := range s.holders {
				if name := s.Names[node]; !back[name] {
					t.Errorf("%s is not evaluated at the end", name)
				}
			}
		})
	}
}

// The same holds where the clock is real.
func TestNodeThatJoinsInRealTimeIsEvaluatedFromItsFirstTrainedModelOn(t *testing.T) {
	t.Parallel()
	p, err := Parse("plan.yaml", []byte(joined), "architecture={kind: gossip}", "schedule="+
		"[{at: 300ms, node: n4, do: join}]", "stop.time=2500ms", "record=models")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "record")
	report, err := Run(context.Background(), p, Options{Out: out, Clock: RealTime, KeepRuntime: true})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := record.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	d, err := folder.Data(0)
	if err != nil {
		t.Fatal(err)
	}
	untrained, seen := d.Models[0].Loss, 0
	for _, v := range d.Models {
		if v.Node != "n4" {
			continue
		}
		if seen++; v.Loss == untrained {
			t.Errorf("evaluation %d is of the untrained model of n4", v.Number)
		}
	}
	if judged := report.Runs[0].Judged; seen == 0 || judged == nil ||
		!slices.Equal(judged.Nodes, []string{"n1", "n2", "n3", "n4"}) {
		t.Errorf("n4 is evaluated %d times, and the run ends with %v", seen, judged)
	}
}
