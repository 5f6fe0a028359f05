package federated_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// oracle is federated learning as plain loops in float64: no actors, no messages, and nothing of
// package periodic. Given is who was drawn; its samplers are those of the data, and its gradients
// the network's.
type oracle struct {
	task     *train.Task
	samplers []*datasets.Sampler
	walked   []int // by client
	scratch  nn.Workspace
	phi      []float64
	m, v, c  []float64   // of the outer optimizer, and SCAFFOLD's control
	own      [][]float64 // its control of each client
}

func newOracle(t *testing.T, task *train.Task) *oracle {
	t.Helper()
	o := &oracle{task: task, walked: make([]int, len(task.Workers)), scratch: task.Model.NewWorkspace(task.Batch)}
	for _, v := range task.Initial() {
		o.phi = append(o.phi, float64(v))
	}
	n := len(o.phi)
	o.m, o.v, o.c = make([]float64, n), make([]float64, n), make([]float64, n)
	for i, name := range task.Workers {
		s, err := datasets.NewSampler(task.Train, task.Shards[i], task.Batch, task.Seed, name)
		if err != nil {
			t.Fatal(err)
		}
		o.samplers, o.own = append(o.samplers, s), append(o.own, make([]float64, n))
	}
	return o
}

// gradient is that of the next batch of a client.
func (o *oracle) gradient(client int, theta []float64) []float64 {
	x, y := make([]float32, o.task.Batch*o.task.Model.Inputs()), make([]int32, o.task.Batch)
	s := o.samplers[client]
	n := s.Fill(o.walked[client]/s.Steps(), o.walked[client]%s.Steps(), x, y)
	o.walked[client]++
	params, g := make([]float32, len(theta)), make([]float32, len(theta))
	for i, v := range theta {
		params[i] = float32(v)
	}
	o.scratch.Gradient(params, g, nn.Batch{X: x[:n*o.task.Model.Inputs()], Y: y[:n]})
	wide := make([]float64, len(g))
	for i, v := range g {
		wide[i] = float64(v)
	}
	return wide
}

// learned is what a client makes of the model in a round by gradient descent.
type learned struct{ delta, control []float64 }

func (o *oracle) client(i, steps int, rate, mu float64, controls bool) learned {
	theta := slices.Clone(o.phi)
	for range steps {
		for k, g := range o.gradient(i, theta) {
			if controls {
				g += o.c[k] - o.own[i][k]
			}
			theta[k] -= rate * (g + mu*(theta[k]-o.phi[k]))
		}
	}
	l := learned{make([]float64, len(theta)), make([]float64, len(theta))}
	for k := range theta {
		l.delta[k] = o.phi[k] - theta[k]
		// Option II, as it stands in the paper.
		l.control[k] = o.own[i][k] - o.c[k] + l.delta[k]/(float64(steps)*rate)
	}
	return l
}

// round is one of a kind of algorithm with some clients.
func (o *oracle) round(kind string, drawn []int, epochs int, rate, mu float64) {
	n, samples, tau := len(o.phi), 0.0, 0.0
	all := make([]learned, len(drawn))
	steps := make([]float64, len(drawn))
	for d, i := range drawn {
		k := epochs * o.samplers[i].Steps()
		all[d], steps[d] = o.client(i, k, rate, mu, kind == "scaffold"), float64(k)
		samples += float64(o.samplers[i].Len())
	}
	for d, i := range drawn {
		tau += float64(o.samplers[i].Len()) / samples * steps[d]
	}
	delta := make([]float64, n)
	for d, i := range drawn {
		weight := float64(o.samplers[i].Len()) / samples
		switch kind {
		case "scaffold":
			weight = 1 / float64(len(drawn))
		case "fednova":
			weight *= tau / steps[d]
		}
		for k := range delta {
			delta[k] += weight * all[d].delta[k]
		}
	}
	for k, d := range delta {
		o.phi[k] -= o.outer(kind, k, d)
	}
	if kind != "scaffold" {
		return
	}
	for d, i := range drawn {
		for k := range o.c {
			o.c[k] += (all[d].control[k] - o.own[i][k]) / float64(len(o.own))
		}
		o.own[i] = all[d].control
	}
}

// outer is the step of a parameter, with the constants of the presets.
func (o *oracle) outer(kind string, k int, d float64) float64 {
	const beta1, beta2, tau, rate = 0.9, 0.99, 1e-3, 0.01
	switch kind {
	case "fedavgm":
		o.v[k] = 0.9*o.v[k] + d
		return o.v[k]
	case "fedadam", "fedyogi":
		if o.v[k] == 0 {
			o.v[k] = tau * tau
		}
		o.m[k] = beta1*o.m[k] + (1-beta1)*d
		if kind == "fedadam" {
			o.v[k] = beta2*o.v[k] + (1-beta2)*d*d
		} else {
			o.v[k] -= (1 - beta2) * d * d * float64(sign(o.v[k]-d*d))
		}
		return rate * o.m[k] / (math.Sqrt(o.v[k]) + tau)
	}
	return d
}

func sign(v float64) int {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

func constant(rate float64) optim.Schedule { return optim.Constant(rate) }

// preset is the architecture of a name, with settings as the catalog reads them.
func preset(name string) federated.Architecture {
	a := federated.Default()
	switch name {
	case "fedprox":
		a.Proximal = 0.01
	case "fednova":
		a.Weights = periodic.Normalised
	case "scaffold":
		a.Controls, a.Weights = true, periodic.Equal
	case "fedavgm":
		a.Outer = optim.Momentum{Rate: constant(1), Momentum: 0.9}
	case "fedadam":
		a.Outer = optim.NewAdaptive(optim.SecondAdam, constant(0.01))
	case "fedyogi":
		a.Outer = optim.NewAdaptive(optim.SecondYogi, constant(0.01))
	}
	return a
}

// distance is the largest difference of two models, relative to 1 or the value.
func distance(a []float32, b []float64) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-b[i])/max(1, math.Abs(b[i])))
	}
	return most
}

func TestRoundsAreThoseOfPlainLoops(t *testing.T) {
	for _, name := range []string{"fedavg", "fedprox", "fednova", "scaffold", "fedavgm", "fedadam", "fedyogi"} {
		t.Run(name, func(t *testing.T) {
			s := &stage{task: newTask(40, 9, 17, 64, 25), arch: preset(name), rounds: 8}
			s.arch.Share, s.arch.Count, s.arch.Local = 0, 3, periodic.Work{Epochs: 2}
			models := s.run(t)
			o := newOracle(t, s.task)
			for r, model := range models {
				var drawn []int
				for _, node := range s.updates[r] {
					drawn = append(drawn, node-1)
				}
				if len(drawn) != 3 || !slices.IsSorted(drawn) {
					t.Fatalf("round %d has the updates of %v", r+1, drawn)
				}
				mu := s.arch.Proximal
				o.round(name, drawn, 2, 0.1, mu)
				if d := distance(model, o.phi); !(d < 1e-6) {
					t.Fatalf("round %d: the model is %v away from that of plain loops", r+1, d)
				}
			}
		})
	}
}
