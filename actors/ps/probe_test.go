package ps_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// probe is a model whose gradients count. Value j belongs to worker j mod workers, whose samples
// have that label: its gradient there is −1, and 0 elsewhere. With plain SGD of rate 1 from zero
// each value is how many gradients of its worker have been applied to it, exactly. It fails if a
// worker is told of one that is taken back later.
type probe struct {
	nn.Model
	workers int
	fail    func(error)
}

func (p probe) Init(params []float32, _ *rand.Rand) { clear(params) }

func (p probe) NewWorkspace(most int) nn.Workspace {
	return &probeSpace{Workspace: p.Model.NewWorkspace(most), probe: p}
}

type probeSpace struct {
	nn.Workspace
	probe
	seen []float32
}

func (p *probeSpace) Gradient(params, grad []float32, b nn.Batch) float64 {
	p.fail(grows(p.seen, params))
	p.seen = append(p.seen[:0], params...)
	label := b.Y[0]
	if b.Rows != nil {
		label = b.Y[b.Rows[0]]
	}
	clear(grad)
	for j := int(label); j < len(grad); j += p.workers {
		grad[j] = -1
	}
	return 0
}

// grows returns an error if a count is below the one before.
func grows(before, counts []float32) error {
	for j, v := range before {
		if !(counts[j] >= v) {
			return fmt.Errorf("value %d was %v and is %v", j, v, counts[j])
		}
	}
	return nil
}

// trial is a random run of probes.
type trial struct {
	arch             ps.Architecture
	servers, workers int
	config           link.Config
	schedule         []world.NodeChange
	lives            []uint64 // of each worker
	end              time.Duration
}

func newTrial(seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 77))
	pick := func(models ...consistency.Model) consistency.Model { return models[r.IntN(len(models))] }
	t := &trial{servers: 3 + r.IntN(2), workers: 2 + r.IntN(3), end: 4000 * ms}
	t.arch = replicated(ps.Architecture{Scale: ps.Sum, Consistency: pick(consistency.ASP{}, consistency.ASP{},
		consistency.BSP{}, consistency.SSP{Rounds: 2}, consistency.DSSP{Low: 1, High: 3},
		consistency.BoundedDelay{Tasks: 2})}, 1+r.IntN(2))
	if _, bsp := t.arch.Consistency.(consistency.BSP); bsp && r.IntN(3) == 0 && t.workers > 2 {
		t.arch.Backup = 1
	}
	if r.IntN(4) == 0 {
		t.arch.EpochShare = 0.75
	}
	t.config = simtest.Links(r)
	if !t.config.Loss.Drop {
		t.end = 3000 * ms
	}
	t.lives = make([]uint64, t.workers)
	for i := range t.lives {
		t.lives[i] = 1
	}
	// As many servers may crash at a time as there are replicas. Until there are that many again
	// takes a while where links lose.
	quiet := 0 * ms
	for at := time.Duration(20+r.IntN(60)) * ms; at < 2500*ms; at += time.Duration(60+r.IntN(250)) * ms {
		node := r.IntN(t.servers + t.workers)
		do := []world.NodeEvent{world.Crash, world.Crash, world.Leave}[r.IntN(3)]
		back := at + time.Duration(8+r.IntN(60))*ms
		switch {
		case node >= t.servers:
			t.lives[node-t.servers]++
		case at < quiet:
			continue
		default:
			quiet = back + 1500*ms
			if !t.config.Loss.Drop {
				quiet = back + 150*ms
			}
		}
		t.schedule = append(t.schedule, world.NodeChange{At: at, Node: node, Do: do},
			world.NodeChange{At: back, Node: node, Do: world.Join})
	}
	if whole := (compress.Chain{compress.Float16{}}); t.arch.Consistency.Ahead() == 0 { // integers to 2048 lose nothing
		t.arch.Compress = []compress.Both{{}, {Down: whole}, {Up: whole, Feedback: compress.EF21},
			{Up: whole, Down: whole, Feedback: compress.EF21}}[r.IntN(4)]
	}
	return t
}

// counter counts the steps of each node, and those before an instant. It sees what evaluations
// show.
type counter struct {
	until        time.Duration
	steps, early []int
	record       *recorder
	mu           sync.Mutex
	open         int       // evaluations
	sealed, last []float32 // shown by those that were over when the oldest open one began; by any
}

func (c *counter) Observe(at time.Duration, node int, event actors.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch event.Kind {
	case actors.StepDone:
		if c.steps[node]++; at < c.until {
			c.early[node]++
		}
	case actors.UpdateApplied:
		c.record.update(&event, at < c.until)
	case actors.SnapshotTaken:
		if c.open++; c.open == 1 {
			c.sealed = slices.Clone(c.last)
		}
	case actors.Summarized:
		c.open--
	}
}

// show returns an error if an evaluation shows less than one that was over before it began.
func (c *counter) show(params []float32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = slices.Clone(params)
	return grows(c.sealed, params)
}

