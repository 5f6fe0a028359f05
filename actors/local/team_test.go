package local_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/local"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

const decay = 0.01

// slide is a rate that falls from step to step.
type slide struct{}

func (slide) Rate(step int) float64 { return 0.2 / (1 + 0.05*float64(step)) }

// together is what threads make of a copy in rounds, written down a second time: a list of draws,
// plain slices, no threads, no atomic words. It returns the model after each round, and the
// staleness of all steps.
func together(t *testing.T, task *train.Task, worker, rounds int) (models [][]float32, stale []uint64) {
	t.Helper()
	threads := task.Threads[worker]
	sampler, err := datasets.NewSampler(task.Train, task.Shards[worker], task.Batch, task.Seed, task.Workers[worker])
	if err != nil {
		t.Fatal(err)
	}
	params, steps, workspace := task.Initial(), local.Turns*threads, task.Model.NewWorkspace(task.Batch)
	seeds := rand.New(actors.Source(task.Seed, task.Workers[worker]+"/peer", "threads"))
	gradients, ages := make([][]float32, threads), make([]int, threads)
	for round := range rounds {
		draws, updates, next := rand.New(rand.NewPCG(seeds.Uint64(), 0)), 0, 0
		mine := make([]int, threads) // the step of each thread, −1 for none
		var left []int
		for thread := range threads {
			mine[thread], left = -1, append(left, thread)
		}
		stale = append(stale, make([]uint64, steps)...)
		for len(left) > 0 {
			place := draws.IntN(len(left))
			thread := left[place]
			if mine[thread] < 0 && next == steps {
				left = slices.Delete(left, place, place+1)
				continue
			}
			if mine[thread] < 0 {
				step := round*steps + next
				x, y := make([]float32, task.Batch*task.Train.Inputs), make([]int32, task.Batch)
				n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
				gradients[thread] = make([]float32, len(params))
				workspace.Gradient(params, gradients[thread], nn.Batch{X: x[:n*task.Train.Inputs], Y: y[:n]})
				nn.AddScaled(gradients[thread], decay, params) // fused or not, as the kernels are
				mine[thread], ages[thread] = step, updates
				next++
				continue
			}
			for i, g := range gradients[thread] {
				product := float32(-slide{}.Rate(mine[thread])) * g
				params[i] += product
			}
			stale[mine[thread]] = uint64(updates - ages[thread])
			updates++
			mine[thread] = -1
		}
		models = append(models, slices.Clone(params))
	}
	return models, stale
}

func TestThreadsMakeWhatTheOrderDrawnMakes(t *testing.T) {
	task := simtest.NewTask(3, 60, rate)
	task.Threads, task.Method = []int{1, 3, 4}, optim.SGD{Rate: slide{}, WeightDecay: decay}
	for _, x := range []struct{ threads, processors int }{{0, 1}, {2, 1}, {2, 2}} {
		events := &simtest.Recorder{}
		s := simtest.Stage{Task: task, Kind: local.Architecture{}, Strict: true, Threads: x.threads, Observer: events,
			Looks: []time.Duration{15 * time.Second}}
		before := runtime.GOMAXPROCS(x.processors)
		look := s.Run(t)[0]
		runtime.GOMAXPROCS(before)
		for worker := 1; worker < 3; worker++ {
			rounds := 150 / (local.Turns * task.Threads[worker]) // on one core, steps of 100 ms
			models, stale := together(t, task, worker, rounds)
			if steps := rounds * local.Turns * task.Threads[worker]; look[worker].Version != uint64(steps) {
				t.Fatalf("worker %d has made %d steps, want %d", worker, look[worker].Version, steps)
			}
			same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
			if !slices.EqualFunc(look[worker].Params, models[rounds-1], same) {
				t.Errorf("%+v: worker %d has another model than the dumb one", x, worker)
			}
			var got []uint64
			for i, e := range events.Events {
				if e.Kind == actors.UpdateApplied && events.Nodes[i] == worker {
					got = append(got, e.Staleness)
				}
			}
			if !slices.Equal(got, stale) || slices.Max(got) == 0 {
				t.Errorf("%+v: worker %d has updates of staleness %v, want %v", x, worker, got, stale)
			}
		}
	}
}

// loss is the mean over the training samples.
func loss(task *train.Task, params []float32) float64 {
	sum, _ := task.Model.NewWorkspace(64).Evaluate(params, nn.Batch{X: task.Train.X, Y: task.Train.Y})
	return sum / float64(len(task.Train.Y))
}

func TestThreadsConvergeAsOneDoes(t *testing.T) {
	for _, threads := range []int{1, 2, 4, 8} {
		task := simtest.NewTask(1, 400, rate)
		task.Threads = []int{threads}
		s := simtest.Stage{Task: task, Kind: local.Architecture{}, Looks: []time.Duration{130 * time.Second}}
		if got, first := loss(task, s.Run(t)[0][0].Params), loss(task, task.Initial()); got > 0.6 || first < 0.9 {
			t.Errorf("%d threads: the loss fell from %.3f to %.3f", threads, first, got)
		} else {
			t.Logf("%d threads: %.3f to %.4f", threads, first, got)
		}
	}
}
