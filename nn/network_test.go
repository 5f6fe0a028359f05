package nn_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/nn"
)

func newNetwork(tb testing.TB, input nn.Shape, layers ...nn.Layer) *nn.Network {
	tb.Helper()
	n, err := nn.NewNetwork(input, layers)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// start returns parameters drawn by Init and a batch of n standard normal samples.
func start(seed uint64, m nn.Model, n int) ([]float32, nn.Batch) {
	r := rand.New(rand.NewPCG(seed, 0))
	params := make([]float32, m.Params())
	m.Init(params, r)
	return params, denseBatch(r, m, n)
}

// distance is the norm of the difference of got from want, relative to want's.
func distance(got []float32, want []float64) float64 {
	var d, s float64
	for i, w := range want {
		d += (float64(got[i]) - w) * (float64(got[i]) - w)
		s += w * w
	}
	return math.Sqrt(d / max(s, 1e-12))
}

// compareNetwork holds Gradient and Evaluate on a random batch against the second implementation.
func compareNetwork(t interface {
	Helper()
	Fatalf(string, ...any)
}, input nn.Shape, layers []nn.Layer, n, threads int, seed uint64) {
	t.Helper()
	m, err := nn.NewNetwork(input, layers)
	if err != nil {
		t.Fatalf("%v", err)
	}
	params, b := start(seed, m, n)
	grad := make([]float32, m.Params())
	for i := range grad {
		grad[i] = float32(math.NaN()) // shows whether grad is overwritten
	}
	w := m.NewParallelWorkspace(n, threads)
	loss := w.Gradient(params, grad, b)
	want, wantGrad := dumb{input, layers}.gradient(params, b)
	if math.Abs(loss-want) > 1e-5*(1+want) {
		t.Fatalf("%v %v: loss %v, want %v", input, layers, loss, want)
	}
	if d := distance(grad, wantGrad); !(d < 1e-5) {
		t.Fatalf("%v %v: gradient is off by %v", input, layers, d)
	}
	if sum, _ := w.Evaluate(params, b); sum/float64(n) != loss {
		t.Fatalf("%v %v: Evaluate's mean loss is %v, Gradient's %v", input, layers, sum/float64(n), loss)
	}
}

// drawLayers draws up to three convolutions, poolings and activations that fit the input.
func drawLayers(t *rapid.T, input nn.Shape) []nn.Layer {
	var layers []nn.Layer
	h, w := input.Height, input.Width
	for range rapid.IntRange(0, 4).Draw(t, "spatial layers") {
		size := rapid.IntRange(1, min(h, w, 5)).Draw(t, "size")
		stride, padding := rapid.IntRange(0, 3).Draw(t, "stride"), 0
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			padding = rapid.IntRange(0, size-1).Draw(t, "padding")
			layers = append(layers, nn.Conv2D{Channels: rapid.IntRange(1, 7).Draw(t, "channels"), Kernel: size,
				Stride: stride, Padding: padding})
			stride = max(stride, 1)
		case 1:
			layers = append(layers, nn.MaxPool{Size: size, Stride: stride})
		case 2:
			layers = append(layers, nn.AveragePool{Size: size, Stride: stride})
		default:
			layers = append(layers, nn.Activation(rapid.IntRange(0, 2).Draw(t, "activation")))
			continue
		}
		if stride == 0 {
			stride = size
		}
		h, w = (h+2*padding-size)/stride+1, (w+2*padding-size)/stride+1
	}
	layers = append(layers, nn.Flatten{})
	if rapid.Bool().Draw(t, "hidden") {
		layers = append(layers, nn.Dense{Outputs: rapid.IntRange(1, 60).Draw(t, "width")},
			nn.Activation(rapid.IntRange(0, 2).Draw(t, "hidden activation")))
	}
	return append(layers, nn.Dense{Outputs: rapid.IntRange(2, 9).Draw(t, "classes")})
}

func TestNetworkAgreesWithSecondImplementation(t *testing.T) {
	rapid.Check(t, agreesWithSecondImplementation)
}