// task is that of the trial's probes, and names are its nodes.
func (t *trial) task(tb testing.TB, seed uint64) (task *train.Task, names []string) {
	tb.Helper()
	model, err := nn.NewMLP([]int{5, 7, t.workers}, nn.ReLU)
	if err != nil {
		tb.Fatal(err)
	}
	set := &datasets.Set{Name: "probes", Inputs: 5}
	told := func(err error) {
		if err != nil {
			tb.Errorf("a worker was told of a gradient that was taken back: %v", err)
		}
	}
	task = &train.Task{Model: probe{model, t.workers, told}, Batch: 2, Method: optim.SGD{Rate: optim.Constant(1)},
		Seed: seed, Train: set, Test: set}
	for i := range t.servers {
		names = append(names, fmt.Sprint("server", i+1))
	}
	for i := range t.workers {
		name := fmt.Sprint("worker", i+1)
		names, task.Workers = append(names, name), append(task.Workers, name)
		set.Classes = append(set.Classes, name)
		var rows []int32
		for range 24 {
			rows = append(rows, int32(len(set.Y)))
			set.Y, set.X = append(set.Y, int32(i)), append(set.X, make([]float32, 5)...)
		}
		task.Shards = append(task.Shards, rows)
	}
	if err := task.Validate(); err != nil {
		tb.Fatal(err)
	}
	return task, names
}

// run returns what the probes have counted, and the steps that each worker has made.
func (t *trial) run(tb testing.TB, seed uint64) (params []float32, count *counter, digest uint64, err error) {
	tb.Helper()
	task, names := t.task(tb, seed)
	var result coordinator.Result
	count = &counter{until: t.end, steps: make([]int, len(names)+1), early: make([]int, len(names)+1)}
	d := &world.Deployment{Seed: seed, Observer: recording(count, len(names)), Schedule: t.schedule,
		Detect: 15 * ms, Reliable: true, Strict: seed%2 == 0}
	run := coordinator.Run{
		Policy: coordinator.Policy{Every: coordinator.Interval{Time: 25 * ms}, Time: t.end, Lag: 1},
		Joint:  true, Survives: true, Samples: task.Train.Len(), Result: &result,
		Evaluate: func(params []float32) train.Verdict {
			if err := count.show(params); err != nil {
				tb.Errorf("an evaluation showed a gradient that was taken back: %v", err)
			}
			return train.Verdict{}
		}}
	for i, name := range names {
		role := ps.RoleWorker
		if i < t.servers {
			role, run.Holders = ps.RoleServer, append(run.Holders, i)
		}
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: role,
			Profile: world.Profile{Cores: 1, Speed: 1e12, Step: 4 * ms},
			Kind:    t.arch.Kind(task, train.Place{Node: i, Name: name, Role: role})})
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	network := link.New(seed, append(names, actors.Coordinator))
	network.SetDefault(t.config)
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err != nil {
		tb.Fatal(err)
	}
	of, err := w.Run(context.Background())
	if err != nil {
		return nil, nil, 0, err
	}
	if len(result.Models) != 1 {
		return nil, nil, 0, fmt.Errorf("%d models, incidents %v, waits %v", len(result.Models), result.Incidents,
			of.Waits)
	}
	return result.Models[0].Params, count, of.Digest, nil
}

// check returns an error if a push that was answered is lost, or one is applied or recorded twice.
func (t *trial) check(params []float32, count *counter) error {
	ahead := t.arch.Consistency.Ahead()
	for j, v := range params {
		w := j % t.workers
		made, early, applied := uint64(count.steps[t.servers+w]), uint64(count.early[t.servers+w]), uint64(v)
		if t.arch.Backup == 0 && applied+t.lives[w]*(1+ahead) < early {
			return fmt.Errorf("value %d: worker %d made %d steps in %d lives, and %d were applied", j, w, early,
				t.lives[w], applied)
		}
		if applied > made {
			return fmt.Errorf("value %d: worker %d made %d steps, and %d were applied", j, w, made, applied)
		}
		if t.config.Loss.Probability < 0.1 && made < 10 {
			return fmt.Errorf("worker %d made %d steps", w, made)
		}
	}
	return count.record.check(t, params)
}

// Integers count what was applied.
func TestNoAnsweredPushIsLostAndNoneIsAppliedTwice(t *testing.T) {
	number := uint64(80)
	if testing.Short() {
		number = 12
	}
	first, last := simtest.Seeds(t, number)
	var told, kept atomic.Int64
	t.Cleanup(func() {
		again := told.Load() - kept.Load()
		if t.Logf("%d updates, and %d of them came again", kept.Load(), again); again == 0 && last-first > 10 {
			t.Error("too few to mean something")
		}
	})
	for seed := first; seed <= last; seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			c := newTrial(seed)
			params, count, digest, err := c.run(t, seed)
			if err == nil {
				err = c.check(params, count)
			}
			if err != nil {
				t.Fatalf("%v\n%+v\n%d servers, %d workers\n%v\nlinks %+v", err, c.arch, c.servers, c.workers,
					c.schedule, c.config)
			}
			told.Add(count.record.told)
			kept.Add(count.record.kept)
			if seed%25 > 0 {
				return
			}
			if _, _, again, err := c.run(t, seed); err != nil || again != digest {
				t.Errorf("digest %x, then %x: %v", digest, again, err)
			}
		})
	}
}
