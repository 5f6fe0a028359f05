package nn

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// MarginLoss is what a [Linear] model loses on a sample of margin m, where m is y·z, and y is −1
// for class 0 and +1 for class 1. Each leads to a learning rule, if a step has one sample x.
type MarginLoss uint8

// The losses.
const (
	// Hinge is max(0, 1 − m). Plain descent at the rate 1/(λt) with weight decay λ makes step t
	// that of Pegasos: w ← (1−ηλ)w, and + ηyx if m < 1 (S. Shalev-Shwartz et al., "Pegasos: primal
	// estimated sub-gradient solver for SVM", Mathematical Programming 127, 2011, figure 1, without
	// the projection).
	Hinge MarginLoss = iota + 1
	// Squared is (1 − m)²/2. Plain descent at a constant rate makes the step of Adaline: w ← w +
	// η(y − w·x)x (B. Widrow and M. E. Hoff, "Adaptive switching circuits", 1960).
	Squared
)

var marginLosses = [...]string{Hinge: "hinge", Squared: "squared"}

// ParseMarginLoss returns the loss of the given name. The error names what is accepted.
func ParseMarginLoss(name string) (MarginLoss, error) {
	for i, n := range marginLosses {
		if n == name && n != "" {
			return MarginLoss(i), nil
		}
	}
	return 0, fmt.Errorf("unknown loss %q: accepted are %s", name, strings.Join(marginLosses[Hinge:], ", "))
}

// at is the loss at a margin, and its derivative by the margin.
func (l MarginLoss) at(m float64) (loss, slope float64) {
	rest := 1 - m
	if l == Squared {
		return rest * rest / 2, -rest
	}
	if rest <= 0 {
		return 0, 0
	}
	return rest, -1 // NaN stays one
}

// Linear tells two classes apart by one weight for each input and a bias, which is the weight of an
// input that is always 1: z = w·x + b is above 0 for class 1. The logits are −z and z. The
// parameters are w, then b, and start from 0. Sums of products are made in float64, one input after
// the other, so that zeros among the inputs change no bit.
type Linear struct {
	inputs int
	loss   MarginLoss
}

var _ Model = (*Linear)(nil)

// NewLinear returns the model of a number of inputs, 1 to [MaxParams] − 1.
func NewLinear(inputs int, loss MarginLoss) (*Linear, error) {
	if inputs < 1 || inputs >= MaxParams {
		return nil, fmt.Errorf("linear: %d inputs: accepted are 1 to %d", inputs, MaxParams-1)
	}
	if loss != Hinge && loss != Squared {
		return nil, fmt.Errorf("linear: loss %d does not exist", loss)
	}
	return &Linear{inputs: inputs, loss: loss}, nil
}

// Inputs is the number of values in one sample.
func (m *Linear) Inputs() int { return m.inputs }

// Classes is 2.
func (m *Linear) Classes() int { return 2 }

// Params is the number of inputs and 1.
func (m *Linear) Params() int { return m.inputs + 1 }

// Tensors lists "weight" of shape 1×inputs and "bias" of shape 1.
func (m *Linear) Tensors() []Tensor {
	return []Tensor{{Name: "weight", Shape: []int{1, m.inputs}}, {Name: "bias", Shape: []int{1}, Offset: m.inputs}}
}

// Init fills params with 0, whatever the random numbers.
func (m *Linear) Init(params []float32, _ *rand.Rand) {
	if len(params) != m.Params() {
		panic(badParams)
	}
	clear(params)
}

// Work is batch × 4·(inputs + 1): a product and a sum for z, and as many for the gradient.
func (m *Linear) Work(batch int) float64 { return 4 * float64(batch) * float64(m.Params()) }

// Samples implements [Model]. Without an order the samples stay where they are.
func (m *Linear) Samples(x []float32, y, order []int32) *Samples {
	s := newSamples(m, x, y, order)
	s.margin = m.loss
	s.lay(x, order)
	return s
}

// linearWorkspace has room for one row.
type linearWorkspace struct {
	model    *Linear
	maxBatch int
	row      []float32
}

// NewWorkspace returns a workspace for batches of 1 to maxBatch samples.
func (m *Linear) NewWorkspace(maxBatch int) Workspace {
	if maxBatch < 1 {
		panic(badMaxBatch)
	}
	return &linearWorkspace{model: m, maxBatch: maxBatch, row: make([]float32, m.inputs)}
}

// input is the i-th row of a batch.
func (w *linearWorkspace) input(b *Batch, i int) []float32 {
	if b.Sparse == nil {
		return b.X[i*w.model.inputs : (i+1)*w.model.inputs]
	}
	b.Sparse.Copy(w.row, b.Rows[i:i+1])
	return w.row
}

// output is z of one sample.
func (m *Linear) output(params, x []float32) float64 {
	sum := 0.0
	weights := params[:len(x)]
	for i, v := range x {
		sum += float64(weights[i]) * float64(v) // exact, so that nothing depends on fused operations
	}
	return sum + float64(params[m.inputs])
}

// sign is y of a class.
func sign(class int32) float64 { return float64(2*class - 1) }

// Gradient implements [Workspace].
func (w *linearWorkspace) Gradient(params, grad []float32, b Batch) float64 {
	if len(b.Y) < 1 || len(b.Y) > w.maxBatch {
		panic(badBatch)
	}
	if len(grad) != w.model.Params() {
		panic(badGrad)
	}
	checkBatch(w.model, params, b)
	clear(grad)
	total, sum := b.weight(), 0.0
	for i, class := range b.Y {
		share := 1 / total
		if b.Weights != nil {
			share *= float64(b.Weights[class])
		}
		x := w.input(&b, i)
		loss, slope := w.model.loss.at(sign(class) * w.model.output(params, x))
		sum += float64(share * loss)
		if slope == 0 {
			continue
		}
		factor := float32(share * slope * sign(class))
		AddScaled(grad[:len(x)], factor, x)
		grad[len(x)] += factor
	}
	return sum
}

// Evaluate implements [Workspace].
func (w *linearWorkspace) Evaluate(params []float32, b Batch) (loss float64, correct int) {
	checkBatch(w.model, params, b)
	for i, class := range b.Y {
		one, right := w.model.loss.judge(float32(w.model.output(params, w.input(&b, i))), class)
		loss, correct = loss+one, correct+right
	}
	return loss, correct
}

// judge is the loss of a sample of a class, given z, and 1 if it is classified correctly.
func (l MarginLoss) judge(z float32, class int32) (loss float64, right int) {
	loss, _ = l.at(sign(class) * float64(z))
	if z-z == 0 && (z > 0) == (class == 1) {
		right = 1
	}
	return loss, right
}

// Logits implements [Workspace].
func (w *linearWorkspace) Logits(params []float32, s *Samples, first, n int, to []float32) {
	s.checkLogits(w.model, params, first, n, to)
	for i := first; i < first+n; i++ {
		z := float32(w.model.output(params, s.rows[i*s.inputs:(i+1)*s.inputs]))
		to[2*i], to[2*i+1] = -z, z
	}
}