func agreesWithSecondImplementation(t *rapid.T) {
	input := nn.Shape{Channels: rapid.IntRange(1, 4).Draw(t, "channels"),
		Height: rapid.IntRange(1, 11).Draw(t, "height"), Width: rapid.IntRange(1, 11).Draw(t, "width")}
	layers := drawLayers(t, input)
	compareNetwork(t, input, layers, rapid.IntRange(1, 40).Draw(t, "batch"), rapid.IntRange(1, 3).Draw(t, "threads"),
		rapid.Uint64().Draw(t, "seed"))
}

func TestNamedModelsAgreeWithSecondImplementation(t *testing.T) {
	image := nn.Shape{Channels: 1, Height: 28, Width: 28}
	compareNetwork(t, image, []nn.Layer{nn.Conv2D{Channels: 10, Kernel: 5}, nn.MaxPool{Size: 2}, nn.ReLU,
		nn.Conv2D{Channels: 20, Kernel: 5}, nn.MaxPool{Size: 2}, nn.ReLU, nn.Flatten{}, nn.Dense{Outputs: 50},
		nn.ReLU, nn.Dense{Outputs: 10}}, 18, 2, 3)
	compareNetwork(t, image, []nn.Layer{nn.Conv2D{Channels: 6, Kernel: 5, Padding: 2}, nn.Tanh, nn.AveragePool{Size: 2},
		nn.Conv2D{Channels: 16, Kernel: 5}, nn.Tanh, nn.AveragePool{Size: 2}, nn.Flatten{}, nn.Dense{Outputs: 120},
		nn.Tanh, nn.Dense{Outputs: 84}, nn.Tanh, nn.Dense{Outputs: 10}}, 3, 2, 3)
	// Without a dense layer, the last convolution yields the logits.
	compareNetwork(t, nn.Shape{Channels: 2, Height: 9, Width: 9},
		[]nn.Layer{nn.Conv2D{Channels: 5, Kernel: 3, Stride: 2}, nn.Sigmoid,
			nn.Conv2D{Channels: 4, Kernel: 2, Padding: 1}, nn.AveragePool{Size: 5}, nn.Flatten{}}, 37, 2, 3)
}

// slopes holds the gradient against central differences of the loss.
func slopes(t *testing.T, m nn.Model, seed uint64) {
	t.Helper()
	params, b := start(seed, m, 5)
	b.Seed = 9
	grad, other := make([]float32, m.Params()), make([]float32, m.Params())
	w := m.NewWorkspace(5)
	w.Gradient(params, grad, b)
	const h = 1. / 4096
	for i, p := range params {
		params[i] = p + h
		up := w.Gradient(params, other, b)
		params[i] = p - h
		down := w.Gradient(params, other, b)
		params[i] = p
		// The error of the central difference is float32's rounding over h, and a kink within h.
		if slope := (up - down) / (2 * h); math.Abs(slope-float64(grad[i])) > 2e-3 {
			t.Errorf("slope along parameter %d is %v, gradient %v", i, slope, grad[i])
		}
	}
}

func TestGradientOfEveryLayerIsTheSlopeOfTheLoss(t *testing.T) {
	input := nn.Shape{Channels: 2, Height: 6, Width: 5}
	for name, layers := range map[string][]nn.Layer{
		"conv2d":          {nn.Conv2D{Channels: 3, Kernel: 3}},
		"conv2d, strided": {nn.Conv2D{Channels: 3, Kernel: 3, Stride: 2, Padding: 1}},
		"maxpool":         {nn.Conv2D{Channels: 3, Kernel: 2}, nn.MaxPool{Size: 2}},
		"maxpool, relu":   {nn.Conv2D{Channels: 3, Kernel: 2}, nn.MaxPool{Size: 2}, nn.ReLU},
		"relu, maxpool":   {nn.Conv2D{Channels: 3, Kernel: 2}, nn.ReLU, nn.MaxPool{Size: 2, Stride: 1}},
		"averagepool":     {nn.Conv2D{Channels: 3, Kernel: 2}, nn.AveragePool{Size: 2, Stride: 1}},
		"relu":            {nn.Conv2D{Channels: 3, Kernel: 2}, nn.ReLU},
		"tanh":            {nn.Conv2D{Channels: 3, Kernel: 2}, nn.Tanh},
		"sigmoid":         {nn.Conv2D{Channels: 3, Kernel: 2}, nn.Sigmoid},
		"dropout":         {nn.Conv2D{Channels: 3, Kernel: 2}, nn.Tanh, nn.Dropout{Rate: 0.5}},
		"dropout, conv2d": {nn.Conv2D{Channels: 3, Kernel: 2}, nn.Dropout{Rate: 0.5},
			nn.Conv2D{Channels: 2, Kernel: 2}},
		"twice": {nn.Conv2D{Channels: 3, Kernel: 2}, nn.Tanh, nn.Sigmoid, nn.Conv2D{Channels: 2, Kernel: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			slopes(t, newNetwork(t, input, append(layers, nn.Flatten{}, nn.Dense{Outputs: 4})...), 5)
		})
	}
	t.Run("dense", func(t *testing.T) {
		slopes(t, newNetwork(t, nn.Shape{Channels: 7, Height: 1, Width: 1}, nn.Dropout{Rate: 0.1}, nn.Dense{Outputs: 6},
			nn.Tanh, nn.Dropout{Rate: 0.3}, nn.Dense{Outputs: 5}, nn.Dropout{Rate: 0.2}, nn.Sigmoid,
			nn.Dense{Outputs: 3}), 5)
	})
}

