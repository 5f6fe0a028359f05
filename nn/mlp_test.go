package nn_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/nn"
)

// near tells whether a float32 result agrees with a float64 one at the given scale.
func near(got float32, want, scale float64) bool {
	return math.Abs(float64(got)-want) <= 2e-5*(scale+math.Abs(want))
}

// thin sets elements of x to zero so that about the given share remains.
func thin(r *rand.Rand, x []float32, share float64) {
	for i := range x {
		if r.Float64() >= share {
			x[i] = 0
		}
	}
}

func TestGradientAgreesWithSecondImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		activation := rapid.SampledFrom([]nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid}).Draw(t, "activation")
		hidden := rapid.SliceOfN(rapid.IntRange(1, 40), 0, 3).Draw(t, "hidden")
		layers := append(append([]int{rapid.IntRange(1, 40).Draw(t, "inputs")}, hidden...),
			rapid.IntRange(2, 40).Draw(t, "classes"))
		compare(t, activation, layers, rapid.IntRange(1, 20).Draw(t, "batch"),
			rapid.Float64Range(0, 1).Draw(t, "share"), rapid.Uint64().Draw(t, "seed"))
	})
}

func TestLargeShapesAgreeWithSecondImplementation(t *testing.T) {
	for _, layers := range [][]int{{200, 3}, {3, 200}, {70, 210, 5}, {30, 70, 65, 130}} {
		for _, n := range []int{65, 300} {
			compare(t, nn.Tanh, layers, n, 0.5, 7)
		}
	}
}

// compare holds Gradient and Evaluate on a random batch against the second implementation.
func compare(t interface {
	Helper()
	Fatalf(string, ...any)
	Fatal(...any)
}, activation nn.Activation, layers []int, n int, share float64, seed uint64) {
	t.Helper()
	m, err := nn.NewMLP(layers, activation)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	params, grad := make([]float32, m.Params()), make([]float32, m.Params())
	m.Init(params, r)
	b := denseBatch(r, m, n)
	thin(r, b.X, share)
	for i := range grad {
		grad[i] = float32(math.NaN()) // shows whether grad is overwritten
	}
	w := m.NewWorkspace(n)
	loss := w.Gradient(params, grad, b)
	want, wantGrad, wantCorrect := reference{layers, activation}.gradient(params, b)
	if math.Abs(loss-want) > 1e-5*(1+want) {
		t.Fatalf("%v %v: loss %v, want %v", layers, activation, loss, want)
	}
	for i := range grad {
		if !near(grad[i], wantGrad[i], 0.1) {
			t.Fatalf("%v %v: grad[%d] = %v, want %v", layers, activation, i, grad[i], wantGrad[i])
		}
	}
	sum, correct := w.Evaluate(params, b)
	if sum/float64(n) != loss {
		t.Fatalf("%v %v: Evaluate's mean loss is %v, Gradient's %v", layers, activation, sum/float64(n), loss)
	}
	if d := correct - wantCorrect; d < -1 || d > 1 { // logits may tie in float32
		t.Fatalf("%v %v: %d correct, want %d", layers, activation, correct, wantCorrect)
	}
}

func TestGradientIsTheSlopeOfTheLoss(t *testing.T) {
	for _, activation := range []nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid} {
		for _, layers := range [][]int{{5, 3}, {5, 7, 3}, {4, 9, 5, 2}, {3, 5, 6, 4, 11}} {
			m := newMLP(t, activation, layers...)
			r := rand.New(rand.NewPCG(14, uint64(len(layers))))
			params, grad, other := make([]float32, m.Params()), make([]float32, m.Params()), make([]float32, m.Params())
			m.Init(params, r)
			b := denseBatch(r, m, 9)
			w := m.NewWorkspace(9)
			w.Gradient(params, grad, b)
			const h = 1. / 512
			for i, p := range params {
				params[i] = p + h
				up := w.Gradient(params, other, b)
				params[i] = p - h
				down := w.Gradient(params, other, b)
				params[i] = p
				// The error of the central difference is float32's rounding over h, and a kink of
				// ReLU within h.
				if slope := (up - down) / (2 * h); math.Abs(slope-float64(grad[i])) > 2e-3 {
					t.Errorf("%v %v: slope along parameter %d is %v, gradient %v", activation, layers, i, slope,
						grad[i])
				}
			}
		}
	}
}

