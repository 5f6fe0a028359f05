package collective_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

var algorithms = []collective.Algorithm{collective.AllToAll, collective.Ring, collective.Butterfly, collective.Tree,
	collective.Hierarchical}

// trial lets the workers of an architecture train in virtual time.
type trial struct {
	task         *train.Task
	architecture collective.Architecture
	rounds       int        // after which all models are looked at
	edge         link.Delay // nil: a few microseconds; all rounds together must delay less than half a step
	reorder      bool
	strict       bool
	threads      int
	observer     world.Observer
	hold         bool // the first snapshots are held until the end and compared
	network      *link.Network
	result       sim.Result
	held         [2][]float32 // a held snapshot, and what it was when it came
}

const stepTime = 100 * time.Millisecond

// run returns the models of all ranks after the rounds: in the middle of the step that
// follows them.
func (s *trial) run(t testing.TB) [][]float32 {
	t.Helper()
	d := &world.Deployment{Seed: s.task.Seed, Strict: s.strict, Observer: s.observer}
	profile := world.Profile{Cores: 1, Speed: math.Inf(1), Step: stepTime}
	for i, name := range s.task.Workers {
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: collective.RoleWorker, Site: simtest.Site(i),
			Profile: profile, Kind: s.architecture.Kind(s.task, train.Place{Role: collective.RoleWorker})})
	}
	models := make([][]float32, len(d.Nodes))
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		c := &audience{env: env, finish: control.Finish, models: models, trial: s}
		return c, nil
	}
	s.network = link.New(s.task.Seed, append(slices.Clone(s.task.Workers), actors.Coordinator))
	if s.edge == nil {
		s.edge = link.Uniform{Min: time.Microsecond, Max: 20 * time.Microsecond}
	}
	s.network.SetDefault(link.Config{Delay: s.edge, Reorder: s.reorder})
	w, err := sim.New(sim.Config{Deployment: d, Network: s.network, Threads: s.threads})
	if err != nil {
		t.Fatal(err)
	}
	if s.result, err = w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return models
}

// audience starts the workers and looks at their models at the end, and at the one of rank
// 0 also early, which it holds.
type audience struct {
	env    actors.Env
	finish func()
	models [][]float32
	came   int
	trial  *trial
	early  *protos.Tensor
}

func (c *audience) Receive(ctx actor.Context) {
	members := c.env.View().Members
	switch m := ctx.Message().(type) {
	case *actor.Started:
		for i := range members {
			ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
		}
		steps := time.Duration(c.trial.rounds * c.trial.architecture.Every)
		c.env.After(steps*stepTime+stepTime/2, "look")
		if c.trial.hold {
			c.env.After(stepTime/2, "early")
		}
	case string:
		for i := range members {
			if m == "look" || i == 0 {
				ctx.Send(members[i].PID, protos.NewMessage(&protos.TakeSnapshot{Evaluation: uint64(len(m))}))
			}
		}
	case *protos.Message:
		head, ok := m.Head.(*protos.Snapshot)
		if !ok {
			m.Release()
			return
		}
		data := slices.Clone(m.Tensors[0].Data)
		if head.Evaluation == uint64(len("early")) {
			c.early = m.Tensors[0].Retain()
			c.trial.held[1] = data
			return
		}
		c.models[head.Node] = data
		if c.came++; c.came == len(members) {
			if c.early != nil {
				c.trial.held[0] = slices.Clone(c.early.Data)
			}
			c.finish()
		}
	}
}

// loop is the dumb second implementation: one process that goes through the steps of all
// workers one after the other.
type loop struct {
	task     *train.Task
	samplers []*datasets.Sampler
	x        []float32
	y        []int32
}

func newLoop(t testing.TB, task *train.Task) *loop {
	l := &loop{task: task}
	for rank, rows := range task.Shards {
		s, err := datasets.NewSampler(task.Train, rows, task.Batch, task.Seed, task.Workers[rank])
		if err != nil {
			t.Fatal(err)
		}
		l.samplers = append(l.samplers, s)
	}
	return l
}

