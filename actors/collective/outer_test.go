package collective_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

// outward is all-reduce of models with an outer optimizer.
func outward(algorithm collective.Algorithm, every int, outer optim.Method) collective.Architecture {
	return collective.Architecture{Algorithm: algorithm, Every: every, Reduce: collective.Models, Outer: outer}
}

func nesterov(rate, momentum float64) optim.Method {
	return optim.Momentum{Rate: optim.Constant(rate), Momentum: momentum, Nesterov: true}
}

// outer is the dumb second implementation: workers make their own steps, and a plain loop makes of
// the joint model what a formula says, of each parameter with the mean of its Δ and one number that
// it remembers.
func (l *loop) outer(rounds, every int, step func(phi, delta float64, memory *float64) float64) []float32 {
	n := len(l.task.Initial())
	phi, memory := make([]float64, n), make([]float64, n)
	for i, v := range l.task.Initial() {
		phi[i] = float64(v)
	}
	theta, joint := make([]float32, n), make([]float32, n)
	optimizers := make([]optim.Optimizer, len(l.samplers))
	for rank := range optimizers {
		optimizers[rank] = l.task.Method.New(n)
	}
	for round := range rounds {
		delta, total := make([]float64, n), 0.0
		for rank, optimizer := range optimizers {
			for i, v := range phi {
				theta[i] = float32(v)
			}
			samples := 0
			for i := range every {
				samples += l.add(rank, round*every+i)
				optimizer.Step(theta, theta, l.gradient(theta))
			}
			for i, v := range theta {
				delta[i] += float64(samples) * (phi[i] - float64(v))
			}
			total += float64(samples)
		}
		for i := range phi {
			phi[i] = step(phi[i], delta[i]/total, &memory[i])
		}
	}
	for i, v := range phi {
		joint[i] = float32(v)
	}
	return joint
}

func TestOuterStepsEqualTheirFormulas(t *testing.T) {
	const every, rounds, gamma = 4, 8, 0.1
	for _, c := range []struct {
		name    string
		inner   optim.Method
		outer   optim.Method
		formula func(phi, delta float64, memory *float64) float64
	}{
		{"DiLoCo", optim.NewAdam(optim.Constant(0.01)), nesterov(0.7, 0.9),
			func(phi, delta float64, b *float64) float64 {
				*b = 0.9**b + delta
				return phi - 0.7*(delta+0.9**b)
			}},
		{"SlowMo", sgd(gamma), optim.Momentum{Rate: optim.Constant(0.8), Momentum: 0.6},
			func(phi, delta float64, u *float64) float64 {
				*u = 0.6**u + delta/gamma
				return phi - 0.8*gamma**u
			}},
		{"plain descent", momentum(0.02), sgd(1.5),
			func(phi, delta float64, _ *float64) float64 { return phi - 1.5*delta }},
	} {
		task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, c.inner)
		want := newLoop(t, task).outer(rounds, every, c.formula)
		for _, algorithm := range algorithms {
			s := trial{task: task, rounds: rounds, strict: true, architecture: outward(algorithm, every, c.outer)}
			t.Run(c.name, func(t *testing.T) { compare(t, s.run(t), want, 1e-6) })
		}
	}
}

func TestOuterStepsAllocateNothing(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), []int{64, 64, 64, 64, 64}, 16, sgd(0.01))
	streaming := outward(collective.Ring, 4, nesterov(0.7, 0.9))
	streaming.Fragments, streaming.Overlap, streaming.Mix = 2, 1, 0.5
	for _, a := range []collective.Architecture{outward(collective.Ring, 1, nesterov(0.7, 0.9)), streaming} {
		m := &meter{from: 200, to: 400}
		s := trial{task: task, rounds: 400, observer: m, edge: link.Constant{}, architecture: a}
		if s.run(t); m.each() > 1 {
			t.Errorf("%+v: %.2f allocations a step of 5 ranks, want less than 1", a, m.each())
		}
	}
}

// With codes that lose nothing the mean of codes is the mean.
func TestOuterStepsTakeCodesOfDifferences(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), []int{64, 64, 64}, 16, momentum(0.02))
	s := trial{task: task, rounds: 8, architecture: outward(collective.AllToAll, 3, nesterov(0.7, 0.9))}
	want := s.run(t)
	for _, f := range everyFeedback {
		s.architecture.Compress, s.architecture.Feedback = compress.Chain{compress.TopK{Share: 1}}, f
		compare(t, s.run(t), want[0], 1e-5)
	}
}

func TestOuterDescentOfRateOneIsTheMean(t *testing.T) {
	task := simtest.Task(simtest.Perceptron(20, 15, 4), uneven, 16, momentum(0.02))
	plain := trial{task: task, rounds: 6, architecture: outward(collective.Ring, 3, nil)}
	want := plain.run(t)
	for _, outer := range []optim.Method{sgd(1), optim.Momentum{Rate: optim.Constant(1)}, nesterov(1, 0)} {
		s := trial{task: task, rounds: 6, architecture: outward(collective.Ring, 3, outer)}
		if got := s.run(t); !slices.Equal(got[0], want[0]) || s.result.Digest != plain.result.Digest {
			t.Errorf("%+v: another model than the mean, or another run", outer)
		}
	}
	// The same sums in another order of arithmetic.
	almost := trial{task: task, rounds: 6, architecture: outward(collective.Ring, 3, sgd(1-1e-12))}
	compare(t, almost.run(t), want[0], 1e-6)
}

// Who joins gets the outer momentum too: the oracle has one for all.
func TestRoundsWithAnOuterOptimizerAreBySomeViewAloneWhateverHappens(t *testing.T) {
	t.Parallel()
	runs := 60
	if simtest.Brief() {
		runs = 20
	}
	for run := range runs {
		random := rand.New(rand.NewPCG(uint64(run), 6))
		n := 2 + random.IntN(4)
		c := churn{
			task: churnTask(n, sgd(0.2)), schedule: shuffle(random, n), end: 500 * time.Millisecond,
			strict: run%3 == 0, posted: run%2 == 1,
			architecture: outward(algorithms[run%len(algorithms)], 2, nesterov(0.7, 0.9)),
		}
		if run%2 == 0 {
			c.absent = []int{1 + random.IntN(n-1)}
		}
		c.run(t)
		c.explain(t)
	}
}

func TestAnOuterOptimizerWithoutWorkIsRefused(t *testing.T) {
	for want, change := range map[string]func(a *collective.Architecture){
		"left out with reduce: gradients": func(a *collective.Architecture) { a.Reduce = collective.Gradients },
		"left out with moved":             func(a *collective.Architecture) { a.Moved = 0.5 },
	} {
		a := outward(collective.Ring, 2, nesterov(0.7, 0.9))
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
		if change(&a); a.Validate() == nil || !strings.Contains(a.Validate().Error(), want) {
			t.Errorf("error %v, want %q", a.Validate(), want)
		}
	}
}
