package optim_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"pgregory.net/rapid"
)

// reference is PyTorch's published pseudocode of SGD and Adam in float64, one parameter at a time.
type reference func(t int, rate float64, p, g []float64, slots [2][]float64)

func referenceSGD(mu, decay float64, nesterov bool) reference {
	return func(t int, rate float64, p, g []float64, slots [2][]float64) {
		for i := range p {
			gi := g[i] + decay*p[i]
			if mu != 0 {
				if t > 1 {
					slots[0][i] = mu*slots[0][i] + gi
				} else {
					slots[0][i] = gi
				}
				if nesterov {
					gi += mu * slots[0][i]
				} else {
					gi = slots[0][i]
				}
			}
			p[i] -= rate * gi
		}
	}
}

func referenceAdam(beta1, beta2, epsilon, decay float64) reference {
	return func(t int, rate float64, p, g []float64, slots [2][]float64) {
		for i := range p {
			gi := g[i] + decay*p[i]
			slots[0][i] = beta1*slots[0][i] + (1-beta1)*gi
			slots[1][i] = beta2*slots[1][i] + (1-beta2)*gi*gi
			m := slots[0][i] / (1 - math.Pow(beta1, float64(t)))
			v := slots[1][i] / (1 - math.Pow(beta2, float64(t)))
			p[i] -= rate * m / (math.Sqrt(v) + epsilon)
		}
	}
}

// referenceAdaptive is algorithm 2 of "Adaptive Federated Optimization", whose v begins at τ².
func referenceAdaptive(second optim.Second, beta1, beta2, tau float64) reference {
	return func(t int, rate float64, p, g []float64, slots [2][]float64) {
		m, v := slots[0], slots[1]
		for i := range p {
			if t == 1 {
				v[i] = tau * tau
			}
			square := g[i] * g[i]
			m[i] = beta1*m[i] + (1-beta1)*g[i]
			switch second {
			case optim.SecondAdagrad:
				v[i] += square
			case optim.SecondYogi:
				if d := v[i] - square; d != 0 {
					v[i] -= (1 - beta2) * square * d / math.Abs(d)
				}
			case optim.SecondAdam:
				v[i] = beta2*v[i] + (1-beta2)*square
			}
			p[i] += rate * -m[i] / (math.Sqrt(v[i]) + tau)
		}
	}
}

type method struct {
	name      string
	method    optim.Method
	reference reference
}

func methods(rate optim.Schedule) []method {
	return []method{
		{"sgd", optim.SGD{Rate: rate}, referenceSGD(0, 0, false)},
		{"sgd decay", optim.SGD{Rate: rate, WeightDecay: 0.03}, referenceSGD(0, 0.03, false)},
		{"momentum", optim.Momentum{Rate: rate, Momentum: 0.9}, referenceSGD(0.9, 0, false)},
		{"momentum decay", optim.Momentum{Rate: rate, Momentum: 0.7, WeightDecay: 0.03},
			referenceSGD(0.7, 0.03, false)},
		{"nesterov", optim.Momentum{Rate: rate, Momentum: 0.9, Nesterov: true, WeightDecay: 0.03},
			referenceSGD(0.9, 0.03, true)},
		{"adam", optim.NewAdam(rate), referenceAdam(0.9, 0.999, 1e-8, 0)},
		{"adam decay", optim.Adam{Rate: rate, Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-6, WeightDecay: 0.03},
			referenceAdam(0.8, 0.95, 1e-6, 0.03)},
		{"adaptive adam", optim.NewAdaptive(optim.SecondAdam, rate),
			referenceAdaptive(optim.SecondAdam, 0.9, 0.99, 1e-3)},
		{"yogi", optim.NewAdaptive(optim.SecondYogi, rate), referenceAdaptive(optim.SecondYogi, 0.9, 0.99, 1e-3)},
		{"adagrad", optim.Adaptive{Rate: rate, Second: optim.SecondAdagrad, Tau: 0.1},
			referenceAdaptive(optim.SecondAdagrad, 0, 0, 0.1)},
	}
}

func normal(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i := range v {
		w[i] = float64(v[i])
	}
	return w
}

func TestStepsFollowPublishedFormulas(t *testing.T) {
	rate := optim.Inverse{First: 0.05, Half: 7}
	for _, m := range methods(rate) {
		t.Run(m.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n := rapid.IntRange(0, 40).Draw(t, "n")
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				o, p := m.method.New(n), normal(r, n)
				want, slots := widen(p), [2][]float64{make([]float64, n), make([]float64, n)}
				for step := range 12 {
					g := normal(r, n)
					o.Step(p, p, g)
					m.reference(step+1, rate.Rate(step), want, widen(g), slots)
					for i := range p {
						if d := math.Abs(float64(p[i]) - want[i]); d > 2e-5*(1+math.Abs(want[i])) {
							t.Fatalf("step %d, parameter %d: %v, formula gives %v", step, i, p[i], want[i])
						}
					}
				}
			})
		})
	}
}

