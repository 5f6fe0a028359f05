package periodic_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/nn/optim"
	"pgregory.net/rapid"
)

func TestWorkIsStepsOrWholePassesThroughASample(t *testing.T) {
	for _, c := range []struct {
		work        periodic.Work
		pass, steps int
	}{
		{periodic.Work{Epochs: 1}, 6, 6}, {periodic.Work{Epochs: 2}, 7, 14},
		{periodic.Work{Epochs: 3}, 1, 3}, {periodic.Work{Steps: 5}, 100, 5},
	} {
		if got := c.work.Of(c.pass); got != c.steps {
			t.Errorf("%+v with %d steps a pass: %d steps, want %d", c.work, c.pass, got, c.steps)
		}
	}
	if (periodic.Work{Epochs: 1, Time: time.Second}).Validate() != nil || (periodic.Work{}).Validate() == nil {
		t.Error("an epoch in a second at most is work, and nothing is none")
	}
}

// By hand: three clients of 1, 1 and 2 samples; of steps 2, 4 and 4 the mean by samples is 3.5.
func TestCoefficientsAreThoseOfTheWeights(t *testing.T) {
	done := []periodic.Done{{Samples: 1, Steps: 2}, {Samples: 1, Steps: 4}, {Samples: 2, Steps: 4}}
	for _, c := range []struct {
		weights periodic.Weights
		want    [3]float64
	}{
		{periodic.Samples, [3]float64{0.25, 0.25, 0.5}},
		{periodic.Equal, [3]float64{1. / 3, 1. / 3, 1. / 3}},
		{periodic.Normalised, [3]float64{0.25 * 3.5 / 2, 0.25 * 3.5 / 4, 0.5 * 3.5 / 4}},
	} {
		for i, got := range periodic.Coefficients(c.weights, done) {
			if math.Abs(got-c.want[i]) > 1e-15 {
				t.Errorf("%s: coefficient %d is %v, want %v", c.weights, i, got, c.want[i])
			}
		}
	}
}

// With equal steps, whatever their number, FedNova has the very coefficients of FedAvg.
func TestEqualStepsAreNormalisedToWeightsBySamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.Float64Range(0.1, 1e6).Draw(t, "steps")
		var done []periodic.Done
		for range rapid.IntRange(1, 20).Draw(t, "clients") {
			done = append(done, periodic.Done{Samples: rapid.IntRange(1, 1e6).Draw(t, "samples"), Steps: steps})
		}
		want := periodic.Coefficients(periodic.Samples, done)
		for i, got := range periodic.Coefficients(periodic.Normalised, done) {
			if got != want[i] {
				t.Fatalf("coefficient %d is %v, want %v", i, got, want[i])
			}
		}
	})
}

// The closed forms of FedNova's section 3.2, and for Nesterov a sum of its geometric series.
func TestEffectiveStepsAreThePublishedForms(t *testing.T) {
	const rho, eta, mu = 0.9, 0.1, 0.3
	rate := optim.Constant(eta)
	for _, steps := range []int{1, 2, 7, 100} {
		k := float64(steps)
		momentum := (k - rho*(1-math.Pow(rho, k))/(1-rho)) / (1 - rho)
		nesterov := 0.0
		for j := 1; j <= steps; j++ {
			nesterov += (1 - math.Pow(rho, float64(steps-j+2))) / (1 - rho)
		}
		for _, c := range []struct {
			name   string
			method optim.Method
			mu     float64
			want   float64
		}{
			{"sgd", optim.SGD{Rate: rate}, 0, k},
			{"momentum", optim.Momentum{Rate: rate, Momentum: rho}, 0, momentum},
			{"nesterov", optim.Momentum{Rate: rate, Momentum: rho, Nesterov: true}, 0, nesterov},
			{"proximal", optim.SGD{Rate: rate}, mu, (1 - math.Pow(1-eta*mu, k)) / (eta * mu)},
			{"adam", optim.NewAdam(rate), mu, k},
		} {
			if got := periodic.EffectiveSteps(c.method, 0, steps, c.mu); math.Abs(got-c.want) > 1e-9*c.want {
				t.Errorf("%s, %d steps: %v, want %v", c.name, steps, got, c.want)
			}
		}
	}
}

