package live_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/actors/innetwork"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// training is a run of an architecture, of which each world makes its own.
type training struct {
	architecture train.Architecture
	roles        []string
	delay        link.Delay
	edge         link.Config // but for its delay
	reliable     bool        // sessions deliver what links disturb
	strict       bool
	// lead makes the coordinator.
	lead     func(env actors.Env, control world.Control) (actor.Actor, error)
	observer world.Observer
	finish   func() // Control's
}

func (r *training) config() live.Config {
	random := rand.New(rand.NewPCG(11, 12))
	model, err := nn.NewMLP([]int{6, 4, 3}, nn.Tanh)
	if err != nil {
		panic(err)
	}
	set := &datasets.Set{Name: "random", Inputs: 6, Classes: make([]string, 3)}
	task := &train.Task{Model: model, Train: set, Test: set, Batch: 8, Method: optim.SGD{Rate: optim.Constant(0.1)},
		Seed: 3}
	d := &world.Deployment{Seed: 3, Strict: r.strict, Coordinate: r.lead, Observer: r.observer, Bounded: true,
		Reliable: r.reliable}
	var names []string
	for i, role := range r.roles {
		names = append(names, fmt.Sprintf("n%d", i))
		if role == ps.RoleServer || role == innetwork.RoleSwitch {
			continue
		}
		var rows []int32
		for range 64 {
			rows = append(rows, int32(len(set.Y)))
			set.Y = append(set.Y, int32(random.IntN(3)))
			for range 6 {
				set.X = append(set.X, float32(random.NormFloat64()))
			}
		}
		task.Shards = append(task.Shards, rows)
		task.Workers = append(task.Workers, names[i])
	}
	for i, role := range r.roles {
		d.Nodes = append(d.Nodes, world.Node{
			Name: names[i], Role: role, Profile: world.Profile{Cores: 1, Speed: math.Inf(1), Step: ms},
			Kind: r.architecture.Kind(task, train.Place{Node: i, Name: names[i], Role: role}),
		})
	}
	network := link.New(3, append(names, actors.Coordinator))
	edge := r.edge
	edge.Delay = r.delay
	network.SetDefault(edge)
	return live.Config{Deployment: d, Network: network, Threads: 2}
}

func (r *training) split(hosts ...int) *mesh {
	m := &mesh{hosts: hosts}
	for range slices.Max(hosts) + 1 {
		m.make = append(m.make, r.config())
	}
	return m
}

// models are what a node's model was at each version, as far as it was looked at.
type models map[int]map[uint64]string

// watchModels makes a coordinator that looks at every model of holders whenever one
// of them may have changed, and finishes when there is enough.
func watchModels(
	into models, enough func(node int) bool, holders ...int,
) func(actors.Env, world.Control) (actor.Actor, error) {
	return func(env actors.Env, control world.Control) (actor.Actor, error) {
		latest, asked := map[int]uint64{}, map[int]bool{}
		return actor.ReceiveFunc(func(ctx actor.Context) {
			kickOff(ctx, env)
			if started(ctx) {
				env.After(limit, timeIsUp{})
			} else if ctx.Message() == (timeIsUp{}) {
				env.Fail(fmt.Errorf("not enough models at %v, the latest are of versions %v", env.Now(), latest))
			}
			m, ok := ctx.Message().(*protos.Message)
			if !ok {
				return
			}
			defer m.Release()
			switch head := m.Head.(type) {
			case *protos.Progress:
				for _, h := range holders { // one look at a time, so that none is of the past
					if !asked[h] {
						asked[h] = true
						ctx.Send(pid(env, h), protos.NewMessage(&protos.TakeSnapshot{}))
					}
				}
			case *protos.Snapshot:
				node := int(head.Node)
				if into[node] == nil {
					into[node] = map[uint64]string{}
				}
				now := fmt.Sprintf("%x", m.Tensors[0].Data)
				if before, ok := into[node][head.Version]; ok && before != now {
					env.Fail(fmt.Errorf("node %d has two models of version %d", node, head.Version))
				}
				into[node][head.Version], latest[node], asked[node] = now, head.Version, false
				if !slices.ContainsFunc(holders, func(h int) bool { return !enough(h) }) {
					control.Finish()
				}
			}
		}), nil
	}
}

// common counts the versions of a node's model that two runs have seen.
func common(a, b models, node int) (n int) {
	for version := range a[node] {
		if _, ok := b[node][version]; ok {
			n++
		}
	}
	return n
}

// differences are the versions at which a node's model is not the same in two runs.
func differences(a, b models, node int) (versions []uint64) {
	for version, model := range a[node] {
		if other, ok := b[node][version]; ok && other != model {
			versions = append(versions, version)
		}
	}
	return versions
}

