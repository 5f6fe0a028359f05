package ps_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// batchOf is the batch of a worker's step.
func (s *stage) batchOf(tb testing.TB, worker, step int) (x []float32, y []int32) {
	sampler, err := datasets.NewSampler(s.task.Train, s.task.Shards[worker], s.task.Batch, s.task.Seed,
		s.task.Workers[worker])
	if err != nil {
		tb.Fatal(err)
	}
	x, y = make([]float32, s.task.Batch*s.task.Model.Inputs()), make([]int32, s.task.Batch)
	n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
	return x[:n*s.task.Model.Inputs()], y[:n]
}

// gradient is that of a worker's step on a model.
func (s *stage) gradient(tb testing.TB, worker, step int, params []float32) []float32 {
	x, y := s.batchOf(tb, worker, step)
	gradient := make([]float32, len(params))
	s.task.Model.NewWorkspace(len(y)).Gradient(params, gradient, nn.Batch{X: x, Y: y})
	return gradient
}

// all are consistencies of every kind.
func all() []consistency.Model {
	return []consistency.Model{
		consistency.BSP{}, consistency.SSP{Rounds: 0}, consistency.SSP{Rounds: 3}, consistency.DSSP{Low: 1, High: 6},
		consistency.ASP{}, consistency.BoundedDelay{Tasks: 0}, consistency.BoundedDelay{Tasks: 4},
		consistency.BoundedDelay{Tasks: -1},
	}
}

// trace is what a run did.
type trace struct {
	at     []time.Duration
	nodes  []int
	events []actors.Event
}

func (r *trace) Observe(at time.Duration, node int, e actors.Event) {
	r.at, r.nodes, r.events = append(r.at, at), append(r.nodes, node), append(r.events, e)
}

// of lists the events of a kind.
func (r *trace) of(kind actors.EventKind) (list []actors.Event) {
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// unequal is a run with workers and links of random speeds.
func unequal(tb testing.TB, seed uint64, workers int, a ps.Architecture) (*stage, *trace) {
	r := rand.New(rand.NewPCG(seed, 7))
	var names []string
	for i := range workers {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	log := &trace{}
	s := &stage{task: newTask(tb, seed, []int{4, 3, 2}, 5, 40*workers, names...), arch: a, server: world.Unlimited,
		observer: log}
	for range workers {
		s.steps = append(s.steps, time.Duration(1+r.IntN(30))*ms)
		s.delays = append(s.delays, time.Duration(r.IntN(20))*ms)
	}
	return s, log
}

// The workers' clocks, counted by the server's updates at the instants at which rounds begin, are
// never further apart than the bound, and no update is staler than follows from it.
func TestClocksAndStalenessStayWithinTheBound(t *testing.T) {
	for _, m := range all() {
		t.Run(fmt.Sprintf("%T%+v", m, m), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				workers := 2 + int(seed%4)
				s, log := unequal(t, seed, workers, ps.Architecture{Consistency: m, Scale: ps.Mean})
				s.run(t, 700*ms)
				bound := int(min(m.Bound(), math.MaxInt32))
				begun, updates := beginnings(s, log, workers)
				for _, b := range begun {
					if b.clock-slices.Min(b.others) > bound {
						t.Fatalf("seed %d: worker %d begins a round at clock %d while the others are at %v", seed,
							b.worker, b.clock, b.others)
					}
				}
				if updates < 20*workers/4 {
					t.Fatalf("seed %d: only %d updates", seed, updates)
				}
				if _, delayed := m.(consistency.BoundedDelay); delayed || m.Bound() == consistency.Unbounded {
					continue
				}
				most := uint64(workers-1) * (2*m.Bound() + 1)
				if m.Bound() == 0 {
					most = 0
				}
				for _, e := range log.of(actors.UpdateApplied) {
					if e.Staleness > most {
						t.Fatalf("seed %d: an update of staleness %d, at most %d can be", seed, e.Staleness, most)
					}
				}
			}
		})
	}
}

