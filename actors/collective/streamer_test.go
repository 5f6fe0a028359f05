package collective_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// descending is a model whose parameters begin at 1, whose gradients are 2 everywhere. It
// notes what the parameters are when steps begin, for each of its workspaces.
type descending struct {
	nn.Model
	seen *[]*[]([]float32)
}

func (descending) Init(params []float32, _ *rand.Rand) {
	for i := range params {
		params[i] = 1
	}
}

func (m descending) NewWorkspace(int) nn.Workspace {
	mine := &[][]float32{}
	*m.seen = append(*m.seen, mine)
	return descent{seen: mine}
}

type descent struct {
	nn.Workspace
	seen *[]([]float32)
}

func (d descent) Gradient(params, gradient []float32, _ nn.Batch) float64 {
	*d.seen = append(*d.seen, slices.Clone(params))
	for i := range gradient {
		gradient[i] = 2
	}
	return 0
}

// The traces are those of torchft's test fixtures (meta-pytorch/torchft): two equal replicas, an
// inner step of −2 each time, an outer one of rate 2.
func TestStreamingDiLoCoHasTheTracesOfTorchft(t *testing.T) {
	local := []float32{1, -1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29}
	for _, c := range []struct {
		overlap int
		mix     float64
		want    [2][]float32
	}{
		{0, 0, [2][]float32{{1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59},
			{1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53}}},
		{0, 0.5, [2][]float32{
			{1, -1, -3, -8, -10, -12, -14, -16, -18, -24.5, -26.5, -28.5, -30.5, -32.5, -34.5, -40.25},
			{1, -1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38}}},
		{1, 0, [2][]float32{{1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47},
			{1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45}}},
		{1, 0.5, [2][]float32{
			{1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75},
			{1, -1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35}}},
		{0, 1, [2][]float32{local, local}},
		{1, 1, [2][]float32{local, local}},
	} {
		var seen []*[][]float32
		task := simtest.Task(simtest.Perceptron(1, 2), []int{16, 16}, 16, sgd(1))
		task.Model = descending{task.Model, &seen}
		a := outward(collective.Ring, 6, sgd(2))
		a.Fragments, a.Overlap, a.Mix = 2, c.overlap, c.mix
		s := trial{task: task, rounds: 3, architecture: a}
		s.run(t)
		for rank, trace := range seen {
			for f, want := range c.want {
				for i := range want {
					if got := (*trace)[i][2*f : 2*f+2]; got[0] != want[i] || got[1] != want[i] {
						t.Fatalf("overlap %d, mix %v, rank %d: fragment %d is %v after %d steps, want %v", c.overlap,
							c.mix, rank, f, got, i, want[i])
					}
				}
			}
		}
		if len(seen) != 2 {
			t.Fatalf("%d replicas", len(seen))
		}
	}
}

// streamed is the dumb second implementation: it makes a step of each worker in turn, with what
// DiLoCo's outer step makes of the fragments of the joint model. It returns the workers' models.
func (l *loop) streamed(steps int, a collective.Architecture, rate, mu float64) (models [][]float32) {
	n, round := len(l.task.Initial()), a.Every/a.Fragments
	size := (n + a.Fragments - 1) / a.Fragments
	phi, b, mean := make([]float64, n), make([]float64, n), make([]float64, n)
	for i, v := range l.task.Initial() {
		phi[i] = float64(v)
	}
	optimizers := make([]optim.Optimizer, len(l.samplers))
	for rank := range optimizers {
		models = append(models, l.task.Initial())
		optimizers[rank] = l.task.Method.New(n)
	}
	samples := make([]float64, len(models))
	for step := 1; step <= steps; step++ {
		f := (step - 1) / round % a.Fragments
		low, high := f*size, min(f*size+size, n)
		for rank, theta := range models {
			samples[rank] += float64(l.add(rank, step-1))
			optimizers[rank].Step(theta, theta, l.gradient(theta))
		}
		if (step-1)%round+1 == round-a.Overlap {
			total := 0.0
			clear(mean)
			for rank, theta := range models {
				for i := low; i < high; i++ {
					mean[i] += samples[rank] * (phi[i] - float64(theta[i]))
				}
				total += samples[rank]
			}
			for i := range mean {
				mean[i] /= total
			}
		}
		if step%round > 0 {
			continue
		}
		clear(samples)
		for i := low; i < high; i++ {
			b[i] = mu*b[i] + mean[i]
			phi[i] -= rate * (mean[i] + mu*b[i])
			for _, theta := range models {
				theta[i] = float32((1-a.Mix)*phi[i] + a.Mix*float64(theta[i]))
			}
		}
	}
	return models
}