// add puts the batch of a rank's step behind those that are there, and returns its size.
func (l *loop) add(rank, step int) int {
	s := l.samplers[rank]
	x, y := make([]float32, s.Batch()*l.task.Train.Inputs), make([]int32, s.Batch())
	n := s.Fill(step/s.Steps(), step%s.Steps(), x, y)
	l.x, l.y = append(l.x, x[:n*l.task.Train.Inputs]...), append(l.y, y[:n]...)
	return n
}

// gradient returns the gradient of the mean loss over the batches added so far, and drops them.
func (l *loop) gradient(params []float32) []float32 {
	g := make([]float32, len(params))
	l.task.Model.NewWorkspace(len(l.y)).Gradient(params, g, nn.Batch{X: l.x, Y: l.y})
	l.x, l.y = nil, nil
	return g
}

// joint trains on the joint batch of all workers and all steps of a round.
func (l *loop) joint(rounds, every int) []float32 {
	params := l.task.Initial()
	optimizer := l.task.Method.New(len(params))
	for round := range rounds {
		for rank := range l.samplers {
			for i := range every {
				l.add(rank, round*every+i)
			}
		}
		optimizer.Step(params, params, l.gradient(params))
	}
	return params
}

// averaged makes each worker's own steps and averages the models after every round.
func (l *loop) averaged(rounds, every int) []float32 {
	models := make([][]float32, len(l.samplers))
	optimizers := make([]optim.Optimizer, len(models))
	for rank := range models {
		models[rank] = l.task.Initial()
		optimizers[rank] = l.task.Method.New(len(models[rank]))
	}
	for round := range rounds {
		mean := make([]float64, len(models[0]))
		total := 0.0
		for rank, params := range models {
			samples := 0
			for i := range every {
				samples += l.add(rank, round*every+i)
				optimizers[rank].Step(params, params, l.gradient(params))
			}
			for i, v := range params {
				mean[i] += float64(samples) * float64(v)
			}
			total += float64(samples)
		}
		for _, params := range models {
			for i, v := range mean {
				params[i] = float32(v / total)
			}
		}
	}
	return models[0]
}

// distance is ‖a−b‖ ÷ ‖b‖.
func distance(a, b []float32) float64 {
	var difference, norm float64
	for i := range b {
		d := float64(a[i]) - float64(b[i])
		difference += d * d
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(difference / norm)
}

func sgd(rate float64) optim.Method { return optim.SGD{Rate: optim.Constant(rate)} }

func momentum(rate float64) optim.Method {
	return optim.Momentum{Rate: optim.Constant(rate), Momentum: 0.9}
}

// uneven are shards whose last batches differ, and one that is smaller than a batch.
var uneven = []int{70, 45, 100, 64, 9}

// compare fails unless all ranks have the same bits and are as near to want as asked.
func compare(t *testing.T, models [][]float32, want []float32, tolerance float64) {
	t.Helper()
	for rank, m := range models {
		if !slices.Equal(m, models[0]) {
			t.Errorf("the models of ranks %d and 0 differ", rank)
		}
	}
	d := distance(models[0], want)
	t.Logf("distance to one process %.1e", d)
	if !(d <= tolerance) {
		t.Errorf("distance to one process %.1e, want at most %.0e", d, tolerance)
	}
}

func TestGradientsEqualOneProcessOnTheJointBatch(t *testing.T) {
	logistic, mlp := simtest.Perceptron(20, 4), simtest.Perceptron(20, 15, 4)
	for _, c := range []struct {
		name          string
		model         nn.Model
		shards        []int
		method        optim.Method
		every, rounds int
	}{
		{"logistic regression, 100 steps", logistic, []int{64, 64, 64, 64, 64}, sgd(0.1), 1, 100},
		{"logistic regression, 100 steps, uneven batches", logistic, uneven, sgd(0.1), 1, 100},
		{"multi-layer perceptron, one step", mlp, []int{64, 64, 64}, sgd(0.1), 1, 1},
		{"small convolutional network, one step", nn.SmallCNN(), []int{16, 11, 16}, sgd(0.1), 1, 1},
		{"multi-layer perceptron, four steps accumulated", mlp, uneven, sgd(0.1), 4, 1},
		{"logistic regression, four steps accumulated, momentum", logistic, uneven, momentum(0.02), 4, 25},
		{"one worker", logistic, []int{50}, sgd(0.1), 2, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := simtest.Task(c.model, c.shards, 16, c.method)
			want := newLoop(t, task).joint(c.rounds, c.every)
			for _, a := range algorithms {
				s := trial{task: task, rounds: c.rounds, strict: true,
					architecture: collective.Architecture{Algorithm: a, Every: c.every, Reduce: collective.Gradients}}
				compare(t, s.run(t), want, 1e-6)
			}
		})
	}
}