type beginning struct {
	worker, clock int
	others        []int
}

// beginnings are the rounds that were begun, with the clocks then: how many gradients of each
// worker had reached the server, half a round trip before the first of them left.
func beginnings(s *stage, log *trace, workers int) (list []beginning, updates int) {
	arrivals := make([][]time.Duration, workers)
	for i, e := range log.events {
		if e.Kind == actors.StepDone {
			w := log.nodes[i] - 1
			arrivals[w] = append(arrivals[w], log.at[i]+s.delays[w])
		}
		if e.Kind == actors.UpdateApplied {
			updates++
		}
	}
	for w, own := range arrivals {
		for k := range own {
			begun := own[k] - s.delays[w] - s.steps[w]
			b := beginning{worker: w, clock: k}
			for other := range arrivals {
				n := 0
				for n < len(arrivals[other]) && arrivals[other][n] <= begun {
					n++
				}
				if other != w {
					b.others = append(b.others, n)
				}
			}
			list = append(list, b)
		}
	}
	return list, updates
}

// identical expects the same model and events of two consistencies.
func identical(t *testing.T, a, b ps.Architecture) {
	t.Helper()
	for seed := range uint64(20) {
		one, log := unequal(t, seed, 3, a)
		other, log2 := unequal(t, seed, 3, b)
		one.task.Method = optim.Momentum{Rate: optim.Constant(0.05), Momentum: 0.9}
		other.task.Method = one.task.Method
		p, n := one.run(t, 500*ms)
		q, n2 := other.run(t, 500*ms)
		sameBits(t, "model", p, q)
		if n != n2 || n == 0 || !slices.Equal(log.events, log2.events) || !slices.Equal(log.at, log2.at) {
			t.Fatalf("seed %d: %d and %d updates, or other events", seed, n, n2)
		}
	}
}

func TestBoundsOfZeroAreBulkSynchronousAndEqualOnesStaleSynchronous(t *testing.T) {
	of := func(m consistency.Model) ps.Architecture { return ps.Architecture{Consistency: m, Scale: ps.Mean} }
	identical(t, of(consistency.BSP{}), of(consistency.SSP{}))
	identical(t, of(consistency.BSP{}), of(consistency.BoundedDelay{}))
	identical(t, of(consistency.SSP{Rounds: 2}), of(consistency.DSSP{Low: 2, High: 2}))
	identical(t, of(consistency.ASP{}), of(consistency.SSP{Rounds: 1 << 20}))
}

// Synchronous workers make the steps of one process on all of their batches together, whatever the
// model.
func TestSynchronousWorkersEqualOneProcessOnTheJointBatch(t *testing.T) {
	const workers, batch, steps = 4, 8, 100
	logistic, err := nn.NewMLP([]int{36, 3}, nn.ReLU)
	mlp, err2 := nn.NewMLP([]int{36, 5, 3}, nn.Tanh)
	cnn, err3 := nn.NewNetwork(nn.Shape{Channels: 1, Height: 6, Width: 6}, []nn.Layer{
		nn.Conv2D{Channels: 4, Kernel: 3}, nn.ReLU, nn.MaxPool{Size: 2}, nn.Flatten{}, nn.Dense{Outputs: 3}})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for name, model := range map[string]nn.Model{"logistic": logistic, "mlp": mlp, "cnn": cnn} {
		s, _ := unequal(t, 3, workers, ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean})
		names := s.task.Workers
		s.task = newTask(t, 3, []int{36, 5, 3}, batch, workers*batch*9, names...)
		s.task.Model = model
		s.steps, s.delays = slices.Repeat([]time.Duration{ms}, workers), make([]time.Duration, workers)
		params, version := s.run(t, steps*ms+1)
		if version != steps {
			t.Fatalf("%d rounds, want %d", version, steps)
		}
		want := s.task.Initial()
		for step := range steps {
			x, y := []float32{}, []int32{}
			for w := range names {
				bx, by := s.batchOf(t, w, step)
				x, y = append(x, bx...), append(y, by...)
			}
			gradient := make([]float32, len(want))
			model.NewWorkspace(len(y)).Gradient(want, gradient, nn.Batch{X: x, Y: y})
			nn.AddScaled(want, -0.1, gradient)
		}
		off, size := 0.0, 0.0
		for i := range want {
			off = math.Hypot(off, float64(params[i])-float64(want[i]))
			size = math.Hypot(size, float64(want[i]))
		}
		if t.Logf("%s: a relative difference of %.1e", name, off/size); !(off <= 1e-6*size) {
			t.Errorf("%s: the models differ by %g, relatively", name, off/size)
		}
	}
}

