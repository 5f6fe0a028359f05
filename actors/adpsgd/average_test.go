package adpsgd_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/protos"
)

var graphs = []struct {
	name  string
	nodes int
	graph actors.Graph
	kind  adpsgd.Graph
}{
	{"ring", 6, actors.Graph{{1, 5}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {0, 4}}, adpsgd.Topology},
	{"star", 5, actors.Graph{{1, 2, 3, 4}, {0}, {0}, {0}, {0}}, adpsgd.Topology},
	{"star with the hub last", 4, actors.Graph{{3}, {3}, {3}, {0, 1, 2}}, adpsgd.Topology},
	{"grid", 6, actors.Graph{{1, 3}, {0, 2, 4}, {1, 5}, {0, 4}, {1, 3, 5}, {2, 4}}, adpsgd.Topology},
	{"pair", 2, nil, adpsgd.Topology},
	{"exponential", 8, nil, adpsgd.Exponential},
}

// Exchanges take microseconds and steps 100 ms, so that in the middle of a step none is under way.
func TestAveragingLeavesTheSumUnchangedAndLeadsToConsensus(t *testing.T) {
	t.Parallel()
	for _, c := range graphs {
		s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0), Graph: c.graph,
			Kind: adpsgd.Architecture{Graph: c.kind, Lead: -1}, Distinct: true, Strict: true}
		for step := range 200 {
			s.Looks = append(s.Looks, time.Duration(step)*simtest.StepTime+simtest.StepTime/2)
		}
		// The first look comes after one exchange: what the sum was before follows from the initial
		// parameters.
		var initial []simtest.Seen
		for i := range c.nodes {
			own := *s.Task
			own.Seed += uint64(1000 * i)
			initial = append(initial, simtest.Seen{Params: own.Initial()})
		}
		want, _ := simtest.Total(initial)
		looks := s.Run(t)
		worst := 0.0
		for _, look := range looks {
			sum, _ := simtest.Total(look)
			worst = max(worst, simtest.Distance(sum, want))
		}
		first, last := simtest.Spread(initial), simtest.Spread(looks[len(looks)-1])
		t.Logf("%s: the sum moves by %.1e, the spread falls from %.2g to %.2g", c.name, worst, first, last)
		if !(worst <= 1e-6) {
			t.Errorf("%s: the sum moves by %.1e, want at most 1e-6", c.name, worst)
		}
		if !(last < 1e-3*first) {
			t.Errorf("%s: the spread falls from %g to %g only", c.name, first, last)
		}
	}
}

func TestExchangeGivesBothTheSameMean(t *testing.T) {
	s := simtest.Stage{Task: simtest.NewTask(2, 20, 0), Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1},
		Distinct: true, Looks: []time.Duration{simtest.StepTime / 2}}
	look := s.Run(t)[0]
	a, b := *s.Task, *s.Task
	b.Seed += 1000
	x, y := a.Initial(), b.Initial()
	for i := range x {
		if want := (x[i] + y[i]) / 2; look[0].Params[i] != want || look[1].Params[i] != want {
			t.Fatalf("value %d: %v and %v, want %v", i, look[0].Params[i], look[1].Params[i], want)
		}
	}
}

// A peer computes the gradient on its model before the exchange and subtracts it from the mean.
func TestGradientIsOnTheOldCopy(t *testing.T) {
	const rate = 0.1
	alone := func(node int) (before, after []float32) {
		task := simtest.NewTask(2, 20, rate)
		task.Seed += uint64(1000 * node)
		s := simtest.Stage{Task: task, Graph: actors.Graph{{}, {}},
			Kind:  adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1},
			Looks: []time.Duration{simtest.StepTime / 2, 3 * simtest.StepTime / 2}}
		looks := s.Run(t)
		return looks[0][node].Params, looks[1][node].Params
	}
	s := simtest.Stage{Task: simtest.NewTask(2, 20, rate), Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1},
		Distinct: true, Looks: []time.Duration{3 * simtest.StepTime / 2}}
	// Only the first exchange is over: the second one takes longer than the look is away.
	s.Edge = link.Constant{Delay: 40 * time.Millisecond}
	s.Looks[0] = simtest.StepTime + 10*time.Millisecond
	got := s.Run(t)[0]
	x, x1 := alone(0)
	y, y1 := alone(1)
	for i := range x {
		mean := float64(x[i]+y[i]) / 2
		for node, want := range []float64{mean + float64(x1[i]) - float64(x[i]),
			mean + float64(y1[i]) - float64(y[i])} {
			if d := float64(got[node].Params[i]) - want; d > 1e-6 || d < -1e-6 {
				t.Fatalf("value %d of node %d: %v, want %v", i, node, got[node].Params[i], want)
			}
		}
	}
}

// referee ends a run when every node has made the wanted number of steps.
type referee struct {
	env     actors.Env
	control world.Control
	wanted  int
	steps   []int
	missing int
}

