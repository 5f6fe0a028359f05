package local_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

const rate = 0.1

// alone is plain stochastic gradient descent of one worker: no actors, no messages, no optimiser.
func alone(t *testing.T, task *train.Task, worker, steps int) []float32 {
	t.Helper()
	sampler, err := datasets.NewSampler(task.Train, task.Shards[worker], task.Batch, task.Seed, task.Workers[worker])
	if err != nil {
		t.Fatal(err)
	}
	params, gradient := task.Initial(), make([]float32, task.Model.Params())
	x, y := make([]float32, task.Batch*task.Train.Inputs), make([]int32, task.Batch)
	for step := range steps {
		n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
		task.Model.NewWorkspace(task.Batch).Gradient(params, gradient, nn.Batch{X: x[:n*task.Train.Inputs], Y: y[:n]})
		nn.AddScaled(params, -rate, gradient) // fused or not, as the kernels are
	}
	return params
}

// expect compares the models at a look, bit for bit, with plain descent after the given numbers of
// steps.
func expect(t *testing.T, task *train.Task, look []simtest.Seen, steps []int) {
	t.Helper()
	for node, seen := range look {
		if seen.Version != uint64(steps[node]) {
			t.Errorf("node %d has made %d steps, want %d", node, seen.Version, steps[node])
			continue
		}
		same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
		if !slices.EqualFunc(seen.Params, alone(t, task, node, steps[node]), same) {
			t.Errorf("node %d: the model differs from plain descent after %d steps", node, steps[node])
		}
	}
}

func TestPeersTrainAsIfEachWereAlone(t *testing.T) {
	s := simtest.Stage{
		Task: simtest.NewTask(4, 60, rate), Kind: local.Architecture{}, Strict: true, Threads: 2,
		Step: []time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
			70 * time.Millisecond},
		Looks: []time.Duration{705 * time.Millisecond},
	}
	looks := s.Run(t)
	expect(t, s.Task, looks[0], []int{70, 35, 14, 10})
}

func TestWhoJoinsBeginsFromTheInitialModelAndDisturbsNobody(t *testing.T) {
	s := simtest.Stage{
		Task: simtest.NewTask(3, 60, rate), Kind: local.Architecture{}, Absent: []int{2},
		Schedule: []world.NodeChange{
			{At: 250 * time.Millisecond, Node: 2, Do: world.Join},
			{At: 320 * time.Millisecond, Node: 1, Do: world.Crash},
			{At: 600 * time.Millisecond, Node: 1, Do: world.Join},
		},
		Looks: []time.Duration{1045 * time.Millisecond},
	}
	looks := s.Run(t)
	expect(t, s.Task, looks[0], []int{10, 4, 7})
}
