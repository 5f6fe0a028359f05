package noloco_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/noloco"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

const (
	ms               = time.Millisecond
	rate, inner      = 0.05, 0.9 // of the inner optimizer
	beta, alpha      = 0.7, 0.5  // of NoLoCo
	every, peerSteps = 3, 24
)

// arch has groups of a size and short rounds.
func arch(size int) noloco.Architecture {
	return noloco.Architecture{Every: every, Group: size, Outer: noloco.Outer{Rate: beta, Momentum: alpha}}
}

// newTask is a small network on clouds, with samples of each peer's own.
func newTask(peers int) *train.Task {
	return simtest.Task(simtest.Perceptron(6, 4, 3), slices.Repeat([]int{40}, peers), 8,
		optim.Momentum{Rate: optim.Constant(rate), Momentum: inner})
}

// oracle is the training of all peers as plain loops in float64, with NoLoCo's step as the paper
// writes it. Samples and gradients are the data's and the network's; who forms a group is given.
type oracle struct {
	task              *train.Task
	samplers          []*datasets.Sampler
	theta, phi, v, m  [][]float64 // by peer
	walked            []int
	alpha, beta       float64
	scratch           nn.Workspace
	trajectory, ended [][][]float64 // θ by peer and step, and φ by peer and round
}

func newOracle(t *testing.T, task *train.Task) *oracle {
	t.Helper()
	n := len(task.Workers)
	o := &oracle{task: task, walked: make([]int, n), alpha: alpha, beta: beta,
		scratch: task.Model.NewWorkspace(task.Batch), trajectory: make([][][]float64, n), ended: make([][][]float64, n)}
	for i, name := range task.Workers {
		s, err := datasets.NewSampler(task.Train, task.Shards[i], task.Batch, task.Seed, name)
		if err != nil {
			t.Fatal(err)
		}
		first := wide(task.Initial())
		o.samplers = append(o.samplers, s)
		o.theta, o.phi = append(o.theta, first), append(o.phi, slices.Clone(first))
		o.v, o.m = append(o.v, make([]float64, len(first))), append(o.m, make([]float64, len(first)))
		o.trajectory[i] = [][]float64{slices.Clone(first)}
	}
	return o
}

func wide(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

func (o *oracle) step(i int) {
	x, y := make([]float32, o.task.Batch*o.task.Model.Inputs()), make([]int32, o.task.Batch)
	s := o.samplers[i]
	n := s.Fill(o.walked[i]/s.Steps(), o.walked[i]%s.Steps(), x, y)
	o.walked[i]++
	params, g := make([]float32, len(o.theta[i])), make([]float32, len(o.theta[i]))
	for k, v := range o.theta[i] {
		params[k] = float32(v)
	}
	o.scratch.Gradient(params, g, nn.Batch{X: x[:n*o.task.Model.Inputs()], Y: y[:n]})
	for k := range g {
		o.v[i][k] = inner*o.v[i][k] + float64(g[k])
		o.theta[i][k] -= rate * o.v[i][k]
	}
}

// round is one of all peers, whose groups are given.
func (o *oracle) round(groups [][]int) {
	for i := range o.theta {
		for range every {
			o.step(i)
			o.trajectory[i] = append(o.trajectory[i], slices.Clone(o.theta[i]))
		}
	}
	for _, group := range groups {
		for k := range o.theta[0] {
			mean, moved := 0.0, 0.0
			for _, i := range group {
				mean += o.phi[i][k] / float64(len(group))
				moved += (o.theta[i][k] - o.phi[i][k]) / float64(len(group))
			}
			for _, i := range group {
				o.m[i][k] = o.alpha*o.m[i][k] + o.beta*moved + o.beta*(mean-o.phi[i][k])
			}
			for _, i := range group {
				o.phi[i][k] += o.m[i][k]
				o.theta[i][k] = o.phi[i][k]
			}
		}
	}
	for i := range o.phi {
		o.ended[i] = append(o.ended[i], slices.Clone(o.phi[i]))
		o.trajectory[i] = append(o.trajectory[i], slices.Clone(o.phi[i]))
	}
}

// groupsOf are the groups of each round, from whom peers have chosen. Each peer says the same of
// its group.
func groupsOf(t *testing.T, r *simtest.Recorder, peers int) (rounds [][][]int) {
	t.Helper()
	steps, chosen := make([]int, peers), map[[2]int][]int{}
	for i, e := range r.Events {
		node := r.Nodes[i]
		switch e.Kind {
		case actors.StepDone:
			steps[node]++
		case actors.Selected:
			at := [2]int{steps[node]/every - 1, node}
			chosen[at] = append(chosen[at], e.Origin)
		}
	}
	for round := range slices.Min(steps) / every {
		var groups [][]int
		for node := range peers {
			group := append([]int{node}, chosen[[2]int{round, node}]...)
			slices.Sort(group)
			if i := slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, node) }); i < 0 {
				groups = append(groups, group)
			} else if !slices.Equal(groups[i], group) {
				t.Fatalf("round %d: node %d is in %v, another one says %v", round, node, group, groups[i])
			}
		}
		rounds = append(rounds, groups)
	}
	return rounds
}

// distance is the largest difference of two models, relative to 1 or the value.
func distance(a []float32, b []float64) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-b[i])/max(1, math.Abs(b[i])))
	}
	return most
}