// The rate is that of the round in all its steps, and a momentum is gone with the next round unless
// it is kept.
func TestInnerCountsRoundsAndForgetsOrKeeps(t *testing.T) {
	rate := optim.Inverse{First: 0.4, Half: 3}
	for _, fate := range []periodic.State{periodic.Fresh, periodic.Kept} {
		inner, err := periodic.NewInner(optim.Momentum{Rate: rate, Momentum: 0.5}, 1, fate)
		if err != nil {
			t.Fatal(err)
		}
		p, want, v := []float32{1}, 1.0, 0.0
		for _, round := range []int{0, 4, 9} {
			inner.Begin(round)
			if fate == periodic.Fresh {
				v = 0
			}
			for step := range 3 {
				g := float32(step) - 0.7
				inner.Step(p, p, []float32{g})
				v = 0.5*v + float64(g)
				want -= rate.Rate(round) * v
			}
		}
		if math.Abs(float64(p[0])-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", fate, p[0], want)
		}
	}
}

// DiLoCo's outer step is b ← μb + Δ̄; φ ← φ − η(Δ̄ + μb), with η 0.7 and μ 0.9.
func TestNesterovIsTheOuterStepOfDiLoCo(t *testing.T) {
	outer := optim.Momentum{Rate: optim.Constant(0.7), Momentum: 0.9, Nesterov: true}.New(1)
	phi, want, b := []float32{1}, 1.0, 0.0
	for _, delta := range []float64{0.5, -0.25, 1} {
		outer.Step(phi, phi, []float32{float32(delta)})
		b = 0.9*b + delta
		want -= 0.7 * (delta + 0.9*b)
		if math.Abs(float64(phi[0])-want) > 1e-6 {
			t.Errorf("%v, want %v", phi[0], want)
		}
	}
}

func TestPullAndCorrectionVanishWhereModelsAndControlsAreEqual(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 100
	gradient, want, model, correction := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		gradient[i], model[i] = float32(random.NormFloat64()), float32(random.NormFloat64())
	}
	copy(want, gradient)
	periodic.Pull(gradient, 0.7, model, model)
	periodic.Correction(correction, model, model)
	for i := range n {
		if gradient[i] != want[i] || correction[i] != 0 {
			t.Fatalf("gradient %v became %v, correction %v", want[i], gradient[i], correction[i])
		}
	}
	periodic.Pull(gradient, 2, []float32{3}, []float32{1})
	if math.Abs(float64(gradient[0]-want[0]-4)) > 1e-6 {
		t.Errorf("a pull by 2·(3 − 1) has changed %v to %v", want[0], gradient[0])
	}
}

func TestStalenessCountsByItsFormula(t *testing.T) {
	for _, c := range []struct {
		s    periodic.Staleness
		d    uint64
		want float64
	}{
		{periodic.Staleness{}, 1000, 1},
		{periodic.Staleness{Kind: periodic.Constant}, 9, 1},
		{periodic.Staleness{Kind: periodic.Polynomial}, 0, 1},
		{periodic.Staleness{Kind: periodic.Polynomial}, 3, 0.5},
		{periodic.Staleness{Kind: periodic.Polynomial, Power: 2}, 4, 0.04},
		{periodic.Staleness{Kind: periodic.Hinge}, 4, 1},
		{periodic.Staleness{Kind: periodic.Hinge}, 5, 1.0 / 11},
		{periodic.Staleness{Kind: periodic.Hinge, Slope: 0.5, After: 1}, 5, 1.0 / 3},
	} {
		if err := c.s.Validate(); c.s.Kind != "" && err != nil {
			t.Error(err)
		}
		if got := c.s.Factor(c.d); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("an update %d steps late counts %v by %+v, want %v", c.d, got, c.s, c.want)
		}
	}
	for _, s := range []periodic.Staleness{{Kind: "old"}, {Kind: periodic.Constant, Power: 1},
		{Kind: periodic.Polynomial, Slope: 1}, {Kind: periodic.Hinge, After: -1}} {
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}