func (r *referee) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		members := r.env.View().Members
		r.steps, r.missing = make([]int, len(members)), len(members)
		for i := range members {
			ctx.Send(members[i].PID, protos.NewMessage(&protos.Start{View: 1}))
		}
	case *protos.Message:
		if head, ok := m.Head.(*protos.Progress); ok {
			r.steps[head.Node]++
			switch {
			case r.steps[head.Node] == r.wanted:
				if r.missing--; r.missing == 0 {
					r.control.Finish()
				}
			case r.steps[head.Node] > 1000*r.wanted:
				r.env.Fail(fmt.Errorf("node %d has made %d steps, others stand still: %v", head.Node,
					r.steps[head.Node], r.steps))
			}
		}
		m.Release()
	}
}

var seeds = flag.Int("seeds", 1500, "number of random worlds in which somebody could wait in a circle")

// The rule is the paper's: active peers wait, and for passive ones only.
func TestNobodyEverWaitsInACircle(t *testing.T) {
	if simtest.Brief() {
		*seeds = min(*seeds, 300)
	}
	const parts = 2
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < uint64(*seeds); seed += parts {
				nobodyWaitsInACircle(t, seed)
			}
		})
	}
}

func nobodyWaitsInACircle(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	c := graphs[random.IntN(len(graphs))]
	s := simtest.Stage{Task: simtest.NewTask(c.nodes, 9, 0.1), Graph: c.graph, Reorder: random.IntN(2) == 0,
		Strict: seed%16 == 0}
	s.Task.Seed = seed
	s.Kind = adpsgd.Architecture{Graph: c.kind, Lead: random.IntN(4) - 1, Moved: float64(random.IntN(2)) * 0.05}
	s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(300)) * time.Millisecond}
	for range c.nodes {
		s.Step = append(s.Step, time.Duration(1+random.IntN(100))*time.Millisecond)
	}
	w := s.World(t, func(env actors.Env, control world.Control) (actor.Actor, error) {
		return &referee{env: env, control: control, wanted: 8}, nil
	})
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatalf("seed %d, %s, %+v: %v", seed, c.name, s.Kind, err)
	}
}

func TestGraphsThatAreNotBipartiteAreRefused(t *testing.T) {
	for _, c := range []struct {
		nodes int
		graph actors.Graph
		kind  adpsgd.Graph
		want  string
	}{
		{5, actors.Graph{{1, 4}, {0, 2}, {1, 3}, {2, 4}, {0, 3}}, adpsgd.Topology,
			"n2 and n3 are neighbours and on an odd ring; take an even ring, a grid, a hypercube"},
		{3, nil, adpsgd.Topology, "the complete topology of 3 nodes is not bipartite"},
		{5, nil, adpsgd.Exponential, "needs an even number of peers, there are 5"},
		{2, actors.Graph{{1}, {0}}, adpsgd.Exponential, "brings its own topology"},
		{2, nil, "circle", `Graph is "circle": must be topology or exponential`},
	} {
		task := simtest.NewTask(c.nodes, 9, 0.1)
		d := &world.Deployment{Nodes: make([]world.Node, c.nodes)}
		for i := range d.Nodes {
			d.Nodes[i] = world.Node{Name: task.Workers[i], Role: adpsgd.RolePeer}
		}
		if c.graph != nil {
			d.Topologies = []actors.Graph{c.graph}
		}
		_, err := adpsgd.Architecture{Graph: c.kind}.Kind(task, placeOf(0))(bystander{view: d.Views().First()})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestThreadsChangeNothing(t *testing.T) {
	for _, c := range graphs {
		var results []any
		for _, threads := range []int{0, 2} {
			s := simtest.Stage{Task: simtest.NewTask(c.nodes, 40, 0.1), Graph: c.graph,
				Kind: adpsgd.Architecture{Graph: c.kind, Lead: 2}, Edge: link.Uniform{Max: 300 * time.Millisecond},
				Threads: threads, Looks: []time.Duration{4 * time.Second}}
			models := s.Run(t)
			results = append(results, fmt.Sprint(s.Result.Digest, models))
		}
		if results[0] != results[1] {
			t.Errorf("%s: digests or models differ between 0 and 2 threads", c.name)
		}
	}
}

// bystander is an Env that can only tell who is there.
type bystander struct {
	actors.Env
	view *actors.View
}

func (b bystander) Node() int                      { return 0 }
func (b bystander) View() *actors.View             { return b.view }
func (b bystander) Tensors() *protos.TensorPool    { return &protos.TensorPool{} }
func (b bystander) Rand(purpose string) *rand.Rand { return rand.New(actors.Source(0, "", purpose)) }

func placeOf(node int) train.Place { return train.Place{Node: node, Role: adpsgd.RolePeer} }