func TestUniformLogitsCostTheLogarithmOfTheClasses(t *testing.T) {
	for _, classes := range []int{2, 5, 10, 33} {
		m := newMLP(t, nn.ReLU, 7, 4, classes)
		b := denseBatch(rand.New(rand.NewPCG(1, 1)), m, 6)
		loss := m.NewWorkspace(6).Gradient(make([]float32, m.Params()), make([]float32, m.Params()), b)
		if want := math.Log(float64(classes)); math.Abs(loss-want) > 1e-14 {
			t.Errorf("%d classes: loss %v, want %v", classes, loss, want)
		}
	}
}

func TestFirstMaximumIsThePrediction(t *testing.T) {
	m := newMLP(t, nn.ReLU, 1, 4)
	params := make([]float32, m.Params()) // all logits are 0
	b := nn.Batch{X: []float32{1, 1, 1, 1}, Y: []int32{0, 1, 2, 3}}
	if _, correct := m.NewWorkspace(4).Evaluate(params, b); correct != 1 {
		t.Errorf("%d correct, want class 0 alone", correct)
	}
	copy(params[4:], []float32{1, 2, 3, 3}) // biases
	b.Y = []int32{2, 2, 3, 0}
	if _, correct := m.NewWorkspace(4).Evaluate(params, b); correct != 2 {
		t.Errorf("%d correct, want the 2 of class 2", correct)
	}
}

func TestExtremeLogitsStayFinite(t *testing.T) {
	m := newMLP(t, nn.ReLU, 1, 3)
	params, grad := []float32{0, 0, 0, 1e4, -1e4, 0}, make([]float32, 6)
	for class, want := range []float64{0, 2e4, 1e4} {
		loss := m.NewWorkspace(1).Gradient(params, grad, nn.Batch{X: []float32{1}, Y: []int32{int32(class)}})
		if loss != want {
			t.Errorf("class %d: loss %v, want %v", class, loss, want)
		}
		for i, g := range grad {
			if g != g || g < -1 || g > 1 {
				t.Errorf("class %d: grad[%d] = %v", class, i, g)
			}
		}
	}
}

func TestNaNIsNeitherHiddenNorCorrect(t *testing.T) {
	for _, activation := range []nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid} {
		m := newMLP(t, activation, 2, 3, 2)
		for i := range m.Params() {
			params := make([]float32, m.Params())
			for j := range params {
				params[j] = 0.1 // no unit is at 0, where its weights would not count
			}
			params[i] = float32(math.Copysign(math.NaN(), -1))
			b := nn.Batch{X: []float32{1, 2, 3, 4}, Y: []int32{0, 1}}
			loss, correct := m.NewWorkspace(2).Evaluate(params, b)
			if loss == loss || correct != 0 {
				t.Errorf("%v: with NaN in parameter %d the loss is %v and %d are correct", activation, i, loss, correct)
			}
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	for _, layers := range [][]int{{93, 21, 5}, {93, 5}, {784, 128, 10}, {20, 300, 3}} {
		m := newMLP(t, nn.ReLU, layers...)
		r := rand.New(rand.NewPCG(1, 2))
		params, grad := make([]float32, m.Params()), make([]float32, m.Params())
		m.Init(params, r)
		b, w := denseBatch(r, m, 70), m.NewWorkspace(70)
		if n := testing.AllocsPerRun(3, func() { w.Gradient(params, grad, b) }); n != 0 {
			t.Errorf("%v: %v allocations a Gradient", layers, n)
		}
		if n := testing.AllocsPerRun(3, func() { w.Evaluate(params, b) }); n != 0 {
			t.Errorf("%v: %v allocations an Evaluate", layers, n)
		}
	}
}

func TestBitsDependNeitherOnProcessorsNorOnWorkspace(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, layers := range [][]int{{93, 21, 5}, {40, 200, 70, 3}} {
		m := newMLP(t, nn.Tanh, layers...)
		r := rand.New(rand.NewPCG(1, 2))
		params := make([]float32, m.Params())
		m.Init(params, r)
		b := denseBatch(r, m, 300)
		var first string
		for _, procs := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(procs)
			for _, maxBatch := range []int{300, 1000} {
				grad := make([]float32, m.Params())
				loss := m.NewWorkspace(maxBatch).Gradient(params, grad, b)
				for _, chunk := range []int{1, 3, 64, 299, 300} {
					sum, correct := m.NewWorkspace(chunk).Evaluate(params, b)
					if s := fmt.Sprint(loss, sum, correct, bits(grad)); first == "" {
						first = s
					} else if s != first {
						t.Fatalf("%v: other bits with GOMAXPROCS %d, maxBatch %d, chunk %d", layers, procs, maxBatch,
							chunk)
					}
				}
			}
		}
	}
}