func TestDropoutIsAFunctionOfTheSeed(t *testing.T) {
	m := newNetwork(t, nn.Shape{Channels: 1, Height: 8, Width: 8}, nn.Conv2D{Channels: 4, Kernel: 3},
		nn.Dropout{Rate: 0.4}, nn.Flatten{}, nn.Dense{Outputs: 30}, nn.ReLU, nn.Dropout{Rate: 0.5},
		nn.Dense{Outputs: 3})
	params, b := start(1, m, 50)
	gradient := func(w nn.Workspace, seed uint64) []float32 {
		grad := make([]float32, m.Params())
		b.Seed = seed
		w.Gradient(params, grad, b)
		return grad
	}
	first, again := gradient(m.NewWorkspace(50), 1), gradient(m.NewParallelWorkspace(60, 2), 1)
	if !slices.Equal(first, again) {
		t.Error("the same seed gives two gradients")
	}
	if slices.Equal(first, gradient(m.NewWorkspace(50), 2)) {
		t.Error("two seeds give the same gradient")
	}
	w := m.NewWorkspace(50)
	l1, c1 := w.Evaluate(params, b)
	b.Seed = 77
	if l2, c2 := w.Evaluate(params, b); l1 != l2 || c1 != c2 {
		t.Error("the seed changes Evaluate")
	}
}

// TestDropoutKeepsTheExpectation looks at the gradient of the last bias and weight: one input of
// value 1 reaches the logits of two classes through identity weights, dropped or doubled.
func TestDropoutKeepsTheExpectation(t *testing.T) {
	const width, n, rate = 200, 100, 0.3
	m := newNetwork(t, nn.Shape{Channels: width, Height: 1, Width: 1}, nn.Dropout{Rate: rate}, nn.Dense{Outputs: 2})
	b := nn.Batch{X: make([]float32, width*n), Y: make([]int32, n)}
	for i := range b.X {
		b.X[i] = 1
	}
	grad := make([]float32, m.Params())
	w := m.NewWorkspace(n)
	sum := 0.
	for seed := range uint64(20) {
		b.Seed = seed
		w.Gradient(make([]float32, m.Params()), grad, b)
		// All logits are 0, so the gradient along a weight of class 1 is half the mean of its input
		// after dropout.
		for _, g := range grad[width : 2*width] {
			sum += 2 * float64(g) / (20 * width)
			if kept := 2 * float64(g) * n * (1 - rate); math.Abs(kept-math.Round(kept)) > 1e-3 || kept < 45 ||
				kept > 92 {
				t.Fatalf("%v of %d values of an input were kept", kept, n)
			}
		}
	}
	if math.Abs(sum-1) > 5*math.Sqrt(rate/(1-rate)/(20*width*n)) {
		t.Errorf("the mean of ones after dropout is %v", sum)
	}
}

