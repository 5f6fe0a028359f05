package ps_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// applied is one update as the replay makes it.
type applied struct {
	Done      time.Duration
	Worker    int
	Staleness uint64
}

// localRound writes out what a worker does between fetching parameters and pushing: steps on a
// copy, the sum of their gradients, and the time that its own steps of the optimiser and its sums
// take.
func localRound(
	s *stage, sampler *datasets.Sampler, first int, params []float32, rate float32,
) (sum []float32, own time.Duration) {
	every := max(s.arch.Every, 1)
	params = append([]float32(nil), params...)
	for k := range every {
		gradient := gradientOf(s.task, sampler, first+k, params)
		work := 2 * float64(len(params))
		if k == 0 {
			sum = append([]float32(nil), gradient...)
		} else {
			for i := range sum {
				sum[i] += gradient[i]
			}
			work += float64(len(params))
		}
		nn.AddScaled(params, -rate, gradient)
		if every > 1 {
			own += time.Duration(work) // a worker makes 1e9 operations a second
		}
	}
	return sum, own
}

// replay is a second, dumb implementation of the whole cycle: no actors, no
// messages, no pools, plain SGD written out. It returns the model after each update.
func replay(tb testing.TB, s *stage, rate float32, end time.Duration) (models [][]float32, updates []applied) {
	type worker struct {
		arrives time.Duration // of its next push at the server
		version int           // that the push was computed on
		steps   int
		sampler *datasets.Sampler
		push    []float32
	}
	// fetch lets a worker begin a round with the latest model, which is on its way from an instant
	// on.
	fetch := func(w *worker, i int, at time.Duration) {
		var own time.Duration
		w.version = len(models) - 1
		w.push, own = localRound(s, w.sampler, w.steps, models[w.version], rate)
		every := max(s.arch.Every, 1)
		w.steps += every
		w.arrives = at + 2*s.delays[i] + time.Duration(every)*s.steps[i] + own
	}
	models = [][]float32{s.task.Initial()}
	workers := make([]worker, len(s.task.Workers))
	for i, name := range s.task.Workers {
		sampler, err := datasets.NewSampler(s.task.Train, s.task.Shards[i], s.task.Batch, s.task.Seed, name)
		if err != nil {
			tb.Fatal(err)
		}
		workers[i] = worker{sampler: sampler}
		fetch(&workers[i], i, 0)
	}
	free := time.Duration(0) // when the server has done what it charged
	for {
		next := 0
		for i := range workers {
			if workers[i].arrives < workers[next].arrives {
				next = i
			}
		}
		w := &workers[next]
		at := max(w.arrives, free)
		if at > end {
			return models, updates
		}
		params := append([]float32(nil), models[len(models)-1]...)
		gradient, work := w.push, 2*float64(len(params))
		factor := float32(1)
		if s.arch.Scale == ps.Mean && len(workers) > 1 {
			factor = 1 / float32(len(workers))
			work += float64(len(params))
		}
		for k := range gradient {
			gradient[k] *= factor
		}
		nn.AddScaled(params, -rate, gradient) // fused or not, as the kernels are
		free = at + time.Duration(work/s.server.Speed*1e9)
		updates = append(updates, applied{Done: free, Worker: next, Staleness: uint64(len(models) - 1 - w.version)})
		models = append(models, params)
		fetch(w, next, free)
	}
}

// gradientOf is the gradient of a worker's step, from a workspace that nobody has used before.
func gradientOf(task *train.Task, sampler *datasets.Sampler, step int, params []float32) []float32 {
	x, y := make([]float32, task.Batch*task.Model.Inputs()), make([]int32, task.Batch)
	n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
	gradient := make([]float32, len(params))
	task.Model.NewWorkspace(task.Batch).Gradient(params, gradient, nn.Batch{X: x[:n*task.Model.Inputs()], Y: y[:n]})
	return gradient
}

func sameBits(t rapid.TB, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d parameters, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: parameter %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestAsynchronousServerEqualsSequentialReplay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		workers := []string{"w0", "w1", "w2"}[:rapid.IntRange(1, 3).Draw(r, "workers")]
		s := &stage{
			task: newTask(t, rapid.Uint64Range(0, 1000).Draw(r, "seed"), []int{4, 3, 2}, 5, 40, workers...),
			arch: ps.Architecture{
				Scale: rapid.SampledFrom([]ps.Scale{ps.Sum, ps.Mean}).Draw(r, "scale"),
				Every: rapid.IntRange(0, 5).Draw(r, "every"),
			},
			server: world.Profile{Cores: 1,
				Speed: rapid.SampledFrom([]float64{math.Inf(1), 1e6, 1e4}).Draw(r, "server speed")},
			strict: rapid.Bool().Draw(r, "strict"),
		}
		for i := range workers {
			// The cycles' nanoseconds have no small common multiple, so that no two pushes arrive
			// at once.
			step, delay := rapid.IntRange(1, 50).Draw(r, "step"), rapid.IntRange(0, 50).Draw(r, "delay")
			s.steps = append(s.steps, time.Duration(step)*time.Millisecond+[]time.Duration{97, 1009, 10007}[i])
			s.delays = append(s.delays, time.Duration(delay)*time.Millisecond+[]time.Duration{13, 101, 997}[i])
		}
		log := &events{kind: actors.UpdateApplied}
		s.observer = log
		const end = 400 * time.Millisecond
		params, version := s.run(t, end)
		// A server that is busy is looked at when it is free again.
		models, updates := replay(t, s, 0.1, end+time.Second)
		if version >= uint64(len(models)) {
			r.Fatalf("%d updates, the replay makes %d", version, len(models)-1)
		}
		sameBits(r, "model", params, models[version])
		if s.server.Speed > 1e9 {
			want := 0
			for _, u := range updates {
				if u.Done <= end {
					want++
				}
			}
			if version != uint64(want) {
				r.Errorf("%d updates until %v, want %d", version, end, want)
			}
		}
		compareUpdates(r, log, updates)
	})
}

func compareUpdates(t rapid.TB, log *events, want []applied) {
	t.Helper()
	var got []applied
	for i, e := range log.list {
		if e.Version != uint64(i+1) {
			t.Fatalf("update %d has version %d", i+1, e.Version)
		}
		got = append(got, applied{Done: log.at[i], Worker: e.Origin - 1, Staleness: e.Staleness})
	}
	if diff := cmp.Diff(want[:len(got)], got); diff != "" {
		t.Errorf("updates (-replay +server):\n%s", diff)
	}
}

func TestOneWorkerWithoutDelayIsPlainSGD(t *testing.T) {
	task := newTask(t, 3, []int{6, 5, 3}, 8, 60, "only")
	s := &stage{
		task: task, arch: ps.Architecture{Scale: ps.Sum}, server: world.Unlimited,
		steps: []time.Duration{time.Millisecond}, delays: []time.Duration{0},
	}
	log := &events{kind: actors.UpdateApplied}
	s.observer = log
	params, version := s.run(t, 100*time.Millisecond+1)
	if version != 100 {
		t.Fatalf("%d updates, want 100", version)
	}
	sampler, err := datasets.NewSampler(task.Train, task.Shards[0], task.Batch, task.Seed, "only")
	if err != nil {
		t.Fatal(err)
	}
	want := task.Initial()
	for step := range 100 {
		nn.AddScaled(want, -0.1, gradientOf(task, sampler, step, want)) // fused or not, as the kernels are
	}
	sameBits(t, "model", params, want)
	for _, e := range log.list {
		if e.Staleness != 0 {
			t.Fatalf("an update of staleness %d", e.Staleness)
		}
	}
}