func TestGradientOfOneTileHasTheSameBitsInALargeWorkspace(t *testing.T) {
	m := newMLP(t, nn.ReLU, 93, 21, 5)
	r := rand.New(rand.NewPCG(1, 2))
	params, small, large := make([]float32, m.Params()), make([]float32, m.Params()), make([]float32, m.Params())
	m.Init(params, r)
	b := denseBatch(r, m, 200)
	first, second := m.NewWorkspace(200).Gradient(params, small, b), m.NewWorkspace(1000).Gradient(params, large, b)
	if first != second || !slices.Equal(bits(small), bits(large)) {
		t.Error("the workspace's size changes bits")
	}
}

func bits(v []float32) []uint32 {
	b := make([]uint32, len(v))
	for i, x := range v {
		b[i] = math.Float32bits(x)
	}
	return b
}

func TestInitIsUniformWithinTheBound(t *testing.T) {
	m := newMLP(t, nn.ReLU, 100, 400, 25)
	params := make([]float32, m.Params())
	m.Init(params, rand.New(rand.NewPCG(1, 2)))
	again := make([]float32, m.Params())
	m.Init(again, rand.New(rand.NewPCG(1, 2)))
	if !slices.Equal(params, again) {
		t.Error("the same seed gives other parameters")
	}
	ts := m.Tensors()
	for i, bound := range []float64{0.1, 0.1, 0.05, 0.05} {
		n := ts[i].Shape[0]
		for _, d := range ts[i].Shape[1:] {
			n *= d
		}
		var sum, squares float64
		for _, p := range params[ts[i].Offset : ts[i].Offset+n] {
			v := float64(p) / bound
			if v < -1.000001 || v > 1.000001 {
				t.Fatalf("%s: %v is beyond ±%v", ts[i].Name, p, bound)
			}
			sum, squares = sum+v, squares+v*v
		}
		deviation := 5 / math.Sqrt(float64(n))
		if math.Abs(sum/float64(n)) > deviation || math.Abs(squares/float64(n)-1./3) > deviation {
			t.Errorf("%s: mean %v and mean square %v of the bound, want 0 and 1/3", ts[i].Name, sum/float64(n),
				squares/float64(n))
		}
	}
}

func TestTensorsCoverTheVector(t *testing.T) {
	want := []nn.Tensor{
		{Name: "layer1.weight", Shape: []int{21, 93}, Offset: 0}, {Name: "layer1.bias", Shape: []int{21}, Offset: 1953},
		{Name: "layer2.weight", Shape: []int{5, 21}, Offset: 1974},
		{Name: "layer2.bias", Shape: []int{5}, Offset: 2079},
	}
	m := newMLP(t, nn.ReLU, 93, 21, 5)
	if diff := cmp.Diff(want, m.Tensors()); diff != "" {
		t.Error(diff)
	}
	if m.Params() != 2084 || m.Inputs() != 93 || m.Classes() != 5 {
		t.Errorf("%d parameters, %d inputs, %d classes", m.Params(), m.Inputs(), m.Classes())
	}
	if want := 10 * (4*93*21. + 6*21*5); m.Work(10) != want {
		t.Errorf("work %v, want %v", m.Work(10), want)
	}
}

