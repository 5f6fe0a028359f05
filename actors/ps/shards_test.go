package ps_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// site is a run of several servers and workers that a coordinator leads.
type site struct {
	arch     ps.Architecture
	method   optim.Method
	servers  int
	absent   []int // servers that are not there at first
	workers  int
	delay    time.Duration
	rate     float64 // bytes a second of each node's uplink and downlink; 0 for no limit
	schedule []world.NodeChange
	steps    int // of all workers
	seed     uint64
	layers   []int
	idle     bool          // steps compute nothing
	looks    time.Duration // between evaluations; 0 for none but the last
	lax      bool          // messages are not checked on their way
	late     time.Duration // as in sim.Config
	observer world.Observer
}

// outcome is what a run of a site has led to.
type outcome struct {
	coordinator.Result
	edges map[string]int64 // bytes, by the names of both ends
}

func (o *outcome) model() []float32 { return o.Models[0].Params }

func (s *site) names() (names, workers []string) {
	for i := range s.servers {
		names = append(names, fmt.Sprint("server", i+1))
	}
	for i := range s.workers {
		workers = append(workers, fmt.Sprint("worker", i+1))
	}
	return append(names, workers...), workers
}

func (s *site) run(tb testing.TB) (*outcome, error) {
	tb.Helper()
	names, workers := s.names()
	layers := s.layers
	if layers == nil {
		layers = []int{5, 7, 3}
	}
	task := newTask(tb, s.seed+1, layers, 4, 60*len(workers), workers...)
	if s.method != nil {
		task.Method = s.method
	}
	if s.idle {
		task.Model = idle{task.Model}
	}
	d := &world.Deployment{Seed: s.seed + 1, Strict: !s.idle && !s.lax, Observer: s.observer, Schedule: s.schedule,
		Detect: 3 * time.Millisecond}
	out := &outcome{edges: map[string]int64{}}
	run := coordinator.Run{
		Policy: coordinator.Policy{Every: coordinator.Interval{Steps: 1 << 30}, Steps: s.steps},
		Joint:  true, Survives: s.arch.Roles()[0].Copied, Samples: task.Train.Len(), Result: &out.Result,
		Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
	}
	if s.looks > 0 {
		run.Policy.Every = coordinator.Interval{Time: s.looks}
	}
	for i, name := range names {
		role := ps.RoleWorker
		if i < s.servers {
			role, run.Holders = ps.RoleServer, append(run.Holders, i)
		}
		d.Nodes = append(d.Nodes, world.Node{Name: name, Role: role, Absent: slices.Contains(s.absent, i),
			Profile: world.Profile{Cores: 1, Speed: 1e12, Step: 5 * ms},
			Kind:    s.arch.Kind(task, train.Place{Node: i, Name: name, Role: role})})
	}
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	}
	network := link.New(s.seed+1, append(slices.Clone(names), actors.Coordinator))
	network.SetDefault(link.Config{Delay: link.Constant{Delay: s.delay}})
	if s.rate > 0 {
		for i := range names {
			network.SetUplink(int32(i), rate.Constant(s.rate))
			network.SetDownlink(int32(i), rate.Constant(s.rate))
		}
	}
	w, err := sim.New(sim.Config{Deployment: d, Network: network, Late: s.late})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = w.Run(context.Background())
	for _, c := range network.Used() {
		if int(max(c.Source, c.Destination)) < len(names) {
			out.edges[names[c.Source]+" "+names[c.Destination]] = c.SentBytes
		}
	}
	return out, err
}

