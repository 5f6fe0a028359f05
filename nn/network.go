package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Network is a sequence of layers with log-softmax and the negative log-likelihood on top.
//
// The parameter vector holds, layer after layer, weight and bias in the order and with the shapes
// of PyTorch's state_dict, so it is the concatenation of that model's flattened tensors.
type Network struct {
	input  Shape
	stages []stage
	// split is the first dense stage: from it on a block of samples is computed at once.
	split   int
	shared  int // number of parameters of the stages before split
	block   int // how many samples are in a block
	params  int
	tensors []Tensor
}

// stage is the place of an operation in a network.
type stage struct {
	operation
	size       int  // values of its output for one sample
	first, end int  // of its parameters
	inPlace    bool // whether its output takes the place of its input
}

const (
	// tileLanes is how many samples go through convolutions together.
	tileLanes = 16
	// maxBlock bounds how many samples go through dense layers together; it is a multiple of
	// tileLanes.
	maxBlock = 256
	// blockRoom is about how many values the activations of a block may have: 64 megabytes.
	blockRoom = 1 << 24
)

var _ Model = (*Network)(nil)

// NewNetwork returns the network of the given layers on samples of the given shape. The last layer
// must yield a plain vector of at least two values, the logits of the classes. Errors name the
// layer, counted from 1, and what it cannot do.
func NewNetwork(input Shape, layers []Layer) (*Network, error) {
	if input.Channels < 1 || input.Height < 1 || input.Width < 1 ||
		input.Channels > MaxParams || input.Height > MaxParams || input.Width > MaxParams/input.Height ||
		input.Channels > MaxParams/(input.Height*input.Width) {
		return nil, fmt.Errorf("network: input %v: accepted are positive extents with a product of at most %d", input,
			MaxParams)
	}
	n := &Network{input: input, split: -1}
	shape, counts := input, map[string]int{}
	for i, l := range layers {
		if l == nil {
			return nil, fmt.Errorf("network: layer %d is nil", i+1)
		}
		op, err := l.operation(shape)
		if err != nil {
			return nil, fmt.Errorf("network: layer %d: %w", i+1, err)
		}
		if err := n.add(op, counts); err != nil {
			return nil, fmt.Errorf("network: layer %d: %w", i+1, err)
		}
		shape = op.output()
	}
	if !shape.flat() || shape.Channels < 2 || len(n.stages) == 0 {
		return nil, fmt.Errorf("network: the last of %d layers yields %v; needed is a plain vector of at least 2 "+
			"classes", len(layers), shape)
	}
	if n.split < 0 {
		n.split, n.shared = len(n.stages), n.params
	}
	n.block = n.chooseBlock()
	return n, nil
}

// InputShape is the shape of a sample: channels, height and width.
func (n *Network) InputShape() []int { return []int{n.input.Channels, n.input.Height, n.input.Width} }

// add appends an operation, joining a max-pool and a ReLU that follow each other into one.
func (n *Network) add(op operation, counts map[string]int) error {
	last := len(n.stages) - 1
	switch op.(type) {
	case *conv, *maxPool, *averagePool:
		if n.split >= 0 {
			return fmt.Errorf("convolution and pooling are not possible after a dense layer")
		}
	}
	switch op := op.(type) {
	case *flatten:
		return nil
	case *elementwise:
		if last >= 0 && op.activation == ReLU {
			if pool, ok := n.stages[last].operation.(*maxPool); ok {
				pool.rectify = true
				return nil
			}
		}
	case *maxPool:
		if last >= 0 {
			if e, ok := n.stages[last].operation.(*elementwise); ok && e.activation == ReLU {
				op.rectify = true
				n.stages = n.stages[:last]
			}
		}
	case *dense:
		if n.split < 0 {
			n.split, n.shared = len(n.stages), n.params
		}
	}
	return n.append(op, counts)
}

func (n *Network) append(op operation, counts map[string]int) error {
	s := stage{operation: op, size: op.output().Size(), first: n.params}
	switch op.(type) {
	case *elementwise, *dropout:
		s.inPlace = true
		if last := len(n.stages) - 1; last >= 0 {
			_, needed := n.stages[last].needs()
			s.inPlace = !needed
		}
	}
	weight, bias, _ := op.parameters()
	if weight > MaxParams-bias-n.params {
		return fmt.Errorf("there are more than %d parameters", MaxParams)
	}
	n.params += weight + bias
	s.end = n.params
	n.stages = append(n.stages, s)
	n.name(op, s.first, counts)
	return nil
}

// name lists the tensors of an operation.
func (n *Network) name(op operation, offset int, counts map[string]int) {
	var kind string
	var shape []int
	switch op := op.(type) {
	case *conv:
		kind, shape = "conv", []int{op.out.Channels, op.in.Channels, op.size, op.size}
	case *dense:
		kind, shape = "fc", []int{op.out, op.in}
	default:
		return
	}
	counts[kind]++
	weight, _, _ := op.parameters()
	name := fmt.Sprintf("%s%d", kind, counts[kind])
	n.tensors = append(n.tensors,
		Tensor{Name: name + ".weight", Shape: shape, Offset: offset},
		Tensor{Name: name + ".bias", Shape: shape[:1:1], Offset: offset + weight})
}

// chooseBlock is a function of the network alone, since sums over samples are made block by block.
func (n *Network) chooseBlock() int {
	values := n.input.Size() + n.shared/tileLanes
	for i, s := range n.stages {
		values += s.size
		if i >= n.split {
			values += s.size
		}
	}
	return min(max(blockRoom/values/tileLanes*tileLanes, tileLanes), maxBlock)
}

// Inputs is the size of the input's shape.
func (n *Network) Inputs() int { return n.input.Size() }

// Classes is the number of values that the last layer yields.
func (n *Network) Classes() int { return n.stages[len(n.stages)-1].size }

// Params is the sum of the sizes of all weights and biases.
func (n *Network) Params() int { return n.params }

// Tensors lists for each convolution "convN.weight" of shape out×in×kernel×kernel and "convN.bias",
// for each dense layer "fcN.weight" of shape out×in and "fcN.bias", N counting each kind from 1.
func (n *Network) Tensors() []Tensor {
	ts := slices.Clone(n.tensors)
	for i := range ts {
		ts[i].Shape = slices.Clone(ts[i].Shape)
	}
	return ts
}

// Init draws weights and biases of a layer uniformly from ±1/√n, n being the number of values of
// which an output is the weighted sum. This is the default of PyTorch's nn.Conv2d and nn.Linear;
// see [MLP.Init].
func (n *Network) Init(params []float32, r *rand.Rand) {
	if len(params) != n.params {
		panic(badParams)
	}
	for _, s := range n.stages {
		_, _, fan := s.parameters()
		bound := 1 / math.Sqrt(float64(fan))
		p := params[s.first:s.end]
		for i := range p {
			p[i] = float32(bound * (2*r.Float64() - 1))
		}
	}
}

// Work is batch × Σ 3·f over convolutions and dense layers, f being 2 for each weight and place
// where it is applied: a multiplication and an addition in the forward product, in the gradient of
// the weights and in the gradient of the layer's input, which the first of these layers does not
// need (2·f). Padding counts like other values; biases, activations, pooling, dropout and the loss
// are not counted.
func (n *Network) Work(batch int) float64 {
	var sum float64
	products := 2.
	for _, s := range n.stages {
		if s.first < s.end {
			sum += products * s.work()
			products = 3
		}
	}
	return float64(batch) * sum
}