func TestStreamsEqualALoopOverTheWorkers(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	for i, c := range []struct {
		fragments, overlap int
		mix                float64
	}{{1, 0, 0}, {1, 2, 0}, {1, 3, 0.25}, {2, 0, 0}, {2, 1, 0.5}, {3, 1, 0.5}, {6, 0, 0.3}} {
		a := outward(algorithms[i%len(algorithms)], 6, nesterov(0.7, 0.9))
		a.Fragments, a.Overlap, a.Mix = c.fragments, c.overlap, c.mix
		want := newLoop(t, task).streamed(5*6, a, 0.7, 0.9)
		s := trial{task: task, rounds: 5, strict: true, architecture: a}
		for rank, got := range s.run(t) {
			if d := distance(got, want[rank]); !(d <= 1e-6) {
				t.Errorf("%+v, rank %d: distance to a loop %.1e", c, rank, d)
			}
		}
	}
}

// The second architecture makes its rounds with parts of a model of which there is one.
func TestOneFragmentIsDiLoCo(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	for _, outer := range []optim.Method{nil, nesterov(0.7, 0.9)} {
		whole := trial{task: task, rounds: 6, architecture: outward(collective.Ring, 3, outer)}
		want := whole.run(t)[0]
		one := whole
		one.architecture.Mix = 1e-40 // nothing in float32, but for the streamer
		for rank, got := range one.run(t) {
			if !slices.Equal(got, want) {
				t.Errorf("outer %+v: rank %d has another model", outer, rank)
			}
		}
	}
}

// A message takes 30 ms, a step 100, and a ring of two has two messages one after the other.
func TestStepsGoOnDuringAnExchange(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 4), []int{64, 64}, 16, sgd(0.1))
	for _, c := range []struct {
		delay   time.Duration
		overlap int
		want    time.Duration // that a rank waits in all
	}{
		{30 * time.Millisecond, 0, 4 * 60 * time.Millisecond}, {30 * time.Millisecond, 1, 0},
		{80 * time.Millisecond, 1, 4 * 60 * time.Millisecond}, {80 * time.Millisecond, 2, 0},
	} {
		o := newWaits()
		a := outward(collective.Ring, 3, nil)
		a.Overlap = c.overlap
		s := trial{task: task, rounds: 5, observer: o, edge: link.Constant{Delay: c.delay}, architecture: a}
		s.run(t)
		if waited := o.causes["0 for rank 1"]; waited < c.want || waited >= c.want+c.want/4+1 {
			t.Errorf("overlap %d: it has waited %v, want about %v", c.overlap, o.causes, c.want)
		}
	}
}

func TestFragmentsTravelAsCodes(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), []int{64, 64, 64}, 16, momentum(0.02))
	s := trial{task: task, rounds: 5, architecture: outward(collective.AllToAll, 6, nesterov(0.7, 0.9))}
	s.architecture.Fragments, s.architecture.Overlap = 3, 1
	want := s.run(t)
	for _, f := range everyFeedback {
		s.architecture.Feedback = f
		for _, c := range []struct {
			operator  compress.Operator
			tolerance float64
		}{{compress.TopK{Share: 1}, 1e-5}, {compress.Int(4), 0.1}, {compress.PowerSGD{Rank: 1}, 1e-5}} {
			s.architecture.Compress = compress.Chain{c.operator}
			for rank, got := range s.run(t) {
				if d := distance(got, want[rank]); !(d <= c.tolerance) {
					t.Errorf("%s, %T: distance %.1e of rank %d", f, c.operator, d, rank)
				}
			}
		}
	}
}