func (s *site) must(tb testing.TB) *outcome {
	tb.Helper()
	out, err := s.run(tb)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// shardValues is how many values a small shard has.
const shardValues = 8

// sharded has small shards, so that a model of 66 values has nine.
func sharded(a ps.Architecture) ps.Architecture {
	a.Servers = &ps.Servers{}
	a.Servers.SetDefaults()
	a.Servers.Shard = 4 * shardValues
	return a
}

// movement has servers join and leave while messages are under way.
var movement = []world.NodeChange{
	{At: 33 * ms, Node: 2, Do: world.Join}, {At: 61 * ms, Node: 0, Do: world.Leave},
	{At: 62 * ms, Node: 3, Do: world.Join}, {At: 75 * ms, Node: 2, Do: world.Leave},
	{At: 91 * ms, Node: 0, Do: world.Join}, {At: 104 * ms, Node: 1, Do: world.Leave},
	{At: 119 * ms, Node: 2, Do: world.Join},
}

// With rounds, what a model is made of does not depend on when anything arrives, nor on where its
// shards are.
func TestModelOfRoundsDoesNotDependOnHowManyServersThereAreNorOnTheirComingAndGoing(t *testing.T) {
	topK := compress.Chain{compress.TopK{Share: 0.3}}
	for name, c := range map[string]struct {
		arch   ps.Architecture
		method optim.Method
	}{
		"sgd": {ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean}, nil},
		"momentum": {ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean},
			optim.Momentum{Rate: optim.Constant(0.05), Momentum: 0.9}},
		"ef": {ps.Architecture{Consistency: consistency.SSP{}, Scale: ps.Sum,
			Compress: compress.Both{Up: topK, Feedback: compress.EF}}, nil},
		"ef21 and down": {ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean,
			Compress: compress.Both{Up: topK, Down: topK, Feedback: compress.EF21}}, nil},
		"every": {ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean, Every: 2}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site{arch: c.arch, method: c.method, servers: 1, workers: 3, delay: 4 * ms, steps: 60}
			if c.arch.Compress.Up == nil { // compressors see one shard at a time
				one := s.must(t)
				s.arch = sharded(c.arch)
				sameBits(t, "one server, in shards", s.must(t).model(), one.model())
			}
			s.arch, s.servers = sharded(c.arch), 4
			still := s.must(t)
			s.absent, s.schedule = []int{2, 3}, movement
			moved := s.must(t)
			sameBits(t, "servers that come and go", moved.model(), still.model())
			if moved.edges["server1 server4"]+moved.edges["server1 server2"]+moved.edges["server1 server3"] == 0 {
				t.Error("the server that left has handed nothing over")
			}
		})
	}
}

// taken counts the steps of each worker, and its pushes that each shard has taken in.
type taken struct {
	steps  map[int]int
	pushes map[[2]int]int // by worker and shard
}

func (t *taken) Observe(_ time.Duration, node int, event actors.Event) {
	switch event.Kind {
	case actors.StepDone:
		t.steps[node]++
	case actors.UpdateApplied:
		t.pushes[[2]int{event.Origin, int(event.Shard)}]++
	}
}

// Where servers hear of each other late, messages about shards, and looks at the model, come before
// the views that explain them.
func TestShardsLoseNothingWhereServersHearOfEachOtherLate(t *testing.T) {
	for seed := range uint64(20) {
		seen := &taken{map[int]int{}, map[[2]int]int{}}
		a := sharded(ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean})
		s := site{arch: a, servers: 4, absent: []int{2, 3}, workers: 3, delay: 4 * ms, steps: 90, seed: seed,
			schedule: movement, late: 30 * ms, looks: 7 * ms, observer: seen}
		s.must(t)
		for worker := s.servers; worker < s.servers+s.workers; worker++ {
			for shard := range 9 {
				n, steps := seen.pushes[[2]int{worker, shard}], seen.steps[worker]
				if n < 30 || n > steps || n < steps-1 {
					t.Errorf("seed %d: shard %d has %d of the %d gradients of node %d", seed, shard, n, steps, worker)
				}
			}
		}
	}
}

// Codes make what the former life of a worker was sent unlike a greeting of the present one.
func TestWorkerThatIsBackIgnoresWhatItsFormerLifeWasSent(t *testing.T) {
	a := sharded(ps.Architecture{Consistency: consistency.ASP{}, Scale: ps.Mean,
		Compress: compress.Both{Down: compress.Chain{compress.TopK{Share: 0.3}}, Feedback: compress.EF21}})
	for seed := range uint64(20) {
		s := site{arch: a, servers: 2, workers: 2, delay: 9 * ms, steps: 60, seed: seed, late: 30 * ms}
		for at := 40 * ms; at < 200*ms; at += 30 * ms {
			s.schedule = append(s.schedule, world.NodeChange{At: at, Node: 3, Do: world.Leave},
				world.NodeChange{At: at + ms, Node: 3, Do: world.Join})
		}
		s.must(t)
	}
}