func TestBadWidthsAreNamed(t *testing.T) {
	for _, c := range []struct {
		layers     []int
		activation nn.Activation
		want       string
	}{
		{nil, nn.ReLU, "at least two widths"},
		{[]int{4}, nn.ReLU, "at least two widths"},
		{[]int{4, 0, 3}, nn.ReLU, "width 0 (number 2)"},
		{[]int{-1, 3}, nn.ReLU, "width -1 (number 1)"},
		{[]int{4, 1}, nn.ReLU, "width 1 (the last)"},
		{[]int{4, math.MaxInt32, 2}, nn.ReLU, "width 2147483647 (number 2)"},
		{[]int{4, 1 << 20, 1 << 20, 2}, nn.ReLU, "with width 1048576 (number 3)"},
		{[]int{4, 3}, 9, "activation(9) does not exist"},
	} {
		if _, err := nn.NewMLP(c.layers, c.activation); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.layers, err, c.want)
		}
	}
}

func TestActivationNamesCanBeParsed(t *testing.T) {
	for _, a := range []nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid} {
		if got, err := nn.ParseActivation(a.String()); err != nil || got != a {
			t.Errorf("%v becomes %v (%v)", a, got, err)
		}
	}
	_, err := nn.ParseActivation("relo")
	if want := `unknown activation "relo": accepted are relu, tanh, sigmoid`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestMistakesPanicWithAMessage(t *testing.T) {
	m := newMLP(t, nn.ReLU, 2, 3)
	w := m.NewWorkspace(2)
	p, g, one := make([]float32, 9), make([]float32, 9), nn.Batch{X: []float32{1, 2}, Y: []int32{0}}
	for name, call := range map[string]func(){
		"params": func() { w.Gradient(p[1:], g, one) },
		"grad":   func() { w.Gradient(p, g[1:], one) },
		"x":      func() { w.Gradient(p, g, nn.Batch{X: one.X[1:], Y: one.Y}) },
		"empty":  func() { w.Gradient(p, g, nn.Batch{}) },
		"large":  func() { w.Gradient(p, g, nn.Batch{X: make([]float32, 6), Y: make([]int32, 3)}) },
		"label":  func() { w.Evaluate(p, nn.Batch{X: one.X, Y: []int32{3}}) },
		"weights": func() {
			w.Gradient(p, g, nn.Batch{X: one.X, Y: one.Y, Weights: []float32{1, 1}})
		},
		"minus": func() { w.Evaluate(p, nn.Batch{X: one.X, Y: []int32{-1}}) },
		"init":  func() { m.Init(p[1:], rand.New(rand.NewPCG(1, 1))) },
		"batch": func() { m.NewWorkspace(0) },
		"add":   func() { nn.AddScaled(p, 1, g[1:]) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "nn: ") {
					t.Errorf("%s: got %q", name, s)
				}
			}()
			call()
		}()
	}
	if loss, correct := w.Evaluate(p, nn.Batch{}); loss != 0 || correct != 0 {
		t.Errorf("nothing has loss %v, %d correct", loss, correct)
	}
}

// TestGradientAgreesWithPyTorch compares with the figures of testdata/expected.py.
func TestGradientAgreesWithPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Gradients []struct {
			Layers     []int
			Activation string
			X, Params  []float32
			Y          []int32
			Loss       float64
			Grad       []float64
		}
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	if len(expected.Gradients) == 0 {
		t.Fatal("no figures to compare with")
	}
	for _, c := range expected.Gradients {
		activation, err := nn.ParseActivation(c.Activation)
		if err != nil {
			t.Fatal(err)
		}
		m := newMLP(t, activation, c.Layers...)
		grad := make([]float32, m.Params())
		loss := m.NewWorkspace(len(c.Y)).Gradient(c.Params, grad, nn.Batch{X: c.X, Y: c.Y})
		if math.Abs(loss-c.Loss) > 1e-6 {
			t.Errorf("%v: loss %v, PyTorch has %v", c.Layers, loss, c.Loss)
		}
		for i, g := range grad {
			if math.Abs(float64(g)-c.Grad[i]) > 1e-6 {
				t.Errorf("%v: grad[%d] = %v, PyTorch has %v", c.Layers, i, g, c.Grad[i])
			}
		}
	}
}