// simulate runs the training in virtual time.
func (r *training) simulate(t *testing.T) {
	t.Helper()
	c := r.config()
	w, err := sim.New(sim.Config{Deployment: c.Deployment, Network: c.Network})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Worlds in real time are looked at now and then, and compared with virtual time, in which
// every version is.
func TestSynchronousTrainingHasTheSameBitsInOneWorldAndInSeveral(t *testing.T) {
	const rounds, looks = 400, 8
	worker := collective.RoleWorker
	reduce := func(a collective.Algorithm) train.Architecture {
		return collective.Architecture{Algorithm: a, Every: 1, Reduce: collective.Gradients}
	}
	for name, c := range map[string]struct {
		architecture train.Architecture
		roles        []string
		holders      []int
	}{
		"all-to-all": {reduce(collective.AllToAll), []string{worker, worker, worker}, []int{0, 1, 2}},
		"ring":       {reduce(collective.Ring), []string{worker, worker, worker}, []int{0, 1, 2}},
		"tree":       {reduce(collective.Tree), []string{worker, worker, worker}, []int{0, 1, 2}},
		"in-network": {innetwork.Architecture{Slots: 2, Values: 9},
			[]string{innetwork.RoleSwitch, innetwork.RoleWorker, innetwork.RoleWorker}, []int{1, 2}},
		// With one worker nothing is asynchronous.
		"parameter server": {ps.Architecture{Scale: ps.Sum}, []string{ps.RoleServer, ps.RoleWorker}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "tree" || name == "all-to-all") {
				t.Skip("takes a second or two, and ring shows the same")
			}
			plan := func(seen models, enough func(node int) bool) *training {
				r := &training{architecture: c.architecture, roles: c.roles,
					delay: link.Uniform{Min: ms / 10, Max: ms / 2}}
				r.lead = watchModels(seen, enough, c.holders...)
				return r
			}
			want := models{}
			plan(want, func(node int) bool { return len(want[node]) >= rounds }).simulate(t)
			for i, hosts := range [][]int{{0, 0, 0, 0}, {0, 1, 1, 1}, {2, 0, 1, 0}} {
				if len(c.roles) == 2 {
					hosts = [][]int{{0, 0, 0}, {0, 1, 1}, {1, 2, 0}}[i]
				}
				seen := models{}
				r := plan(seen, func(node int) bool {
					return common(seen, want, node) >= looks || len(seen[node]) >= rounds
				})
				r.strict = i == 2
				m := r.split(hosts...)
				m.run(t)
				if collects := c.roles[0] == worker && i == 1; collects != (m.posted.Load() > 0) {
					t.Errorf("hosts %v: %d chunks arrived where they belong", hosts, m.posted.Load())
				}
				for _, node := range c.holders {
					if n := common(seen, want, node); n < looks {
						t.Errorf("hosts %v: only %d versions of the model of node %d can be compared", hosts, n, node)
					}
					if versions := differences(seen, want, node); len(versions) > 0 {
						t.Errorf("hosts %v: node %d has other models at versions %v than in virtual time", hosts,
							node, versions)
					}
				}
			}
		})
	}
}

// led is a run under the real coordinator, which ends when the test finishes it.
func led(architecture train.Architecture, result *coordinator.Result, roles []string, holders ...int) *training {
	r := &training{architecture: architecture, roles: roles, delay: link.Uniform{Min: ms / 10, Max: ms}}
	r.lead = func(env actors.Env, control world.Control) (actor.Actor, error) {
		r.finish = control.Finish
		return coordinator.New(coordinator.Run{
			Policy:  coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: time.Hour},
			Samples: 64, Holders: holders, Result: result,
			Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
		}, env, control)
	}
	return r
}

func TestAsynchronousTrainingGoesOnInAllWorldsAndEveryMessageIsAccountedFor(t *testing.T) {
	worker, peer := ps.RoleWorker, gossip.Architecture{
		Every: 1, Choice: gossip.Choice{By: gossip.Random, Count: 1}, Exchange: gossip.Push, Merge: gossip.Mean,
		Lead: gossip.NoLead,
	}
	role := peer.Roles()[0].Name
	walking := gossiplearning.Default()
	walking.Period = 5 * ms
	for name, c := range map[string]struct {
		architecture train.Architecture
		roles        []string
		holders      []int
		trains       []int
	}{
		"parameter server": {ps.Architecture{Scale: ps.Sum}, []string{ps.RoleServer, worker, worker, worker},
			[]int{0}, []int{1, 2, 3}},
		"gossip":          {peer, []string{role, role, role, role}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
		"gossip learning": {walking, []string{role, role, role, role}, []int{0, 1, 2, 3}, []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var result coordinator.Result
			r := led(c.architecture, &result, c.roles, c.holders...)
			steps := newProgress()
			r.observer = steps
			m := r.split(0, 1, 2, 1, 2)
			var carried [5]atomic.Int64 // of the messages of actors, by sender's world
			m.sending = func(from, _ int, f *wire.Frame) error {
				if !protos.IsControl(f.Head) {
					carried[from].Add(1)
				}
				return nil
			}
			wait := m.start(t)
			steps.more(t, 50, c.trains...)
			r.finish()
			wait()
			if err := errors.Join(m.failures...); err != nil || result.Evaluations == 0 {
				t.Errorf("error %v after %d evaluations", err, result.Evaluations)
			}
			m.accounted(t, func(world int) int64 { return carried[world].Load() })
		})
	}
}