func TestNetworkAllocatesNothing(t *testing.T) {
	for _, m := range []*nn.Network{nn.SmallCNN(), nn.LeNet5()} {
		for _, threads := range []int{1, 2} {
			params, b := start(1, m, 40)
			grad, w := make([]float32, m.Params()), m.NewParallelWorkspace(40, threads)
			if n := testing.AllocsPerRun(3, func() { w.Gradient(params, grad, b) }); n != 0 {
				t.Errorf("%d threads: %v allocations a Gradient", threads, n)
			}
			if n := testing.AllocsPerRun(3, func() { w.Evaluate(params, b) }); n != 0 {
				t.Errorf("%d threads: %v allocations an Evaluate", threads, n)
			}
		}
	}
}

func TestBitsOfANetworkDependNeitherOnThreadsNorOnWorkspace(t *testing.T) {
	sameBits(t)
}

func sameBits(t *testing.T) {
	m := nn.SmallCNN()
	params, b := start(1, m, 300)
	var loss, sum float64
	var grad []float32
	for i, c := range []struct{ maxBatch, threads int }{{300, 1}, {300, 2}, {1000, 3}, {300, 16}} {
		w := m.NewParallelWorkspace(c.maxBatch, c.threads)
		g := make([]float32, m.Params())
		l := w.Gradient(params, g, b)
		s, _ := w.Evaluate(params, b)
		if small, _ := m.NewParallelWorkspace(19, c.threads).Evaluate(params, b); small != s {
			t.Errorf("%+v: Evaluate yields %v, with a workspace for 19 samples %v", c, s, small)
		}
		if i == 0 {
			loss, grad, sum = l, g, s
		}
		if l != loss || s != sum || !slices.Equal(g, grad) {
			t.Errorf("%+v: loss %v, want %v; gradient equal: %v", c, l, loss, slices.Equal(g, grad))
		}
	}
}

func TestNaNInANetworkIsNotHidden(t *testing.T) { nanShows(t) }

func nanShows(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		for name, layers := range map[string][]nn.Layer{
			"fused":   {nn.Conv2D{Channels: 2, Kernel: 3}, nn.MaxPool{Size: 2}, nn.ReLU},
			"plain":   {nn.Conv2D{Channels: 2, Kernel: 3}, nn.MaxPool{Size: 2}},
			"relu":    {nn.Conv2D{Channels: 2, Kernel: 3}, nn.ReLU, nn.MaxPool{Size: 3}},
			"average": {nn.Conv2D{Channels: 2, Kernel: 3}, nn.ReLU, nn.AveragePool{Size: 3}},
		} {
			m := newNetwork(t, nn.Shape{Channels: 1, Height: 8, Width: 8},
				append(layers, nn.Flatten{}, nn.Dense{Outputs: 3})...)
			for i := range m.Params() {
				params, b := start(1, m, 20)
				params[i] = float32(math.Copysign(math.NaN(), sign))
				if loss, _ := m.NewWorkspace(20).Evaluate(params, b); loss == loss {
					t.Errorf("%s: with NaN in parameter %d the loss is %v", name, i, loss)
				}
				if loss := m.NewWorkspace(20).Gradient(params, make([]float32, m.Params()), b); loss == loss {
					t.Errorf("%s: with NaN in parameter %d Gradient's loss is %v", name, i, loss)
				}
			}
		}
	}
}

func TestNamedModelsHaveTheirSizes(t *testing.T) {
	for _, c := range []struct {
		model  *nn.Network
		params int
		work   float64 // worked out by hand
	}{
		{nn.SmallCNN(), 21840, 4*25*10*576 + 6*(250*20*64+320*50+50*10)},
		{nn.BigCNN(), 1199882, 4*9*32*676 + 6*(288*64*576+9216*128+1280)},
		{nn.LeNet5(), 61706, 4*25*6*784 + 6*(150*16*100+400*120+120*84+840)},
	} {
		if c.model.Params() != c.params || c.model.Inputs() != 784 || c.model.Classes() != 10 ||
			c.model.Work(3) != 3*c.work {
			t.Errorf("%d parameters, want %d; work %v, want %v", c.model.Params(), c.params, c.model.Work(3), 3*c.work)
		}
	}
	want := []nn.Tensor{
		{Name: "conv1.weight", Shape: []int{10, 1, 5, 5}, Offset: 0},
		{Name: "conv1.bias", Shape: []int{10}, Offset: 250},
		{Name: "conv2.weight", Shape: []int{20, 10, 5, 5}, Offset: 260},
		{Name: "conv2.bias", Shape: []int{20}, Offset: 5260},
		{Name: "fc1.weight", Shape: []int{50, 320}, Offset: 5280}, {Name: "fc1.bias", Shape: []int{50}, Offset: 21280},
		{Name: "fc2.weight", Shape: []int{10, 50}, Offset: 21330}, {Name: "fc2.bias", Shape: []int{10}, Offset: 21830},
	}
	if d := cmp.Diff(want, nn.SmallCNN().Tensors()); d != "" {
		t.Error(d)
	}
}