func TestServerThatCrashesEndsTheRunAndIsNamed(t *testing.T) {
	for servers := 1; servers <= 3; servers++ {
		s := site{arch: sharded(ps.Default()), servers: servers, workers: 2, delay: 4 * ms, steps: 1000,
			schedule: []world.NodeChange{{At: 50 * ms, Node: 0, Do: world.Crash},
				{At: 51 * ms, Node: 0, Do: world.Join}}}
		_, err := s.run(t)
		want := "server1 has gone without handing over its part of the parameters"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d servers: %v, want %q", servers, err, want)
		}
	}
}

func TestLastServerThatLeavesEndsTheRunAndIsNamed(t *testing.T) {
	s := site{arch: ps.Default(), servers: 2, workers: 2, delay: 4 * ms, steps: 1000,
		schedule: []world.NodeChange{{At: 50 * ms, Node: 0, Do: world.Leave}, {At: 90 * ms, Node: 1, Do: world.Leave}}}
	_, err := s.run(t)
	want := "server2 leaves, and no other server is there to take over the parameters"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// What a round of several servers takes is what the busiest of all links has to carry: pushes and
// answers of different shards are under way at once. A model and rates are 1/100 of 25 million
// parameters at 1 Gbit/s.
func TestRoundsOfSeveralServersTakeWhatTheBusiestLinkDoes(t *testing.T) {
	for _, servers := range []int{1, 2, 4} {
		a := ps.Architecture{Consistency: consistency.BSP{}, Scale: ps.Mean, Servers: &ps.Servers{}}
		a.Servers.SetDefaults()
		a.Servers.Shard = 1 << 20 / 250
		const rounds = 10
		s := site{arch: a, servers: servers, workers: 4, delay: ms / 10, rate: 1.25e6, steps: 4 * rounds,
			layers: []int{93, 1010, 5}}
		out := s.must(t)
		load := map[string]int64{}
		for ends, bytes := range out.edges {
			from, to, _ := strings.Cut(ends, " ")
			load["up "+from] += bytes
			load["down "+to] += bytes
		}
		most := int64(0)
		for _, bytes := range load {
			most = max(most, bytes)
		}
		bound := float64(most) / 1.25e6
		t.Logf("%d servers: %.1f ms a round, %.3f of what the busiest link takes", servers,
			1000*out.End.Seconds()/rounds, out.End.Seconds()/bound)
		if took := out.End.Seconds(); took < bound*0.9 || took > bound*1.1 {
			t.Errorf("%d servers: %v s, the busiest link takes %v s", servers, took, bound)
		}
	}
}

// The bytes that move when a server joins are those of its part of the parameters, and no worker's
// step fails.
func TestServerThatJoinsIsSentItsPartAndHardlyMore(t *testing.T) {
	steps := &events{kind: actors.StepDone}
	a := sharded(ps.Default())
	a.Servers.Shard = 4 * 1000
	s := site{arch: a, servers: 3, absent: []int{2}, workers: 3, delay: 4 * ms, steps: 100, layers: []int{93, 800, 5},
		schedule: []world.NodeChange{{At: 100 * ms, Node: 2, Do: world.Join}}, observer: steps}
	out := s.must(t)
	const part = 4 * (93*800 + 800 + 800*5 + 5) / 3
	moved := out.edges["server1 server3"] + out.edges["server2 server3"] + out.edges["server1 server2"] +
		out.edges["server2 server1"]
	t.Logf("%.3f × the bytes of a third of the parameters moved", float64(moved)/part)
	if moved < part*9/10 || moved > part*12/10 {
		t.Errorf("%d bytes moved; a third of the parameters has %d", moved, part)
	}
	for i := 1; i < len(steps.at); i++ {
		if gap := steps.at[i] - steps.at[i-1]; gap > 30*ms {
			t.Errorf("no step for %v at %v", gap, steps.at[i])
		}
	}
}