func TestModelsEqualALoopOverTheWorkers(t *testing.T) {
	for _, c := range []struct {
		name   string
		method optim.Method
		shards []int
		every  int
	}{
		{"every step", sgd(0.1), uneven, 1},
		{"every 3 steps", sgd(0.1), []int{64, 64, 64}, 3},
		{"every 5 steps, uneven batches, momentum that stays local", momentum(0.02), uneven, 5},
		{"every 2 steps, Adam that stays local", optim.NewAdam(optim.Constant(0.01)), uneven, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := simtest.Task(simtest.Perceptron(20, 15, 4), c.shards, 16, c.method)
			want := newLoop(t, task).averaged(10, c.every)
			for _, a := range algorithms {
				s := trial{task: task, rounds: 10, strict: true,
					architecture: collective.Architecture{Algorithm: a, Every: c.every, Reduce: collective.Models}}
				compare(t, s.run(t), want, 1e-6)
			}
		})
	}
}

// waits counts the waiting of the ranks, by cause.
type waits struct {
	causes   map[string]time.Duration
	updates  map[int]uint64 // the last version, by origin
	steps    map[int]uint64
	mistaken int // updates that are stale or of somebody else
}

func newWaits() *waits {
	return &waits{causes: map[string]time.Duration{}, updates: map[int]uint64{}, steps: map[int]uint64{}}
}

func (w *waits) Observe(_ time.Duration, node int, e actors.Event) {
	switch e.Kind {
	case actors.Waited:
		w.causes[fmt.Sprintf("%d for %s", node, e.Cause)] += e.Duration
	case actors.UpdateApplied:
		if e.Staleness != 0 || e.Origin != node || e.Version != w.updates[node]+1 {
			w.mistaken++
		}
		w.updates[node] = e.Version
	case actors.StepDone:
		w.steps[node] = e.Step
	}
}

func TestRecordTellsWhoWaitedForWhom(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 4), []int{64, 64, 64}, 16, sgd(0.1))
	o := newWaits()
	s := trial{task: task, rounds: 5, observer: o, edge: link.Constant{Delay: time.Millisecond},
		architecture: collective.Architecture{Algorithm: collective.Tree, Every: 2, Reduce: collective.Models}}
	s.run(t)
	// 1 and 2 reach rank 0 at the same instant, and the sum goes back in 1 ms. Rank 0 is ahead by
	// it from the second round on, and waits for 2 ms.
	want := map[string]time.Duration{"0 for rank 1": 9e6, "1 for rank 0": 10e6, "2 for rank 0": 10e6}
	if fmt.Sprint(o.causes) != fmt.Sprint(want) {
		t.Errorf("waits %v, want %v", o.causes, want)
	}
	for node := range 3 {
		if o.updates[node] != 10 || o.steps[node] != 10 {
			t.Errorf("node %d: %d updates and %d steps, want 10 of each", node, o.updates[node], o.steps[node])
		}
	}
	if o.mistaken > 0 {
		t.Errorf("%d updates are stale, of another node, or out of order", o.mistaken)
	}
}

