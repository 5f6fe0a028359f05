package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// MaxParams bounds the number of parameters of a model: 2³⁰, four gigabytes.
const MaxParams = 1 << 30

// MLP is a multilayer perceptron: fully connected layers, an activation between them, log-softmax
// with the negative log-likelihood on top. Without a hidden layer it is multinomial logistic
// regression.
//
// Layer l of widths in and out takes from the parameter vector its weight, out×in row-major as in
// PyTorch's nn.Linear, followed by its bias of length out. With inputs in the rows the layer
// computes X·Wᵀ + b. Where there are no SIMD kernels, zeros of X are skipped: an infinite or NaN
// weight shows only where its input is not zero.
type MLP struct {
	layers     []layer
	activation Activation
	params     int
}

// layer is the place of one fully connected layer in the parameter vector.
type layer struct {
	in, out      int
	weight, bias int // offsets
}

func (l layer) split(v []float32) (weight, bias []float32) {
	return v[l.weight:l.bias], v[l.bias : l.bias+l.out]
}

var _ Model = (*MLP)(nil)

// NewMLP returns the network of the given widths, inputs first and classes last, with the
// activation after every hidden layer; two widths make a logistic regression. It fails for fewer
// than two widths, a width below 1, fewer than two classes, more than [MaxParams] parameters, and
// an activation that does not exist.
func NewMLP(layers []int, activation Activation) (*MLP, error) {
	if len(layers) < 2 {
		return nil, fmt.Errorf("mlp: layers %v: at least two widths are needed, inputs and classes", layers)
	}
	if !activation.valid() {
		return nil, fmt.Errorf("mlp: %v does not exist", activation)
	}
	for i, width := range layers {
		if width < 1 {
			return nil, fmt.Errorf("mlp: layers %v: width %d (number %d) is less than 1", layers, width, i+1)
		}
		if width > MaxParams {
			return nil, fmt.Errorf("mlp: layers %v: width %d (number %d) is more than %d", layers, width, i+1,
				MaxParams)
		}
	}
	if classes := layers[len(layers)-1]; classes < 2 {
		return nil, fmt.Errorf("mlp: layers %v: width %d (the last) is the number of classes and must be at least 2",
			layers, classes)
	}
	m := &MLP{activation: activation, layers: make([]layer, 0, len(layers)-1)}
	for i, out := range layers[1:] {
		in := layers[i]
		if in+1 > (MaxParams-m.params)/out {
			return nil, fmt.Errorf("mlp: layers %v: with width %d (number %d) there are more than %d parameters",
				layers, out, i+2, MaxParams)
		}
		weight, bias := m.params, m.params+in*out
		m.layers = append(m.layers, layer{in: in, out: out, weight: weight, bias: bias})
		m.params = bias + out
	}
	return m, nil
}

// Inputs is the first width.
func (m *MLP) Inputs() int { return m.layers[0].in }

// Classes is the last width.
func (m *MLP) Classes() int { return m.layers[len(m.layers)-1].out }

// Params is the sum of (in+1)·out over the layers.
func (m *MLP) Params() int { return m.params }

// Tensors lists for each layer "layerN.weight" of shape out×in and "layerN.bias" of shape out, N
// counting from 1.
func (m *MLP) Tensors() []Tensor {
	ts := make([]Tensor, 0, 2*len(m.layers))
	for i, l := range m.layers {
		ts = append(ts,
			Tensor{Name: fmt.Sprintf("layer%d.weight", i+1), Shape: []int{l.out, l.in}, Offset: l.weight},
			Tensor{Name: fmt.Sprintf("layer%d.bias", i+1), Shape: []int{l.out}, Offset: l.bias})
	}
	return slices.Clip(ts)
}

// Init draws weights and biases of a layer uniformly from ±1/√in. This is the default of PyTorch's
// nn.Linear (https://pytorch.org/docs/stable/generated/torch.nn.Linear.html), which reaches it as
// He initialisation, He et al., "Delving Deep into Rectifiers", ICCV 2015, with the slope √5.
func (m *MLP) Init(params []float32, r *rand.Rand) {
	if len(params) != m.params {
		panic(badParams)
	}
	for _, l := range m.layers {
		bound := 1 / math.Sqrt(float64(l.in))
		p := params[l.weight : l.bias+l.out]
		for i := range p {
			p[i] = float32(bound * (2*r.Float64() - 1))
		}
	}
}

// Work is batch × Σ 2·in·out·(3 for a layer, 2 for the first): a multiplication and an addition for
// each weight and sample in the forward product, in the product that yields the gradient of the
// weights, and in the one that yields the gradient of the layer's inputs, which the first layer
// does not need. Biases, activations and the loss are not counted, and zeros among the inputs count
// like other numbers.
func (m *MLP) Work(batch int) float64 {
	var sum float64
	for i, l := range m.layers {
		products := 6.
		if i == 0 {
			products = 4
		}
		sum += products * float64(l.in) * float64(l.out)
	}
	return float64(batch) * sum
}