// roundEnds are the instants shortly after rounds, of a run whose links take next to no time.
func roundEnds() (looks []time.Duration) {
	for steps := every; steps <= peerSteps; steps += every {
		looks = append(looks, time.Duration(steps)*simtest.StepTime+simtest.StepTime/2)
	}
	return looks
}

func TestRoundsAreThoseOfPlainLoops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ peers, size int }{{4, 2}, {5, 2}, {7, 3}, {6, 2}, {1, 2}} {
		r := &simtest.Recorder{}
		s := &simtest.Stage{Task: newTask(c.peers), Kind: arch(c.size), Strict: true, Observer: r, Looks: roundEnds()}
		looks := s.Run(t)
		o := newOracle(t, s.Task)
		for round, groups := range groupsOf(t, r, c.peers) {
			o.round(groups)
			for i, seen := range looks[round] {
				if d := distance(seen.Params, o.phi[i]); !(d < 1e-6) {
					t.Fatalf("%+v: after round %d node %d is %v away from plain loops", c, round+1, i, d)
				}
			}
		}
	}
}

// With one group of all, whose models begin equal, the step is DiLoCo's with a heavy ball.
func TestOneGroupOfAllIsDiLoCoWithAHeavyBall(t *testing.T) {
	t.Parallel()
	const peers = 5
	s := &simtest.Stage{Task: newTask(peers), Kind: arch(peers), Strict: true, Looks: roundEnds()}
	o := newOracle(t, s.Task)
	b := make([]float64, len(o.phi[0]))
	for round, look := range s.Run(t) {
		for i := range peers {
			copy(o.theta[i], o.phi[0])
			for range every {
				o.step(i)
			}
		}
		for k := range b {
			delta := 0.0
			for i := range peers {
				delta += (o.phi[0][k] - o.theta[i][k]) / peers
			}
			b[k] = alpha*b[k] + delta
		}
		for k := range b {
			o.phi[0][k] -= beta * b[k]
		}
		for i, seen := range look {
			if d := distance(seen.Params, o.phi[0]); !(d < 1e-6) || !slices.Equal(seen.Params, look[0].Params) {
				t.Fatalf("round %d: node %d is %v away from DiLoCo", round+1, i, d)
			}
		}
	}
}

// Where steps add nothing any more, a pair's sum moves by its momentum alone, and peers agree in
// the end.
func TestAPairsSumMovesByTheMeanUpdateAlone(t *testing.T) {
	t.Parallel()
	const peers = 6
	task := newTask(peers)
	task.Method = optim.SGD{Rate: optim.Step{First: 0.5, Factor: 1e-30, Every: 2 * every}}
	r := &simtest.Recorder{}
	s := &simtest.Stage{Task: task, Kind: arch(2), Strict: true, Observer: r, Looks: roundEnds()}
	for round := peerSteps / every; round < 40; round++ {
		s.Looks = append(s.Looks, time.Duration(round+1)*every*simtest.StepTime+simtest.StepTime/2)
	}
	looks := s.Run(t)
	rounds := groupsOf(t, r, peers)
	for round := 4; round < len(rounds); round++ {
		for _, pair := range rounds[round] {
			for k := range looks[0][0].Params {
				at := func(round int) (sum float64) {
					for _, i := range pair {
						sum += float64(looks[round][i].Params[k])
					}
					return sum
				}
				want := alpha * (at(round-1) - at(round-2))
				if got := at(round) - at(round-1); !(math.Abs(got-want) < 2e-6) {
					t.Fatalf("round %d, pair %v: value %d of the sum moves by %v, want %v", round, pair, k, got, want)
				}
			}
		}
	}
	first, last := simtest.Spread(looks[1]), simtest.Spread(looks[len(looks)-1])
	if !(last < 1e-3*first) {
		t.Errorf("the spread falls from %g to %g only", first, last)
	}
}

// Neither how long links and steps take nor what links lose changes a model, where sessions deliver
// all: at each instant it is one that plain loops pass through.
func TestModelsDoNotDependOnLinks(t *testing.T) {
	t.Parallel()
	const peers = 5
	sound := &simtest.Recorder{}
	(&simtest.Stage{Task: newTask(peers), Kind: arch(2), Observer: sound, Looks: roundEnds()}).Run(t)
	o := newOracle(t, newTask(peers))
	for _, groups := range groupsOf(t, sound, peers) {
		o.round(groups)
	}
	s := &simtest.Stage{Task: newTask(peers), Kind: arch(2), Edge: link.Uniform{Max: 300 * ms}, Reorder: true,
		Repeat: 0.1, Loss: link.Loss{Probability: 0.2, Drop: true}, Reliable: true,
		Step: []time.Duration{100 * ms, 130 * ms, 70 * ms, 250 * ms, 90 * ms}}
	for at := 95 * ms; at < peerSteps*70*ms; at += 370 * ms {
		s.Looks = append(s.Looks, at)
	}
	for look, models := range s.Run(t) {
		for i, seen := range models {
			least := math.Inf(1)
			for _, theta := range o.trajectory[i] {
				least = min(least, distance(seen.Params, theta))
			}
			if !(least < 1e-6) {
				t.Errorf("look %d: the model of node %d is %v away from all of plain loops", look, i, least)
			}
		}
	}
}