func TestMessagesOverLinksAreThoseOfTheFormulas(t *testing.T) {
	const n, rounds = 6, 3
	task := simtest.Task(simtest.Perceptron(3, 2), []int{16, 16, 16, 16, 16, 16}, 16, sgd(0.1)) // 8 parameters
	for a, want := range map[collective.Algorithm][2]int{
		collective.AllToAll:  {n * (n - 1), n * (n - 1) * 8},
		collective.Ring:      {2 * n * (n - 1), 2 * (n - 1) * 8},
		collective.Butterfly: {2*4*2 + 2*2, 2 * (n - 1) * 8},
		collective.Tree:      {2 * (n - 1), 2 * (n - 1) * 8},
	} {
		s := trial{task: task, rounds: rounds, architecture: collective.Architecture{Algorithm: a, Every: 1,
			Reduce: collective.Gradients}}
		s.run(t)
		messages, size := int64(0), int64(0)
		for _, e := range s.network.Used() {
			messages += e.Sent
			size += e.SentBytes
		}
		payload, least := int64(4*rounds*want[1]), int64(rounds*want[0]*40)
		if messages != int64(rounds*want[0]) || size < payload+least || size > payload+3*least {
			t.Errorf("%s: %d messages and %d bytes in %d rounds, want %d and %d beside the heads", a, messages, size,
				rounds, rounds*want[0], payload)
		}
	}
}

func TestResultDependsNeitherOnProcessorsNorOnStrictModeNorOnReordering(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	for _, a := range algorithms {
		for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
			base := trial{task: task, rounds: 6, architecture: collective.Architecture{Algorithm: a, Every: 2,
				Reduce: reduce}}
			plain := base
			want := plain.run(t)
			for _, c := range []struct {
				name    string
				procs   int
				threads int
				strict  bool
				edge    link.Delay
				digest  bool
			}{
				{"threads", 2, 3, false, nil, true},
				{"strict, one processor", 1, 2, true, nil, true},
				{"other delays and reordering", 2, 2, true, link.Exponential{Mean: 300 * time.Microsecond}, false},
			} {
				s := base
				s.threads, s.strict, s.edge, s.reorder = c.threads, c.strict, c.edge, c.edge != nil
				before := runtime.GOMAXPROCS(c.procs)
				models := s.run(t)
				runtime.GOMAXPROCS(before)
				for rank := range models {
					if !slices.Equal(models[rank], want[0]) {
						t.Errorf("%s, %s, %s: the model of rank %d differs", a, reduce, c.name, rank)
					}
				}
				if c.digest && s.result.Digest != plain.result.Digest {
					t.Errorf("%s, %s, %s: digest %x, want %x", a, reduce, c.name, s.result.Digest, plain.result.Digest)
				}
			}
		}
	}
}

func TestSnapshotStaysWhatItIsWhileItIsHeld(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, sgd(0.1))
	for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
		s := trial{task: task, rounds: 5, hold: true, architecture: collective.Architecture{Algorithm: collective.Ring,
			Every: 2, Reduce: reduce}}
		s.run(t)
		if !slices.Equal(s.held[0], s.held[1]) || !slices.Equal(s.held[0], task.Initial()) {
			t.Errorf("%s: a snapshot of the initial model has changed while it was held", reduce)
		}
	}
}

