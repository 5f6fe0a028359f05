package collective_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: all-reduce}
nodes: [{name: first, compute: {step: 5ms}}, {name: peer, count: 2, compute: {step: 150ms}}]
network: {default: {delay: 5ms}}
evaluate: {every: 2 steps}
stop: {time: 400ms}
`

// last runs a plan and returns the parameters that its only run ends with.
func last(t *testing.T, clock driver.Clock, set ...string) []float32 {
	t.Helper()
	p, err := driver.Parse("small.yaml", []byte(small), set...)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := driver.Run(context.Background(), p, driver.Options{Out: out, Clock: clock, Strict: true}); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(out, "runs", "0000", "models.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	params, _, _, err := safetensors.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// A round takes some 160 ms, of models 310 ms: the run ends in the midst of one, while the first
// node waits for the others, so that a machine that is some 60 ms late changes nothing. One that is
// later may look at another round, and gets another chance; sums in another order would not be
// equal in any.
func TestBothWorldsEndWithTheSameModel(t *testing.T) {
	for i, a := range algorithms {
		set := []string{fmt.Sprintf("architecture.algorithm=%s", a), "network.preset=regions-aws-2024",
			"network.sites={first: fra, \"*\": lhr}"}
		if i%2 == 1 {
			set = append(set, "architecture.reduce=models", "architecture.every=2")
		}
		if a == collective.AllToAll {
			set = append(set, "architecture.compress={up: [{kind: random-k, share: 10%}, qsgd], feedback: ef21}")
		}
		virtual := last(t, driver.Virtual, set...)
		equal := false
		for chances := 5; chances > 0 && !equal; chances-- {
			equal = slices.Equal(virtual, last(t, driver.Real, set...))
		}
		if len(virtual) == 0 || !equal {
			t.Errorf("%s: the models of virtual and real time differ", a)
		}
	}
}

func TestPlanErrorsSayWhereTheyAre(t *testing.T) {
	for set, want := range map[string]string{
		"architecture.algorithm=star": `unknown algorithm "star" (accepted: all-to-all, ring, butterfly, tree, ` +
			"hierarchical, auto)",
		"architecture.algorithm=hierarchical": "architecture.algorithm: algorithm is hierarchical: must be another " +
			"one, because the network has no sites; a preset or a matrix has them",
		"architecture.every=0":       "every: 0 is out of range; accepted is 1 to 1048576",
		"architecture.reduce=losses": `unknown reduce "losses" (accepted: gradients, models)`,
		"architecture.ranks=3":       "ranks",
		"architecture.moved=0.1":     "architecture.moved: moved goes with reduce: models only",
		"nodes.peer.role=server":     "worker",
	} {
		p, err := driver.Parse("small.yaml", []byte(small), set)
		if err == nil {
			_, err = driver.Run(context.Background(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
}

func TestExampleIsAccepted(t *testing.T) {
	p, err := driver.Load("../../examples/all-reduce-algorithms.yaml", "stop.epochs=0.1", "repeats=1")
	if err != nil {
		t.Fatal(err)
	}
	report, err := driver.Run(context.Background(), p, driver.Options{Out: filepath.Join(t.TempDir(), "out")})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 9 {
		t.Errorf("%d runs, want 9", len(report.Runs))
	}
}