func TestRestoredStateContinuesWithTheSameBits(t *testing.T) {
	for _, m := range methods(optim.Warmup{Steps: 5, Then: optim.Cosine{First: 0.1, Last: 0.01, Steps: 9}}) {
		t.Run(m.name, func(t *testing.T) {
			const n = 33
			r := rand.New(rand.NewPCG(3, 4))
			p, o := normal(r, n), m.method.New(n)
			for range 4 {
				o.Step(p, p, normal(r, n))
			}
			saved, q, other := o.State(), append([]float32(nil), p...), m.method.New(n)
			before := cmp.Diff(saved, o.State())
			if err := other.Restore(saved); err != nil {
				t.Fatal(err)
			}
			for range 6 {
				g := normal(r, n)
				o.Step(p, p, g)
				other.Step(q, q, g)
			}
			if diff := cmp.Diff(p, q); diff != "" {
				t.Errorf("parameters differ after restoring:\n%s", diff)
			}
			if diff := cmp.Diff(o.State(), other.State()); diff != "" {
				t.Errorf("states differ after restoring:\n%s", diff)
			}
			if saved.Step != 4 || before != "" {
				t.Errorf("saved state has step %d (want 4), difference to a second copy: %s", saved.Step, before)
			}
			if err := other.Restore(saved); err != nil || cmp.Diff(saved, other.State()) != "" {
				t.Errorf("a saved state changed while the optimizer went on (%v)", err)
			}
		})
	}
}

// Who goes on at a step of a training whose gradients it has not seen has the rate of that step,
// and corrects the bias of what it remembers from its own first update on.
func TestBiasCorrectionCountsTheUpdatesThatTheStateHasSeen(t *testing.T) {
	rate := optim.Inverse{First: 0.05, Half: 700}
	for _, m := range methods(rate) {
		for _, seen := range []int{0, 3} {
			const n, later = 20, 1000
			r := rand.New(rand.NewPCG(7, uint64(seen)))
			o, p := m.method.New(n), normal(r, n)
			want, slots := widen(p), [2][]float64{make([]float64, n), make([]float64, n)}
			for update := range 8 {
				if update == seen {
					state := o.State()
					state.Step = later
					if err := o.Restore(state); err != nil {
						t.Fatal(err)
					}
				}
				step := update
				if update >= seen {
					step += later - seen
				}
				g := normal(r, n)
				o.Step(p, p, g)
				m.reference(update+1, rate.Rate(step), want, widen(g), slots)
			}
			for i := range p {
				if d := math.Abs(float64(p[i]) - want[i]); d > 2e-5*(1+math.Abs(want[i])) {
					t.Errorf("%s that goes on at step %d after %d updates: parameter %d is %v, formula gives %v",
						m.name, later, seen, i, p[i], want[i])
					break
				}
			}
		}
	}
}

func TestRestoreRefusesAnotherShape(t *testing.T) {
	o := optim.NewAdam(optim.Constant(0.1)).New(3)
	o.Step([]float32{1, 2, 3}, []float32{1, 2, 3}, []float32{1, 1, 1})
	before := o.State()
	for _, c := range []struct {
		state optim.State
		want  string
	}{
		{optim.State{Step: -1, Slots: before.Slots}, "optimizer state: step -1 is negative"},
		{optim.State{Updates: -1, Slots: before.Slots}, "optimizer state: a count of -1 updates is negative"},
		{optim.State{Step: 2, Slots: before.Slots[:1]}, "optimizer state: 1 slots where the method has 2"},
		{optim.State{Step: 2, Slots: [][]float32{{1, 2, 3}, {1, 2}}},
			"optimizer state: slot 1 has 2 elements for 3 parameters"},
	} {
		err := o.Restore(c.state)
		if err == nil || err.Error() != c.want {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
	if diff := cmp.Diff(before, o.State()); diff != "" {
		t.Errorf("a refused state left traces:\n%s", diff)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	schedules := optim.Warmup{Steps: 3, Then: optim.Step{First: 0.1, Factor: 0.5, Every: 10}}
	for _, m := range methods(schedules) {
		o, p, g := m.method.New(50), make([]float32, 50), make([]float32, 50)
		if n := testing.AllocsPerRun(20, func() { o.Step(p, p, g) }); n != 0 {
			t.Errorf("%s: %v allocations a step", m.name, n)
		}
	}
}

func TestForgottenGradientsLeaveNoSubnormals(t *testing.T) {
	for _, m := range methods(optim.Constant(0)) {
		o, p := m.method.New(1), []float32{0}
		o.Step(p, p, []float32{1e-30})
		for range 2000 {
			o.Step(p, p, []float32{0})
		}
		for i, slot := range o.State().Slots {
			if v := slot[0]; v != 0 && math.Abs(float64(v)) < 0x1p-126 {
				t.Errorf("%s: slot %d is left with %v", m.name, i, v)
			}
		}
	}
}

func TestWorkCountsOperations(t *testing.T) {
	want := []float64{2, 4, 4, 6, 8, 13, 15, 14, 14, 14}
	for i, m := range methods(optim.Constant(1)) {
		if got := m.method.New(0).Work(1000); got != 1000*want[i] {
			t.Errorf("%s: %v operations, want %v", m.name, got, 1000*want[i])
		}
	}
}

func TestUpdateElsewhereHasTheBitsOfOneInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 7, 2047, 2048, 2049, 10_000} {
		for _, m := range methods(optim.Constant(0.01)) {
			place, elsewhere := m.method.New(n), m.method.New(n)
			p := normal(r, n)
			old := slices.Clone(p)
			for range 5 {
				g := normal(r, n)
				before, after := slices.Clone(old), make([]float32, n)
				place.Step(p, p, g)
				elsewhere.Step(after, old, g)
				if !slices.Equal(old, before) {
					t.Errorf("%s: a step elsewhere changes %d parameters", m.name, n)
				}
				if !slices.Equal(after, p) {
					t.Errorf("%s: a step elsewhere of %d parameters differs from one in place", m.name, n)
				}
				old = after
			}
		}
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	for _, m := range methods(optim.Constant(1)) {
		for _, lengths := range [][3]int{{2, 3, 3}, {3, 2, 3}, {3, 3, 2}, {0, 0, 0}} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: lengths %v were accepted for 3 parameters", m.name, lengths)
					}
				}()
				dst, params := make([]float32, lengths[0]), make([]float32, lengths[1])
				m.method.New(3).Step(dst, params, make([]float32, lengths[2]))
			}()
		}
	}
}

