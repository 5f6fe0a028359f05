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
	rows     int          // of a tile, at most TileRows
	outputs  [][]float32  // rows×out of each layer after its activation; the last are the logits, then their gradient
	deltas   [][]float32  // rows×out of each hidden layer: gradient of the loss with respect to the layer's output
	nonzeros []*nonzeros  // of each layer's input, nil where it is not needed
	ones     []float32    // times the rows of a matrix: their sum
	sparse   *sparseLayer // of a tile whose rows are taken as they are
	dense    []float32    // rows×in, of sparse rows that are not
}

// inputs are those of a tile: x, or rows of sparse where x is nil.
type inputs struct {
	x      []float32
	sparse *Sparse
	rows   []int32
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
			w.deltas = append(w.deltas, make([]float32, w.rows*l.out, w.rows*l.out+sparseColumns))
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
	weight := b.weight()
	scale := float32(1 / weight)
	sum := lossSum{product: 1}
	sparse := b.Sparse != nil && n >= b.Sparse.stepRows(w.model.layers[0].out)
	for i := 0; i < n; i += w.rows {
		in, y := w.tile(b, i)
		if sparse && w.take(params, b.Sparse) { // for each tile: gradients take the weights' room
			b.Sparse.fetch(in.rows)
		}
		logits := w.forward(params, &in, len(y))
		if b.Weights == nil {
			sum.gradient(logits, w.model.Classes(), y, scale)
		} else {
			sum.weightedGradient(logits, w.model.Classes(), y, 1/weight, b.Weights)
		}
		w.backward(params, grad, &in, len(y))
		w.release()
	}
	return sum.total() / weight
}

// Evaluate implements [Workspace].
func (w *mlpWorkspace) Evaluate(params []float32, b Batch) (float64, int) {
	checkBatch(w.model, params, b)
	sum := lossSum{product: 1}
	correct := 0
	sparse := w.take(params, b.Sparse)
	for i := 0; i < len(b.Y); i += w.rows {
		in, y := w.tile(b, i)
		if sparse {
			b.Sparse.fetch(in.rows)
		}
		correct += sum.score(w.forward(params, &in, len(y)), w.model.Classes(), y)
	}
	w.release()
	return sum.total(), correct
}

// take makes the first layer ready for the parameters and sparse rows, and reports whether it can
// take these as they are. Until the release it then does.
func (w *mlpWorkspace) take(params []float32, s *Sparse) bool {
	l := w.model.layers[0]
	if s == nil || !sparseProducts || l.in > sparseInputs {
		return false
	}
	w.sparse = takeSparseLayer(l)
	if !w.sparse.set(params) {
		w.release()
	}
	return w.sparse != nil
}

// release ends what take has begun.
func (w *mlpWorkspace) release() {
	if w.sparse != nil {
		w.sparse.giveBack()
		w.sparse = nil
	}
}

// tile returns the samples of b from the i-th on that fit into the workspace at once.
func (w *mlpWorkspace) tile(b Batch, i int) (inputs, []int32) {
	in, end := w.model.Inputs(), min(i+w.rows, len(b.Y))
	if b.Sparse == nil {
		return inputs{x: b.X[i*in : end*in]}, b.Y[i:end]
	}
	return inputs{sparse: b.Sparse, rows: b.Rows[i:end]}, b.Y[i:end]
}

// widen writes sparse rows of a tile out, zeros included.
func (w *mlpWorkspace) widen(in *inputs) {
	if in.x != nil {
		return
	}
	if w.dense == nil {
		w.dense = make([]float32, w.rows*w.model.Inputs())
	}
	in.x = w.dense[:len(in.rows)*w.model.Inputs()]
	in.sparse.Copy(in.x, in.rows)
}

// forward computes the outputs of all layers for the rows of a tile and returns the logits. Rows
// that are not taken as they are it widens.
func (w *mlpWorkspace) forward(params []float32, in *inputs, rows int) []float32 {
	x := w.outputs[0][:rows*w.model.layers[0].out]
	if w.sparse != nil {
		w.sparse.forward(x[:len(x)+sparseColumns], in.sparse, in.rows)
	} else {
		w.widen(in)
		w.layer(0, params, in.x, rows)
	}
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
func (w *mlpWorkspace) backward(params, grad []float32, in *inputs, rows int) {
	last := len(w.model.layers) - 1
	d := w.outputs[last][:rows*w.model.layers[last].out]
	for i := last; i >= 0; i-- {
		l := w.model.layers[i]
		weightGrad, biasGrad := l.split(grad)
		sgemm(noTrans, noTrans, 1, l.out, rows, w.ones, rows, d, l.out, 1, biasGrad, l.out)
		if i == 0 {
			w.enterGradient(weightGrad, biasGrad, d, in, rows)
			break
		}
		input := w.outputs[i-1][:rows*l.in]
		addTransposedProduct(weightGrad, d, input, w.nonzeros[i], rows, l.out, l.in)
		weight, _ := l.split(params)
		delta := w.deltas[i-1][:rows*l.in]
		product(delta, d, weight, rows, l.out, l.in)
		w.model.activation.chain(delta, input)
		d = delta
	}
}

// enterGradient adds to the gradient of the first layer's weights what the tile contributes, given
// that of its bias, in which a delta that is not finite shows.
func (w *mlpWorkspace) enterGradient(grad, bias, d []float32, in *inputs, rows int) {
	if in.x == nil && 0*total(bias) == 0 {
		w.sparse.gradient(grad, d[:len(d)+sparseColumns], in.sparse, in.rows)
		return
	}
	w.widen(in)
	l := w.model.layers[0]
	addTransposedProduct(grad, d, in.x, w.nonzeros[0], rows, l.out, l.in)
}
