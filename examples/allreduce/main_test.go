package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/driver/drivertest"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/partition"
	"github.com/gradwire/gradwire/datasets/synthetic"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

const small = `
seed: 5
data: {set: synthetic-traffic, samples: 2000}
model: {kind: mlp, layers: [93, 21, 5]}
train: {batch: 16, optimizer: {kind: sgd, rate: 0.2}}
architecture: {kind: all-to-all}
nodes: [{name: peer, role: worker, count: 3, compute: {step: 50ms}}]
network: {default: {delay: {kind: uniform, range: 80ms..82ms}}}
evaluate: {every: 10 steps}
stop: {steps: 20}
`

// joint trains one model in one loop on the gradients of all workers' batches, and
// returns its parameters after each round.
func joint(t *testing.T, rounds int) [][]float32 {
	t.Helper()
	pool := synthetic.Traffic(1, 2000, 93)
	rows, rest, err := datasets.Holdout(pool.Len(), 0.25, 5)
	if err != nil {
		t.Fatal(err)
	}
	set := pool.Subset(rows)
	datasets.FitScaler(datasets.MinMax, pool, rows).Apply(set)
	model, err := nn.NewMLP([]int{93, 21, 5}, nn.ReLU)
	if err != nil {
		t.Fatal(err)
	}
	workers := []string{"peer1", "peer2", "peer3"}
	shards, err := partition.IID{}.Assign(set, workers, 5)
	if err != nil {
		t.Fatal(err)
	}
	task := &train.Task{Model: model, Train: set, Test: pool.Subset(rest), Seed: 5}
	params := task.Initial()
	method := optim.SGD{Rate: optim.Constant(0.2)}.New(len(params))
	workspace := model.NewWorkspace(16)
	x, y, grad := make([]float32, 16*93), make([]int32, 16), make([]float32, len(params))
	var all [][]float32
	for round := range rounds {
		sum := make([]float32, len(params))
		for i, name := range workers {
			sampler, err := datasets.NewSampler(set, shards[i], 16, 5, name)
			if err != nil {
				t.Fatal(err)
			}
			n := sampler.Fill(round/sampler.Steps(), round%sampler.Steps(), x, y)
			workspace.Gradient(params, grad, nn.Batch{X: x[:n*93], Y: y[:n]})
			nn.AddScaled(sum, 1/float32(3), grad)
		}
		method.Step(params, params, sum)
		all = append(all, slices.Clone(params))
	}
	return all
}

func TestAllToAllEqualsOneProcessOnAllGradientsInBothWorlds(t *testing.T) {
	want := joint(t, 20)
	for _, clock := range []driver.Clock{driver.Virtual, driver.Real} {
		t.Run(string(clock), func(t *testing.T) {
			p, err := driver.Parse("small.yaml", []byte(small))
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "out")
			if _, err := driver.Run(context.Background(), p,
				driver.Options{Catalog: withAllToAll(), Out: out, Clock: clock, Strict: true}); err != nil {
				t.Fatal(err)
			}
			got := model(t, out)[:len(want[0])] // of the first node
			// The last snapshot is taken when the first peer has its 20th gradient:
			// the 19th round is applied then, the 20th perhaps.
			if fmt.Sprint(got) != fmt.Sprint(want[18]) && fmt.Sprint(got) != fmt.Sprint(want[19]) {
				t.Error("the parameters match neither round 19 nor round 20 of one process")
			}
		})
	}
}

// A resumed run ends with the model that one process computes from all gradients.
func TestInterruptedPeersGoOnWhereTheyWere(t *testing.T) {
	want := joint(t, 20)
	p, err := driver.Parse("small.yaml", []byte(small), "checkpoint={every: 500ms}")
	if err != nil {
		t.Fatal(err)
	}
	report := drivertest.Resumed(t, p, driver.Options{Catalog: withAllToAll()})
	got := model(t, report.Dir)[:len(want[0])]
	if !slices.Equal(got, want[18]) && !slices.Equal(got, want[19]) {
		t.Error("the parameters match neither round 19 nor round 20 of one process")
	}
}

// model reads the parameters that the only run of a record ended with.
func model(t *testing.T, dir string) []float32 {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "runs", "0000", "models.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	params, _, _, err := safetensors.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return params
}
