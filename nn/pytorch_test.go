package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/gradwire/gradwire/nn"
)

// network is what testdata/cnn.py writes of one network.
type network struct {
	Name        string
	Batch       int
	Losses      []float64 // of the first steps at rate 0.01
	Checkpoints []struct {
		Step     int
		Params   [][]term // of each tensor, what was added since the start
		Loss     float64
		Norm     float64
		Products [32]float64
	}
}

// term is a column times a row of 8-bit integers, scaled.
type term struct {
	Scale       float64
	Column, Row []byte
}

// splitmix calls use with n values of the generator of S. Vigna,
// https://prng.di.unimi.it/splitmix64.c.
func splitmix(seed uint64, n int, use func(i int, z uint64)) {
	for i := range n {
		z := seed*0xD1B54A32D192ED03 + uint64(i+1)*0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		use(i, z^z>>31)
	}
}

// uniform returns n numbers in [-1, 1).
func uniform(seed uint64, n int) []float64 {
	u := make([]float64, n)
	splitmix(seed, n, func(i int, z uint64) { u[i] = float64(z>>40)/(1<<23) - 1 })
	return u
}

// prototypes returns noisy prototypes of classes, the batch of a step.
func prototypes(step, n int) nn.Batch {
	b := nn.Batch{X: make([]float32, 784*n), Y: make([]int32, n)}
	squares, noise := uniform(1, 490), uniform(2000+uint64(step), 784*n)
	splitmix(1000+uint64(step), n, func(i int, z uint64) { b.Y[i] = int32(z % 10) })
	for i := range b.X {
		row, column := i%784/28, i%28
		b.X[i] = float32(float64(0.75*squares[int(b.Y[i/784])*49+row/4*7+column/4]) + noise[i])
	}
	return b
}

// startParams returns the start parameters of cnn.py, which have the same distribution as Init's.
func startParams(m *nn.Network) []float32 {
	params, fan := make([]float32, 0, m.Params()), 1
	for i, t := range m.Tensors() {
		size := 1
		for _, s := range t.Shape {
			size *= s
		}
		if len(t.Shape) > 1 {
			fan = size / t.Shape[0]
		}
		for _, u := range uniform(10+uint64(i), size) {
			params = append(params, float32(u/math.Sqrt(float64(fan))))
		}
	}
	return params
}

// add adds the terms of each tensor to params.
func add(m *nn.Network, params []float32, terms [][]term) {
	total := make([]float64, len(params))
	for i, tensor := range m.Tensors() {
		for _, t := range terms[i] {
			for j, a := range t.Column {
				for k, b := range t.Row {
					total[tensor.Offset+j*len(t.Row)+k] += float64(t.Scale * float64(int(int8(a))*int(int8(b))))
				}
			}
		}
	}
	for i := range params {
		params[i] = float32(float64(params[i]) + total[i])
	}
}

// products returns the products of g with 32 vectors of random signs.
func products(g []float32) (sums [32]float64) {
	splitmix(3, len(g), func(i int, z uint64) {
		v := math.Float64bits(float64(g[i]))
		for k := range sums {
			sums[k] += math.Float64frombits(v ^ (^z>>k&1)<<63)
		}
	})
	return sums
}

// TestNetworksAgreeWithPyTorch compares with the figures of testdata/cnn.py.
func TestNetworksAgreeWithPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/cnn.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct{ Networks []network }
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	models := map[string]*nn.Network{"small": nn.SmallCNN(), "big": nn.BigCNN(), "lenet5": nn.LeNet5()}
	if len(expected.Networks) != len(models) {
		t.Fatalf("%d networks to compare with, want %d", len(expected.Networks), len(models))
	}
	for _, n := range expected.Networks {
		t.Run(n.Name, func(t *testing.T) {
			t.Parallel()
			agreeAtCheckpoints(t, models[n.Name], n)
			agreeInTraining(t, models[n.Name], n)
		})
	}
}

// agreeAtCheckpoints compares loss and gradient at the stored parameters.
func agreeAtCheckpoints(t *testing.T, m *nn.Network, n network) {
	grad, w := make([]float32, m.Params()), m.NewWorkspace(n.Batch)
	for _, c := range n.Checkpoints {
		params := startParams(m)
		add(m, params, c.Params)
		loss := w.Gradient(params, grad, prototypes(c.Step, n.Batch))
		if math.Abs(loss-c.Loss) > 1e-5*c.Loss {
			t.Errorf("step %d: loss %v, PyTorch has %v", c.Step, loss, c.Loss)
		}
		var norm, distance float64
		for _, g := range grad {
			norm += float64(g) * float64(g)
		}
		for k, p := range products(grad) {
			distance += (p - c.Products[k]) * (p - c.Products[k]) / float64(len(c.Products))
		}
		if norm, distance := math.Sqrt(norm), math.Sqrt(distance); math.Abs(norm-c.Norm) > 1e-4*c.Norm ||
			!(distance < 1e-4*c.Norm) {
			t.Errorf("step %d: gradient of norm %v, PyTorch has %v; it is about %v from it", c.Step, norm, c.Norm,
				distance)
		}
	}
}

// agreeInTraining compares the losses of steps at rate 0.01.
func agreeInTraining(t *testing.T, m *nn.Network, n network) {
	params, grad, w := startParams(m), make([]float32, m.Params()), m.NewWorkspace(n.Batch)
	for step, want := range n.Losses {
		loss := w.Gradient(params, grad, prototypes(step, n.Batch))
		if math.Abs(loss-want) > 1e-4 {
			t.Errorf("training, step %d: loss %v, PyTorch has %v", step, loss, want)
		}
		nn.AddScaled(params, -0.01, grad)
	}
}