func TestInitOfANetworkFillsTheRange(t *testing.T) {
	m := nn.SmallCNN()
	params, _ := start(4, m, 1)
	for i, tensor := range m.Tensors() {
		end := m.Params()
		if i+1 < len(m.Tensors()) {
			end = m.Tensors()[i+1].Offset
		}
		bound := 1 / math.Sqrt([]float64{25, 25, 250, 250, 320, 320, 50, 50}[i])
		p := params[tensor.Offset:end]
		if high, low := float64(slices.Max(p)), float64(slices.Min(p)); high > bound || low < -bound ||
			high < 0.5*bound || low > -0.5*bound {
			t.Errorf("%s is in %v to %v, want ±%v", tensor.Name, low, high, bound)
		}
	}
}

func TestBadLayersAreNamed(t *testing.T) {
	image := nn.Shape{Channels: 1, Height: 8, Width: 8}
	for _, c := range []struct {
		input  nn.Shape
		layers []nn.Layer
		want   string
	}{
		{image, nil, "the last of 0 layers yields 1×8×8"},
		{nn.Shape{Channels: 1, Height: 0, Width: 8}, nil, "input 1×0×8"},
		{nn.Shape{Channels: 1 << 20, Height: 1 << 20, Width: 1 << 30}, nil, "at most 1073741824"},
		{image, []nn.Layer{nn.Dense{Outputs: 3}},
			"layer 1: dense: its input is 1×8×8; a flatten layer must come before"},
		{image, []nn.Layer{nn.Flatten{}, nn.Dense{}}, "layer 2: dense: with 64 inputs and 0 outputs"},
		{image, []nn.Layer{nn.Flatten{}, nn.Dense{Outputs: math.MaxInt32}}, "layer 2: dense"},
		{image, []nn.Layer{nn.Flatten{}, nn.Dense{Outputs: 1}}, "needed is a plain vector of at least 2 classes"},
		{image, []nn.Layer{nn.Flatten{}, nn.Dense{Outputs: 4}, nn.Conv2D{Channels: 1, Kernel: 1}},
			"layer 3: convolution and pooling are not possible after a dense layer"},
		{image, []nn.Layer{nn.Conv2D{Channels: 3, Kernel: 9}},
			"layer 1: conv2d: a window of 9×9 does not fit into 8×8 with padding 0"},
		{image, []nn.Layer{nn.Conv2D{Kernel: 9}}, "layer 1: conv2d: 0 channels"},
		{image, []nn.Layer{nn.Conv2D{Channels: 3, Kernel: 3, Padding: 3}}, "padding 3 is out of range 0 to 2"},
		{image, []nn.Layer{nn.Conv2D{Channels: 3, Kernel: 3, Stride: -1}}, "stride -1 is out of range"},
		{image, []nn.Layer{nn.Conv2D{Channels: 1 << 29, Kernel: 3}}, "more than 1073741824"},
		{image, []nn.Layer{nn.MaxPool{}}, "layer 1: maxpool: size 0"},
		{image, []nn.Layer{nn.AveragePool{Size: 9}}, "layer 1: averagepool: a window of 9×9"},
		{image, []nn.Layer{nn.Dropout{Rate: 1}}, "layer 1: dropout: rate 1 is not in [0, 1)"},
		{image, []nn.Layer{nn.Dropout{Rate: math.NaN()}}, "rate NaN"},
		{image, []nn.Layer{nn.Activation(9)}, "layer 1: activation(9) does not exist"},
		{image, []nn.Layer{nil}, "layer 1 is nil"},
	} {
		if _, err := nn.NewNetwork(c.input, c.layers); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: error %v, want %q", c.input, c.layers, err, c.want)
		}
	}
}