func TestARoundWithoutItsSlowestWorkerDropsTheGradientsOfThatOne(t *testing.T) {
	log := &trace{}
	s := &stage{task: newTask(t, 1, []int{4, 3, 2}, 5, 120, "a", "b", "slow"), server: world.Unlimited, observer: log,
		arch:  ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean, Backup: 1},
		steps: []time.Duration{10 * ms, 10 * ms, 35 * ms}, delays: []time.Duration{0, 0, 0}}
	_, version := s.run(t, 1000*ms+1)
	if version != 100 {
		t.Errorf("%d rounds in 1 s, want one every 10 ms", version)
	}
	dropped := log.of(actors.Measured)
	for _, e := range log.of(actors.UpdateApplied) {
		if e.Origin == 3 || e.Staleness != 0 {
			t.Fatalf("an update of worker %d with staleness %d", e.Origin, e.Staleness)
		}
	}
	if n := len(dropped); n != 28 || dropped[n-1].Name != ps.Dropped || dropped[n-1].Value != 28 {
		t.Errorf("%d gradients were dropped, want 28: one every 35 ms", n)
	}
}

func TestAStaleGradientCountsTheInverseOfItsStaleness(t *testing.T) {
	// Rates and factors are powers of two, so that the order of products does not matter: of two
	// workers of one speed, each gradient is one update old, from the second on.
	plain, weighed := newStage(t), newStage(t)
	weighed.arch.StalenessRate = ps.Inverse
	a, n := plain.run(t, 40*ms)
	log := &trace{}
	weighed.observer = log
	b, n2 := weighed.run(t, 40*ms)
	if n != n2 {
		t.Fatalf("%d and %d updates", n, n2)
	}
	most := uint64(0)
	for _, e := range log.of(actors.UpdateApplied) {
		most = max(most, e.Staleness)
	}
	if most < 2 || slices.Equal(a, b) {
		t.Fatalf("the staleness is at most %d, and the models are equal: %v", most, slices.Equal(a, b))
	}
	model := weighed.task.Initial()
	models := [][]float32{slices.Clone(model)}
	steps := map[int]int{}
	for _, e := range log.of(actors.UpdateApplied) {
		gradient := weighed.gradient(t, e.Origin-1, steps[e.Origin], models[len(models)-1-int(e.Staleness)])
		steps[e.Origin]++
		nn.Scale(gradient, 1/float32(max(e.Staleness, 1)))
		nn.AddScaled(model, -0.1, gradient)
		models = append(models, slices.Clone(model))
	}
	sameBits(t, "model", b, models[n2])
}

