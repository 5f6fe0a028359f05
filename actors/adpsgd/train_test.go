package adpsgd_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
)

// loss returns the loss of a model on all samples.
func loss(task *train.Task, params []float32) float64 {
	return task.NewEvaluator(1).Evaluate(params).Loss
}

// plain makes steps of stochastic gradient descent on all samples in one process.
func plain(t *testing.T, task *train.Task, rate float32, steps int) []float32 {
	params, g := task.Initial(), make([]float32, task.Model.Params())
	sampler, err := datasets.NewSampler(task.Train, nil, task.Batch, 1, "one")
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, task.Batch*task.Train.Inputs), make([]int32, task.Batch)
	w := task.Model.NewWorkspace(task.Batch)
	for step := range steps {
		n := sampler.Fill(step/sampler.Steps(), step%sampler.Steps(), x, y)
		w.Gradient(params, g, nn.Batch{X: x[:n*task.Train.Inputs], Y: y[:n]})
		for i := range params {
			params[i] -= rate * g[i]
		}
	}
	return params
}

func TestReachesTheLossOfPlainDescent(t *testing.T) {
	const rate, steps = 0.05, 300
	for _, c := range graphs {
		task := simtest.NewTask(c.nodes, 60, rate)
		want := loss(task, plain(t, task, rate, steps))
		first := loss(task, task.Initial())
		for _, moved := range []float64{0, 0.02} {
			s := simtest.Stage{Task: task, Graph: c.graph,
				Kind:  adpsgd.Architecture{Graph: c.kind, Lead: -1, Moved: moved},
				Looks: []time.Duration{steps * simtest.StepTime},
				Edge:  link.Uniform{Max: 150 * time.Millisecond}}
			for node, m := range s.Run(t)[0] {
				if l := loss(task, m.Params); !(l-want < 0.1*(first-want)) {
					t.Errorf("%s, moved %v: node %d has a loss of %.3f, plain descent %.3f from %.3f", c.name, moved,
						node, l, want, first)
				}
			}
		}
	}
}

func TestLeadBoundsTheDistanceToTheSlowest(t *testing.T) {
	for bound, want := range map[int]uint64{0: 1, 2: 3, -1: 40} {
		r := &simtest.Recorder{}
		c := graphs[0]
		s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0.1), Graph: c.graph,
			Kind: adpsgd.Architecture{Graph: c.kind,
				Lead: bound}, Observer: r, Looks: []time.Duration{10 * time.Second}}
		for node := range c.nodes {
			s.Step = append(s.Step, time.Duration(50+node*30)*time.Millisecond)
		}
		s.Run(t)
		steps, ahead := make([]uint64, c.nodes), uint64(0)
		for i, e := range r.Events {
			if e.Kind == actors.UpdateApplied {
				steps[r.Nodes[i]] = e.Version
				least, most := uint64(math.MaxUint64), uint64(0)
				for _, n := range steps {
					least, most = min(least, n), max(most, n)
				}
				ahead = max(ahead, most-least)
			}
		}
		// A step may begin at a distance of the bound, and ends one further.
		if bound >= 0 && ahead != want || bound < 0 && ahead < want {
			t.Errorf("lead %d: the fastest is up to %d steps ahead, want %d", bound, ahead, want)
		}
	}
}

func TestFirstRankRecordsTheSpectralGapOnce(t *testing.T) {
	r := &simtest.Recorder{}
	c := graphs[0]
	s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0.1), Graph: c.graph,
		Kind: adpsgd.Architecture{Graph: c.kind, Lead: -1}, Observer: r, Looks: []time.Duration{time.Second}}
	s.Run(t)
	count := 0
	for i, e := range r.Events {
		if e.Kind != actors.Measured {
			continue
		}
		count++
		// 1 − λ₂ with 1 − (1 − cos(2πk/n))/n of a ring whose edges have the probability 1/n.
		if want := (1 - math.Cos(math.Pi/3)) / 6; r.Nodes[i] != 0 || e.Name != "spectral gap" ||
			math.Abs(e.Value-want) > 1e-12 {
			t.Errorf("node %d records %s %v, want %v", r.Nodes[i], e.Name, e.Value, want)
		}
	}
	if count != 1 {
		t.Errorf("%d figures recorded, want 1", count)
	}
}

func TestNobodyStandsStillWhenNodesComeAndGo(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if simtest.Brief() {
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 4))
		c := graphs[int(seed)%len(graphs)]
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(c.nodes, 20, 0.1), Graph: c.graph, Detect: 100 * time.Millisecond,
			Reorder: seed%2 == 0, Observer: r, Strict: seed%8 == 0}
		s.Kind = adpsgd.Architecture{Graph: c.kind, Lead: -1, Moved: float64(seed/5%2) * 0.05}
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(400)) * time.Millisecond}
		s.Shake(random, 14, 4200*time.Millisecond)
		s.Looks = []time.Duration{20 * time.Second}
		look := s.Run(t)[0]
		if lagging := r.Lagging(look, 10*time.Second, 10); lagging != nil {
			t.Errorf("seed %d, %s: in the last 10 s nodes %v have made fewer than 10 steps", seed, c.name, lagging)
		}
	}
}

// The passive peer of a pair crashes in the middle of an exchange: the active one waits until the
// view says so.
func TestCrashOfThePassivePeerEndsTheExchange(t *testing.T) {
	r := &simtest.Recorder{}
	s := simtest.Stage{Task: simtest.NewTask(2, 20, 0.1), Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1},
		Strict: true, Observer: r, Detect: 500 * time.Millisecond,
		Edge: link.Constant{Delay: 10 * time.Millisecond}, Schedule: []world.NodeChange{{At: 1005 * time.Millisecond,
			Node: 1, Do: world.Crash}}, Looks: []time.Duration{3 * time.Second}}
	s.Run(t)
	for i, e := range r.Events {
		if e.Kind == actors.Waited {
			if want := 405 * time.Millisecond; r.Nodes[i] != 0 || e.Cause != "n1" || e.Duration != want {
				t.Errorf("node %d waited %v for %s, want %v for n1", r.Nodes[i], e.Duration, e.Cause, want)
			}
			return
		}
	}
	t.Error("the active peer has not waited")
}