// Where a fragment has been exchanged, all have the same bits of it, whoever comes and goes; and
// where it is the whole model, it is what the oracle says.
func TestStreamsAreBySomeViewAloneWhateverHappens(t *testing.T) {
	t.Parallel()
	runs := 80
	if simtest.Brief() {
		runs = 40
	}
	compared := 0
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 7))
		n := 2 + random.IntN(4)
		late := make([]time.Duration, n)
		for node := range late {
			late[node] = time.Duration(random.IntN(12_000)) * time.Microsecond
		}
		a := outward(algorithms[run%len(algorithms)], 4, nesterov(0.7, 0.9))
		if a.Overlap = 1 + run%3; run%2 == 0 {
			a.Fragments, a.Overlap = 2, run/2%2
		}
		if run%7 == 6 {
			a = outward(a.Algorithm, 2, nil)
			a.Sparse, a.Overlap = 0.3, run/7%2
		}
		c := churn{
			task: churnTask(n, sgd(0.2)), schedule: shuffle(random, n), end: 700 * time.Millisecond,
			strict: run%3 == 0, posted: run%4 < 2, architecture: a,
			late: func(node int) time.Duration { return late[node] },
		}
		for i := range c.schedule {
			c.schedule[i].At += 12 * time.Millisecond // when all have started
		}
		if run%5 < 2 {
			c.absent = []int{1 + random.IntN(n-1)}
		}
		c.run(t)
		if a.Fragments == 0 && a.Sparse == 0 {
			c.explain(t)
			continue
		}
		compared += c.fragments(t)
	}
	if compared == 0 {
		t.Error("no two models were seen after the same round")
	}
}

// fragments compares the fragment of each round at the nodes that were seen after it, of random
// ones how many parameters are the same at least.
func (c *churn) fragments(t *testing.T) (compared int) {
	parts := max(c.architecture.Fragments, 1)
	size := (c.task.Model.Params() + parts - 1) / parts
	least := int(math.Round(c.architecture.Sparse * float64(size)))
	for _, first := range c.present() {
		for round, params := range c.seen[first] {
			low := (round - 1) % parts * size
			high := min(low+size, len(params))
			for _, other := range c.present() {
				got := c.seen[other][round]
				if got == nil || other <= first {
					continue
				}
				same := 0
				for i := low; i < high; i++ {
					if got[i] == params[i] {
						same++
					}
				}
				if compared++; same < high-low && (least == 0 || same < least) {
					t.Fatalf("%s, %v: nodes %d and %d have other bits of the fragment of round %d",
						c.architecture.Algorithm, c.schedule, first, other, round)
				}
			}
		}
	}
	return compared
}

func TestStreamsThatDoNotFitAreRefused(t *testing.T) {
	for want, change := range map[string]func(a *collective.Architecture){
		"Fragments is 4: must be a divisor of every, which is 6": func(a *collective.Architecture) { a.Fragments = 4 },
		"Overlap is 3: must be below the 3 steps": func(a *collective.Architecture) {
			a.Fragments, a.Overlap = 2, 3
		},
		"Sparse is 0.1: must be left out with fragments": func(a *collective.Architecture) {
			a.Sparse, a.Fragments = 0.1, 2
		},
		"left out with fragments, compress and outer": func(a *collective.Architecture) {
			a.Sparse, a.Outer = 0.1, sgd(2)
		},
		"Moved is 1: must be left out with fragments": func(a *collective.Architecture) { a.Moved, a.Overlap = 1, 1 },
		"without reduce: models": func(a *collective.Architecture) {
			a.Reduce, a.Mix = collective.Gradients, 0.5
		},
	} {
		a := outward(collective.Ring, 6, nil)
		if change(&a); a.Validate() == nil || !strings.Contains(a.Validate().Error(), want) {
			t.Errorf("error %v, want %q", a.Validate(), want)
		}
	}
}

func TestStreamsDependNeitherOnProcessorsNorOnStrictMode(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	a := outward(collective.Ring, 4, nesterov(0.7, 0.9))
	a.Fragments, a.Overlap, a.Mix = 2, 1, 0.5
	var runs []string
	for _, threads := range []int{0, 2} {
		s := trial{task: task, rounds: 4, threads: threads, strict: threads > 0, architecture: a}
		models := s.run(t)
		runs = append(runs, fmt.Sprint(s.result.Digest, models))
	}
	if runs[0] != runs[1] {
		t.Error("two runs of a seed differ")
	}
}

func TestAllParametersAtRandomAreAveragedAsModels(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	whole := trial{task: task, rounds: 6, architecture: outward(collective.Ring, 1, nil)}
	want := whole.run(t)[0]
	sparse := whole
	sparse.architecture.Sparse = 1
	for rank, got := range sparse.run(t) {
		if !slices.Equal(got, want) {
			t.Errorf("rank %d has another model", rank)
		}
	}
}

// noting is a model whose workspaces note the parameters and gradients of steps.
type noting struct {
	nn.Model
	notes *[]*[]note
}

type note struct{ params, gradient []float32 }

func (m noting) NewWorkspace(batch int) nn.Workspace {
	mine := &[]note{}
	*m.notes = append(*m.notes, mine)
	return notebook{m.Model.NewWorkspace(batch), mine}
}

type notebook struct {
	nn.Workspace
	notes *[]note
}

