package nn_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

func newLinear(tb testing.TB, inputs int, loss nn.MarginLoss) *nn.Linear {
	tb.Helper()
	m, err := nn.NewLinear(inputs, loss)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// drawnLinear starts from random parameters, so that tests have some.
type drawnLinear struct{ *nn.Linear }

func (m drawnLinear) Init(params []float32, r *rand.Rand) {
	for i := range params {
		params[i] = float32(r.NormFloat64())
	}
}

// follow makes 400 steps of one sample each, and compares the model with what a rule makes of
// weights in float64, the last of which is of an input that is always 1.
func follow(t *testing.T, m *nn.Linear, o optim.Optimizer, rule func(t, y, z float64, w, x []float64)) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	params, grad, w := make([]float32, m.Params()), make([]float32, m.Params()), m.NewWorkspace(1)
	m.Init(params, r)
	want, met := make([]float64, m.Params()), 0
	for step := range 400 {
		x, class := make([]float32, m.Inputs()), int32(r.IntN(2))
		wide := []float64{}
		for i := range x {
			x[i] = float32(r.NormFloat64() + float64(class) - 0.5)
			wide = append(wide, float64(x[i]))
		}
		wide = append(wide, 1)
		z := 0.0
		for i, v := range wide {
			z += want[i] * v
		}
		if y := float64(2*class - 1); y*z > 1 {
			met++
		}
		rule(float64(step+1), float64(2*class-1), z, want, wide)
		w.Gradient(params, grad, nn.Batch{X: x, Y: []int32{class}})
		o.Step(params, params, grad)
		if d := distance(params, want); d > 1e-4 {
			t.Fatalf("step %d: relative distance %v from the rule", step+1, d)
		}
	}
	if met < 50 || met > 350 {
		t.Errorf("the margin is met in %d of 400 steps", met)
	}
}

// The rule of S. Shalev-Shwartz et al. 2011: t ← t+1, η ← 1/(λt), w ← (1−ηλ)w, and + ηyx if y·w·x
// < 1.
func TestHingeWithDecayMakesTheStepsOfPegasos(t *testing.T) {
	const lambda = 0.01
	method := optim.SGD{Rate: optim.Inverse{First: 1 / lambda, Half: 1}, WeightDecay: lambda}
	follow(t, newLinear(t, 5, nn.Hinge), method.New(6), func(t, y, z float64, w, x []float64) {
		eta := 1 / (lambda * t)
		for i := range w {
			w[i] *= 1 - eta*lambda
			if y*z < 1 {
				w[i] += eta * y * x[i]
			}
		}
	})
}

func TestSquaredMakesTheStepsOfAdaline(t *testing.T) {
	const eta = 0.05
	follow(t, newLinear(t, 5, nn.Squared), optim.SGD{Rate: optim.Constant(eta)}.New(6),
		func(_, y, z float64, w, x []float64) {
			for i := range w {
				w[i] += eta * (y - z) * x[i]
			}
		})
}

// By finite differences, of a weighted batch.
func TestLinearGradientIsThatOfItsLoss(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, loss := range []nn.MarginLoss{nn.Hinge, nn.Squared} {
		m := drawnLinear{newLinear(t, 7, loss)}
		params, grad := make([]float32, 8), make([]float32, 8)
		m.Init(params, r)
		b := denseBatch(r, m, 40)
		b.Weights = []float32{1, 3}
		w := m.NewWorkspace(40)
		w.Gradient(params, grad, b)
		for i := range params {
			const h = 1.0 / 1024
			moved := append([]float32(nil), params...)
			other := make([]float32, 8)
			moved[i] += h
			up := w.Gradient(moved, other, b)
			moved[i] -= 2 * h
			down := w.Gradient(moved, other, b)
			if got := (up - down) / (2 * h); math.Abs(got-float64(grad[i])) > 2e-2 {
				t.Errorf("loss %d, parameter %d: slope %v, gradient %v", loss, i, got, grad[i])
			}
		}
	}
}

func TestLinearJudgesByTheSignAndLosesByTheMargin(t *testing.T) {
	b := nn.Batch{X: []float32{2, 0.5, -1, 0}, Y: []int32{1, 1, 1, 0}} // margins 2, 0.5, −1, 0
	for loss, want := range map[nn.MarginLoss]float64{nn.Hinge: 0 + 0.5 + 2 + 1, nn.Squared: 0.5 + 0.125 + 2 + 0.5} {
		m := newLinear(t, 1, loss)
		got, correct := m.NewWorkspace(1).Evaluate([]float32{1, 0}, b)
		if got != want || correct != 3 {
			t.Errorf("loss %d: %v with %d correct, want %v with 3", loss, got, correct, want)
		}
	}
}

func TestLinearRefusesWhatMakesNoSense(t *testing.T) {
	if _, err := nn.ParseMarginLoss("log"); err == nil || !strings.Contains(err.Error(), "hinge, squared") {
		t.Error(err)
	}
	if loss, err := nn.ParseMarginLoss("squared"); loss != nn.Squared || err != nil {
		t.Error(loss, err)
	}
	for _, inputs := range []int{-1, 0, nn.MaxParams} {
		if _, err := nn.NewLinear(inputs, nn.Hinge); err == nil {
			t.Errorf("%d inputs are accepted", inputs)
		}
	}
	if _, err := nn.NewLinear(3, 0); err == nil {
		t.Error("no loss is accepted")
	}
}

func TestLinearAllocatesNothing(t *testing.T) {
	m := newLinear(t, 57, nn.Hinge)
	params, b := start(1, m, 70)
	w, s, grad, logits := m.NewWorkspace(70), m.Samples(b.X, b.Y, nil), make([]float32, 58), make([]float32, 140)
	if n := testing.AllocsPerRun(3, func() {
		w.Gradient(params, grad, b)
		w.Logits(params, s, 0, 70, logits)
		s.Score(logits)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