// A worker that does not wait for answers computes all the time where the bound lets it.
func TestBoundedDelayHidesTheLinkBehindSteps(t *testing.T) {
	for bound, want := range map[int64]int{0: 20, 1: 40, 2: 60, 4: 100, 9: 100, -1: 100} {
		log := &trace{}
		s := &stage{task: newTask(t, 1, []int{4, 3, 2}, 5, 80, "a", "b"), server: world.Unlimited, observer: log,
			arch:  ps.Architecture{Consistency: consistency.BoundedDelay{Tasks: bound}, Scale: ps.Sum},
			steps: []time.Duration{10 * ms, 10 * ms}, delays: []time.Duration{20 * ms, 20 * ms}}
		s.run(t, 1020*ms)
		n := 0
		for i, e := range log.events {
			if e.Kind == actors.StepDone && log.nodes[i] == 1 {
				n++
			}
		}
		// A round trip takes 40 ms, a step 10 ms: bound + 1 steps every 50 ms, at most 5.
		if n < want-1 || n > want+1 {
			t.Errorf("bound %d: %d steps in a second, want %d", bound, n, want)
		}
	}
}

// Crashes, joins and leaves of workers and servers at random instants: nobody is held back for
// ever, no bound is violated, and who is there trains until the end.
func TestWorkersThatComeAndGoHoldNobodyBack(t *testing.T) {
	seeds := uint64(70)
	if testing.Short() {
		seeds = 10
	}
	for _, m := range all() {
		for _, share := range []float64{0, 0.75} {
			t.Run(fmt.Sprintf("%T%+v of %v", m, m, share), func(t *testing.T) {
				t.Parallel()
				for seed := range seeds {
					churn(t, seed, ps.Architecture{Consistency: m, Scale: ps.Mean, EpochShare: share,
						StalenessRate: ps.Inverse, Every: 1 + int(seed%3)})
				}
			})
		}
	}
}

// comeAndGo has a node join, and leave or, if it is a worker, crash, at random instants until
// 900 ms.
func comeAndGo(r *rand.Rand, d *world.Deployment, node int) {
	at := time.Duration(50+r.IntN(300)) * ms
	least, most := 60, 400
	if d.Nodes[node].Role == ps.RoleServer && r.IntN(2) == 0 { // before others have heard of the change before
		least, most = 1, 60
	}
	for there := !d.Nodes[node].Absent; at < 900*ms; there = !there {
		do := world.Join
		if there {
			do = []world.NodeEvent{world.Leave, world.Crash}[r.IntN(2)]
		}
		if there && d.Nodes[node].Role == ps.RoleServer {
			do = world.Leave
		}
		d.Schedule = append(d.Schedule, world.NodeChange{At: at, Node: node, Do: do})
		at += time.Duration(least+r.IntN(most)) * ms
	}
}