func (n notebook) Gradient(params, gradient []float32, b nn.Batch) float64 {
	loss := n.Workspace.Gradient(params, gradient, b)
	*n.notes = append(*n.notes, note{slices.Clone(params), slices.Clone(gradient)})
	return loss
}

// After each step a parameter is what the rank's own step makes of it, or at all ranks the mean of
// that. As many are as were asked for, and over time each is as often as any other.
func TestParametersAtRandomAreAveragedAndOthersStay(t *testing.T) {
	const rate, steps, share = 0.1, 400, 0.1
	var all []*[]note
	task := simtest.Task(simtest.Perceptron(20, 4), []int{64, 64, 64}, 16, sgd(rate))
	task.Model = noting{task.Model, &all}
	n := task.Model.Params()
	a := outward(collective.Ring, 1, nil)
	a.Sparse = share
	s := trial{task: task, rounds: steps + 1, architecture: a, edge: link.Constant{}}
	s.run(t)
	averaged := make([]int, n)
	for step := range steps {
		count := 0
		for i := range n {
			mean, together := 0.0, true
			for _, notes := range all {
				at := (*notes)[step]
				mean += (float64(at.params[i]) - rate*float64(at.gradient[i])) / 3
				together = together && (*notes)[step+1].params[i] == (*all[0])[step+1].params[i]
			}
			for rank, notes := range all {
				want := float64((*notes)[step].params[i]) - rate*float64((*notes)[step].gradient[i])
				if together {
					want = mean
				}
				if got := float64((*notes)[step+1].params[i]); math.Abs(got-want) > 1e-6 {
					t.Fatalf("step %d, rank %d: parameter %d is %v, want %v", step, rank, i, got, want)
				}
			}
			if together {
				count++
				averaged[i]++
			}
		}
		if want := int(math.Round(share * float64(n))); count != want {
			t.Fatalf("step %d: %d parameters of %d are the same everywhere, want %d", step, count, n, want)
		}
	}
	// Of 400 trials of 8 in 84, whose deviation is 6.
	for i, times := range averaged {
		if times < 15 || times > 75 {
			t.Errorf("parameter %d was averaged %d times in %d steps", i, times, steps)
		}
	}
}

// Random parts are of one parameter here, so all but a few have never been averaged when a rank
// joins. It starts from what another has learned all the same.
func TestWhoJoinsStartsFromALearnedModelWherePartsAreRandom(t *testing.T) {
	a := outward(collective.Ring, 2, nil)
	a.Sparse = 1e-6
	c := churn{task: churnTask(2, sgd(0.2)), absent: []int{1}, end: 700 * time.Millisecond, architecture: a,
		schedule: []world.NodeChange{{At: 400 * time.Millisecond, Node: 1, Do: world.Join}}}
	c.run(t)
	if len(c.seen[1]) == 0 {
		t.Fatal("nobody has joined")
	}
	first := slices.Min(slices.Collect(maps.Keys(c.seen[1])))
	moved := func(from []float32) (sum float64) {
		for i, v := range c.seen[1][first] {
			sum += math.Abs(float64(v) - float64(from[i]))
		}
		return sum
	}
	if initial, other := moved(c.task.Initial()), moved(c.seen[0][first]); other > initial/2 {
		t.Errorf("in round %d it is %v from the other rank and %v from the initial model", first, other, initial)
	}
}

// Each step of any rank takes 2 from every parameter, so a model says how many steps it is made of.
// That of a rank that joins in the midst of a round has those of finished rounds alone.
func TestWhoJoinsHasNoStepTwiceWherePartsAreRandom(t *testing.T) {
	for at := range 12 {
		var seen []*[][]float32
		a := outward(collective.Ring, 3, nil)
		a.Sparse = 0.1
		c := churn{task: churnTask(2, sgd(1)), absent: []int{1}, end: 700 * time.Millisecond, architecture: a,
			schedule: []world.NodeChange{{At: time.Duration(400+3*at) * time.Millisecond, Node: 1, Do: world.Join}}}
		c.task.Model = descending{c.task.Model, &seen}
		c.run(t)
		for node := range 2 {
			for round, params := range c.seen[node] {
				for i, v := range params {
					if want := float64(1 - 2*3*round); math.Abs(float64(v)-want) > 1e-3 {
						t.Fatalf("node %d has parameter %d of %v after %d rounds, want %v", node, i, v, round, want)
					}
				}
			}
		}
		if len(c.seen[1]) == 0 {
			t.Fatal("nobody has joined")
		}
	}
}
