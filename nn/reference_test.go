package nn_test

import (
	"math"

	"github.com/gradwire/gradwire/nn"
)

// reference is a second implementation of the network, in float64, one sample and one number at a
// time, from the textbook formulas.
type reference struct {
	layers     []int
	activation nn.Activation
}

func (r reference) activate(z float64) (h, derivative float64) {
	switch r.activation {
	case nn.Tanh:
		h = math.Tanh(z)
		return h, 1 - h*h
	case nn.Sigmoid:
		h = 1 / (1 + math.Exp(-z))
		return h, h * (1 - h)
	}
	if z > 0 {
		return z, 1
	}
	return 0, 0
}

// weight returns where the weight of input i for output j of a layer is, out×in as in PyTorch; i =
// in names the bias.
func (r reference) weight(layer, i, j int) int {
	offset := 0
	for l := range layer {
		offset += (r.layers[l] + 1) * r.layers[l+1]
	}
	if i == r.layers[layer] {
		return offset + i*r.layers[layer+1] + j
	}
	return offset + j*r.layers[layer] + i
}

// sample returns the loss of one sample and the predicted class, and adds the gradient of the loss
// to grad.
func (r reference) sample(params []float64, x []float32, y int, grad []float64) (float64, int) {
	depth := len(r.layers) - 1
	h, derivative := make([][]float64, depth+1), make([][]float64, depth+1)
	for _, v := range x {
		h[0] = append(h[0], float64(v))
	}
	for l := range depth {
		for j := range r.layers[l+1] {
			z := params[r.weight(l, r.layers[l], j)]
			for i, v := range h[l] {
				z += v * params[r.weight(l, i, j)]
			}
			d := 1.
			if l < depth-1 {
				z, d = r.activate(z)
			}
			h[l+1], derivative[l+1] = append(h[l+1], z), append(derivative[l+1], d)
		}
	}
	best, largest, sum := 0, math.Inf(-1), 0.
	for j, z := range h[depth] {
		if z > largest {
			best, largest = j, z
		}
	}
	for _, z := range h[depth] {
		sum += math.Exp(z - largest)
	}
	loss := largest + math.Log(sum) - h[depth][y]
	delta := make([]float64, r.layers[depth])
	for j, z := range h[depth] {
		delta[j] = math.Exp(z-largest) / sum
	}
	delta[y]--
	for l := depth - 1; l >= 0; l-- {
		below := make([]float64, r.layers[l])
		for j, d := range delta {
			for i, v := range h[l] {
				grad[r.weight(l, i, j)] += d * v
				below[i] += d * params[r.weight(l, i, j)]
			}
			grad[r.weight(l, r.layers[l], j)] += d
		}
		for i := range below {
			if l > 0 {
				below[i] *= derivative[l][i]
			}
		}
		delta = below
	}
	return loss, best
}

// gradient returns the mean loss, its gradient, and the number of correct predictions.
func (r reference) gradient(params []float32, b nn.Batch) (float64, []float64, int) {
	wide := make([]float64, len(params))
	for i, p := range params {
		wide[i] = float64(p)
	}
	grad, loss, correct := make([]float64, len(params)), 0., 0
	n := len(b.Y)
	for i, y := range b.Y {
		l, best := r.sample(wide, b.X[i*r.layers[0]:(i+1)*r.layers[0]], int(y), grad)
		loss += l
		if best == int(y) {
			correct++
		}
	}
	for i := range grad {
		grad[i] /= float64(n)
	}
	return loss / float64(n), grad, correct
}