func churn(t *testing.T, seed uint64, a ps.Architecture) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	workers, servers := 2+r.IntN(4), 1+r.IntN(4)
	names := []string{"hub", "hub2", "hub3", "hub4"}[:servers]
	if a = sharded(a); seed%2 == 0 {
		a.Servers = nil
	}
	log := &trace{}
	d := &world.Deployment{Seed: seed, Strict: seed%5 == 0, Bounded: true, Observer: log,
		Detect: time.Duration(r.IntN(40)) * ms}
	for i := range workers {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	task := newTask(t, seed, []int{4, 3, 2}, 5, 30*workers, names[servers:]...)
	if m := a.Consistency; m.Ahead() == 0 && seed%3 == 0 {
		few := compress.Chain{compress.TopK{Share: 0.3}}
		feedback := []compress.Feedback{compress.EF, compress.EF21}[r.IntN(2)]
		a.Compress = compress.Both{Up: few, Down: few, Feedback: feedback}
	}
	speed := []float64{1e9, 1e5}[r.IntN(2)] // with the latter what handlers charge takes milliseconds
	if m := a.Consistency; m.Bound() == 0 && workers > 2 {
		a.Backup = r.IntN(2)
	}
	var holders []int
	for i, name := range names {
		n := world.Node{Name: name, Role: ps.RoleWorker,
			Profile: world.Profile{Cores: 1, Speed: speed, Step: time.Duration(1+r.IntN(20)) * ms},
			Absent:  i > 0 && i != servers && r.IntN(4) == 0}
		if i < servers {
			n.Role = ps.RoleServer
			holders = append(holders, i)
		}
		n.Kind = a.Kind(task, train.Place{Node: i, Name: name, Role: n.Role})
		d.Nodes = append(d.Nodes, n)
		if i > 0 && i != servers { // hub and w0 stay
			comeAndGo(r, d, i)
		}
	}
	slices.SortStableFunc(d.Schedule, func(a, b world.NodeChange) int { return int(a.At - b.At) })
	var result coordinator.Result
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(coordinator.Run{
			Policy:  coordinator.Policy{Every: coordinator.Interval{Time: 90 * ms}, Time: 1700 * ms},
			Samples: task.Train.Len(), Holders: holders, Joint: true, Result: &result,
			Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
		}, env, control)
	}
	network := link.New(seed, append(names, actors.Coordinator))
	network.SetDefault(link.Config{Delay: link.Exponential{Mean: 10 * ms, Max: 300 * ms}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err == nil {
		_, err = w.Run(context.Background())
	}
	if err != nil || len(result.Models) != 1 {
		t.Fatalf("seed %d: %v, %d models", seed, err, len(result.Models))
	}
	allStep(t, d, log, servers)
}

// allStep fails unless the workers, which come after the servers, make steps until the end.
func allStep(t *testing.T, d *world.Deployment, log *trace, servers int) {
	t.Helper()
	last := map[int]time.Duration{}
	for i, e := range log.events {
		if e.Kind == actors.StepDone {
			last[log.nodes[i]] = log.at[i]
		}
	}
	for i := servers; i < len(d.Nodes); i++ {
		if d.Present(i, time.Second) && last[i] < 1300*ms {
			t.Fatalf("seed %d: %s makes no step after %v; %v", d.Seed, d.Nodes[i].Name, last[i], d.Schedule)
		}
	}
}

// An epoch ends for everybody when a share of the samples has been processed: the fast worker,
// which has seen its shard by then, waits, and the slow one leaves out what is left of its own.
func TestAnEpochEndsForAllAtItsShareOfTheSamples(t *testing.T) {
	log := &trace{}
	s := &stage{task: newTask(t, 1, []int{4, 3, 2}, 5, 80, "fast", "slow"), server: world.Unlimited, observer: log,
		arch:  ps.Architecture{Scale: ps.Sum, EpochShare: 0.75},
		steps: []time.Duration{ms, 10 * ms}, delays: []time.Duration{0, 0}}
	s.run(t, 400*ms)
	// 40 samples each, 8 batches: the fast one is done after 8 ms. 60 samples are 12 batches, so
	// the slow one makes 4, in 40 ms; the fast one waits for 32 of them.
	var waits []time.Duration
	for i, e := range log.events {
		if e.Kind == actors.Waited && log.nodes[i] == 1 && e.Duration > 0 {
			waits = append(waits, e.Duration)
		}
	}
	if len(waits) != 9 || slices.Min(waits) != 32*ms || slices.Max(waits) != 32*ms {
		t.Errorf("the fast worker waits %v, want 32 ms at the end of each of 9 epochs", waits)
	}
	if got := s.arch.EpochSamples(80); got != 60 {
		t.Errorf("an epoch has %d samples, want 60", got)
	}
}

func TestBackupWorkersNeedRoundsAndOthers(t *testing.T) {
	a := ps.Default()
	a.Backup = 1
	const want = "Backup is 1: must be left out without consistency: bsp"
	if err := a.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	a.Consistency = consistency.BSP{}
	members := []actors.Member{{Name: "hub", Role: ps.RoleServer, Present: true}}
	for want := range 3 {
		if err := a.Fit(actors.NewView(1, members, nil, nil), nil); (err == nil) != (want > 1) {
			t.Errorf("%d workers: %v", want, err)
		}
		members = append(members, actors.Member{Role: ps.RoleWorker, Present: true})
	}
}