func TestArchitectureSaysWhatIsWrongWithIt(t *testing.T) {
	good := collective.Architecture{Algorithm: collective.Ring, Every: 1, Reduce: collective.Models}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(a *collective.Architecture)
		want   string
	}{
		{func(a *collective.Architecture) { a.Algorithm = "star" },
			`Algorithm is "star": must be all-to-all, ring, butterfly, tree, hierarchical or auto`},
		{func(a *collective.Architecture) { a.Every = 0 }, "Every is 0: must be 1 to 1048576"},
		{func(a *collective.Architecture) { a.Reduce = "losses" }, `Reduce is "losses": must be gradients or models`},
		{func(a *collective.Architecture) { a.Moved = -1 }, "Moved is -1: must be 0 or more"},
		{func(a *collective.Architecture) { a.Moved = math.NaN() }, "Moved is NaN"},
		{func(a *collective.Architecture) { a.Moved, a.Reduce = 0.5, collective.Gradients },
			"Moved is 0.5: must be left out without reduce: models"},
	} {
		a := good
		c.change(&a)
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", a, err, c.want)
		}
	}
}

// meter counts what the runtime allocates in the rounds between two versions of rank 0.
type meter struct {
	from, to uint64
	heap     uint64 // bytes after the first of these rounds
	count    [2]uint64
	began    time.Time
	took     time.Duration
}

func (m *meter) Observe(_ time.Duration, node int, e actors.Event) {
	if node != 0 || e.Kind != actors.UpdateApplied || e.Version != m.from && e.Version != m.to {
		return
	}
	if e.Version == m.from {
		m.heap = heap()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	if e.Version == m.from {
		m.count[0], m.began = stats.Mallocs, time.Now()
		return
	}
	m.count[1], m.took = stats.Mallocs, time.Since(m.began)
}

// each is the number of allocations a round.
func (m *meter) each() float64 { return float64(m.count[1]-m.count[0]) / float64(m.to-m.from) }

func TestRoundAllocatesNothing(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), []int{64, 64, 64, 64, 64}, 16, sgd(0.01))
	for _, a := range algorithms {
		m := &meter{from: 200, to: 400}
		s := trial{task: task, rounds: 400, observer: m, edge: link.Constant{},
			architecture: collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}}
		s.run(t)
		if got := m.each(); got > 1 {
			t.Errorf("%s: %.2f allocations a round of 5 ranks, want less than 1", a, got)
		} else {
			t.Logf("%s: %.3f allocations a round", a, got)
		}
	}
}

// BenchmarkRound is a round of 8 ranks in virtual time, with a local step each and a model
// of 10,015 parameters.
func BenchmarkRound(b *testing.B) {
	task := simtest.Task(simtest.Perceptron(200, 45, 22), []int{8, 8, 8, 8, 8, 8, 8, 8}, 1, sgd(0.01))
	for _, a := range algorithms {
		b.Run(string(a), func(b *testing.B) {
			m := &meter{from: 10, to: uint64(b.N) + 10}
			s := trial{task: task, rounds: b.N + 10, observer: m, edge: link.Constant{},
				architecture: collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}}
			s.run(b)
			b.ReportMetric(float64(m.took.Microseconds())/float64(b.N), "µs/round")
			b.ReportMetric(m.each(), "allocs/round")
		})
	}
}

// BenchmarkRanks is a round of a ring in virtual time, with a local step each and a model of 2,084
// parameters. The bytes are what a round leaves on the heap, but for the data.
func BenchmarkRanks(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			shards := make([]int, n)
			for rank := range shards {
				shards[rank] = 1
			}
			task := simtest.Task(simtest.Perceptron(93, 21, 5), shards, 1, sgd(0.01))
			before := heap()
			m := &meter{from: 1, to: uint64(b.N) + 1}
			s := trial{
				task:     task,
				rounds:   b.N + 1,
				observer: m,
				edge:     link.Constant{},
				architecture: collective.Architecture{
					Algorithm: collective.Ring,
					Every:     1,
					Reduce:    collective.Gradients,
				},
			}
			s.run(b)
			b.ReportMetric(float64(m.took.Nanoseconds())/float64(b.N*2*n*(n-1)), "ns/message")
			b.ReportMetric(float64(m.heap-before)/float64(n), "B/rank")
		})
	}
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