// pytorchTraining is what PyTorch made of a model with several methods.
type pytorchTraining struct {
	Layers     []int
	Activation string
	X, Params  []float32
	Y          []int32
	Methods    []struct {
		Method string
		Losses []float64
		Params []float32
	}
}

func readPyTorchTraining(t *testing.T) pytorchTraining {
	t.Helper()
	text, err := os.ReadFile("../testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct{ Training pytorchTraining }
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	return expected.Training
}

// TestTrainingFollowsPyTorch trains a small network for five steps and compares it with the figures
// of testdata/expected.py.
func TestTrainingFollowsPyTorch(t *testing.T) {
	c := readPyTorchTraining(t)
	activation, err := nn.ParseActivation(c.Activation)
	if err != nil {
		t.Fatal(err)
	}
	model, err := nn.NewMLP(c.Layers, activation)
	if err != nil {
		t.Fatal(err)
	}
	rate := optim.Constant(0.1)
	methods := map[string]optim.Method{
		"sgd":               optim.SGD{Rate: rate},
		"sgd, weight decay": optim.SGD{Rate: rate, WeightDecay: 0.02},
		"momentum":          optim.Momentum{Rate: rate, Momentum: 0.9, WeightDecay: 0.02},
		"nesterov":          optim.Momentum{Rate: rate, Momentum: 0.9, Nesterov: true, WeightDecay: 0.02},
		"adam":              optim.NewAdam(optim.Constant(0.01)),
		"adam, weight decay": optim.Adam{Rate: optim.Constant(0.01), Beta1: 0.8, Beta2: 0.95, Epsilon: 1e-6,
			WeightDecay: 0.02},
	}
	if len(c.Methods) != len(methods) {
		t.Fatalf("%d methods expected, %d known", len(c.Methods), len(methods))
	}
	for _, want := range c.Methods {
		t.Run(want.Method, func(t *testing.T) {
			b := nn.Batch{X: c.X, Y: c.Y}
			w, o := model.NewWorkspace(len(b.Y)), methods[want.Method].New(model.Params())
			params, grad := append([]float32(nil), c.Params...), make([]float32, model.Params())
			for step, loss := range want.Losses {
				if got := w.Gradient(params, grad, b); math.Abs(got-loss) > 2e-6 {
					t.Errorf("step %d: loss %v, PyTorch has %v", step, got, loss)
				}
				o.Step(params, params, grad)
			}
			for i, p := range want.Params {
				if math.Abs(float64(params[i]-p)) > 3e-6 {
					t.Errorf("parameter %d: %v, PyTorch has %v", i, params[i], p)
				}
			}
		})
	}
}

func BenchmarkStep(b *testing.B) {
	for _, m := range methods(optim.Constant(0.01)) {
		b.Run(m.name+"/n=2084", func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			o, p := m.method.New(2084), normal(r, 2084)
			gradients := [8][]float32{}
			for i := range gradients {
				gradients[i] = normal(r, 2084)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				o.Step(p, p, gradients[i%len(gradients)])
				i++
			}
		})
	}
}