// accounted checks the counts of every edge, and that what left a world by its carrier is
// what its edges to others delivered.
func (m *mesh) accounted(t *testing.T, carried func(world int) int64) {
	t.Helper()
	for world, c := range m.make {
		var left int64
		for _, e := range c.Network.Used() {
			stats := e.Stats
			if m.hosts[e.Source] != world && stats.Sent+stats.Control != 0 {
				t.Errorf("world %d counts on edge %d → %d, whose sender lives elsewhere: %+v", world, e.Source,
					e.Destination, stats)
			}
			if stats.InFlight() < 0 || stats.InFlightBytes() < 0 {
				t.Errorf("edge %d → %d does not add up: %+v", e.Source, e.Destination, stats)
			}
			if m.hosts[e.Destination] != world {
				left += stats.Delivered + stats.Dropped
			}
		}
		if want := carried(world); left != want || want == 0 {
			t.Errorf("world %d counts %d messages as taken by its carrier, which was given %d", world, left, want)
		}
	}
}

// progress counts the steps of each node, and lets a test wait for them.
type progress struct {
	mu    sync.Mutex
	steps map[int]int
	news  chan struct{}
}

func newProgress() *progress { return &progress{steps: map[int]int{}, news: make(chan struct{}, 1)} }

func (p *progress) Observe(_ time.Duration, node int, e actors.Event) {
	if e.Kind != actors.StepDone {
		return
	}
	p.mu.Lock()
	p.steps[node]++
	p.mu.Unlock()
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// more waits until each of the nodes has made some more steps.
func (p *progress) more(t *testing.T, steps int, nodes ...int) {
	t.Helper()
	p.mu.Lock()
	before := maps.Clone(p.steps)
	p.mu.Unlock()
	late := time.After(limit)
	for {
		p.mu.Lock()
		all := true
		for _, n := range nodes {
			all = all && p.steps[n] >= before[n]+steps
		}
		p.mu.Unlock()
		if all {
			return
		}
		select {
		case <-p.news:
		case <-late:
			t.Fatalf("nodes %v have not made %d more steps", nodes, steps)
		}
	}
}

func TestTrainingGoesOnWithoutAWorldThatIsLostAndWithTheOneThatReplacesIt(t *testing.T) {
	server, worker := ps.RoleServer, ps.RoleWorker
	for name, c := range map[string]struct {
		architecture train.Architecture
		roles        []string
		holders      []int
	}{
		"parameter server": {ps.Architecture{Scale: ps.Sum}, []string{server, worker, worker}, []int{0}},
		"all-reduce": {collective.Architecture{Algorithm: collective.Ring, Every: 1, Reduce: collective.Gradients},
			[]string{worker, worker, worker}, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var result coordinator.Result
			r := led(c.architecture, &result, c.roles, c.holders...)
			steps := newProgress()
			r.observer = steps
			m := r.split(0, 1, 2, 0)
			began := time.Now()
			wait := m.start(t)
			trains := []int{1}
			if c.roles[0] == worker {
				trains = []int{0, 1}
			}
			steps.more(t, 20, append(trains, 2)...)
			m.cut(2)
			m.worlds[0].Change(world.MemberChange{Node: 2})
			steps.more(t, 20, trains...)

			config := r.config()
			config.Start, config.Lives = time.Since(began), 1
			m.replace(t, 2, config)
			m.worlds[0].Change(world.MemberChange{Node: 2, Present: true})
			steps.more(t, 20, append(trains, 2)...)
			r.finish()
			wait()
			if err := errors.Join(m.failures...); err != nil {
				t.Error(err)
			}
			if m.results[2].Now < config.Start || result.Evaluations == 0 {
				t.Errorf("the world that began at %v ended at %v, after %d evaluations", config.Start,
					m.results[2].Now, result.Evaluations)
			}
			if e := m.make[1].Network.Edge(1, 2).Stats(); name == "all-reduce" && e.Delivered == 0 {
				t.Errorf("edge %+v: nothing ever came to the node of the lost world", e)
			}
		})
	}
}
