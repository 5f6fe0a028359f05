package nn

import "slices"

// TileRows is how many samples go through an MLP together at most. The gradient of a larger batch
// is accumulated tile by tile, so that activations stay in the cache and a workspace's size does
// not depend on the data's.
const TileRows = 256

// mlpWorkspace holds the activations of one tile.
type mlpWorkspace struct {
	model    *MLP
	maxBatch int
	rows     int         // of a tile, at most TileRows
	outputs  [][]float32 // rows×out of each layer after its activation; the last are the logits, then their gradient
	deltas   [][]float32 // rows×out of each hidden layer: gradient of the loss with respect to the layer's output
	nonzeros []*nonzeros // of each layer's input, nil where it is not needed
	ones     []float32   // times the rows of a matrix: their sum
	weights  sparseWeights
	dense    []float32 // rows×in, of sparse rows where a weight is not finite
}

var _ Workspace = (*mlpWorkspace)(nil)

// NewWorkspace returns a workspace for batches of 1 to maxBatch samples. It holds the activations
// of at most 256 samples whatever maxBatch is.
func (m *MLP) NewWorkspace(maxBatch int) Workspace {
	if maxBatch < 1 {
		panic(badMaxBatch)
	}
	w := &mlpWorkspace{model: m, maxBatch: maxBatch, rows: min(maxBatch, TileRows)}
	w.ones = slices.Repeat([]float32{1}, w.rows)
	for i, l := range m.layers {
		w.outputs = append(w.outputs, make([]float32, w.rows*l.out, w.rows*l.out+sparseColumns))
		w.nonzeros = append(w.nonzeros, nil)
		if portable && l.out <= narrowColumns {
			w.nonzeros[i] = newNonzeros(w.rows, l.in)
		}
		if i < len(m.layers)-1 {
			w.deltas = append(w.deltas, make([]float32, w.rows*l.out))
		}
	}
	return w
}

// Gradient implements [Workspace].
func (w *mlpWorkspace) Gradient(params, grad []float32, b Batch) float64 {
	n := len(b.Y)
	if n < 1 || n > w.maxBatch {
		panic(badBatch)
	}
	if len(grad) != w.model.params {
		panic(badGrad)
	}
	checkBatch(w.model, params, b)
	clear(grad)
	scale := 1 / float32(n)
	sum := lossSum{product: 1}
	for i := 0; i < n; i += w.rows {
		x, y := w.tile(b, i)
		logits := w.forward(params, x, len(y))
		sum.gradient(logits, w.model.Classes(), y, scale)
		w.backward(params, grad, x, len(y))
	}
	return sum.total() / float64(n)
}

// Evaluate implements [Workspace].
func (w *mlpWorkspace) Evaluate(params []float32, b Batch) (float64, int) {
	checkBatch(w.model, params, b)
	sum := lossSum{product: 1}
	correct := 0
	for i := 0; i < len(b.Y); i += w.rows {
		x, y := w.tile(b, i)
		correct += sum.score(w.forward(params, x, len(y)), w.model.Classes(), y)
	}
	return sum.total(), correct
}

// tile returns the samples of b from the i-th on that fit into the workspace at once.
func (w *mlpWorkspace) tile(b Batch, i int) (x []float32, y []int32) {
	in, end := w.model.Inputs(), min(i+w.rows, len(b.Y))
	return b.X[i*in : end*in], b.Y[i:end]
}

// forward computes the outputs of all layers for the rows of x and returns the logits.
func (w *mlpWorkspace) forward(params, x []float32, rows int) []float32 {
	w.enter(params, x, rows)
	return w.proceed(params, rows)
}

// enter computes what the first layer makes of the rows of x, before its activation.
func (w *mlpWorkspace) enter(params, x []float32, rows int) { w.layer(0, params, x, rows) }

// proceed computes the outputs of all layers from what the first one has made of rows, and returns
// the logits.
func (w *mlpWorkspace) proceed(params []float32, rows int) []float32 {
	x := w.outputs[0][:rows*w.model.layers[0].out]
	for i := 1; i < len(w.model.layers); i++ {
		w.model.activation.apply(x)
		x = w.layer(i, params, x, rows)
	}
	return x
}

// layer computes what a layer makes of the rows of x, before its activation.
func (w *mlpWorkspace) layer(i int, params, x []float32, rows int) []float32 {
	l := w.model.layers[i]
	weight, bias := l.split(params)
	z := w.outputs[i][:rows*l.out]
	copy(z, bias)
	for n := l.out; n < len(z); n *= 2 {
		copy(z[n:], z[:n])
	}
	addProductTransposed(z, x, weight, w.nonzeros[i], rows, l.out, l.in)
	return z
}

// backward adds to grad what the tile contributes, given the gradient of the loss with respect to
// the logits in the last of the outputs. See Rumelhart, Hinton and Williams, "Learning
// representations by back-propagating errors", Nature 323, 1986.
func (w *mlpWorkspace) backward(params, grad, x []float32, rows int) {
	last := len(w.model.layers) - 1
	d := w.outputs[last][:rows*w.model.layers[last].out]
	for i := last; i >= 0; i-- {
		l := w.model.layers[i]
		input := x
		if i > 0 {
			input = w.outputs[i-1][:rows*l.in]
		}
		weightGrad, biasGrad := l.split(grad)
		addTransposedProduct(weightGrad, d, input, w.nonzeros[i], rows, l.out, l.in)
		sgemm(noTrans, noTrans, 1, l.out, rows, w.ones, rows, d, l.out, 1, biasGrad, l.out)
		if i > 0 {
			weight, _ := l.split(params)
			delta := w.deltas[i-1][:rows*l.in]
			product(delta, d, weight, rows, l.out, l.in)
			w.model.activation.chain(delta, input)
			d = delta
		}
	}
}
