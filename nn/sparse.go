package nn

import "math"

// sparseRows are inputs of samples of which most are 0, for the first layer of an MLP: the others
// alone are multiplied. The chains of sums are the dense product's without its zeros, so the
// bits are the same, but for the sign of a sum that is 0, as long as all weights are finite.
type sparseRows struct {
	start   []uint32 // of each row in entries, and where the last one ends
	entries []sparseEntry
}

// sparseEntry is an input that is not 0, and where its weights begin in spread, in bytes.
type sparseEntry struct {
	value float32
	at    uint32
}

const (
	// sparseColumns is how many outputs a layer may have, and how many columns its weights take.
	sparseColumns = 32
	// sparseInputs is how many inputs it may have; from 384 on dense products have several chains.
	sparseInputs = 256
	// sparseShare is the inverse of the share of inputs other than 0 up to which it pays.
	sparseShare = 4
)

// newSparseRows returns the rows of samples in an order, nil where that is not possible or does not
// pay.
func newSparseRows(l layer, x []float32, order []int32) *sparseRows {
	nonzero := 0
	for _, v := range x {
		if v != 0 {
			nonzero++
		}
	}
	if !sparseProducts || l.in > sparseInputs || l.out > sparseColumns || nonzero > len(x)/sparseShare ||
		uint64(nonzero) > math.MaxUint32 {
		return nil
	}
	r := &sparseRows{start: []uint32{0}, entries: make([]sparseEntry, 0, nonzero)}
	for i := range len(x) / l.in {
		if order != nil {
			i = int(order[i])
		}
		for j, v := range x[i*l.in : (i+1)*l.in] {
			if v != 0 {
				r.entries = append(r.entries, sparseEntry{v, uint32(4 * sparseColumns * j)})
			}
		}
		r.start = append(r.start, uint32(len(r.entries)))
	}
	return r
}

// dense writes rows of a number of inputs from the first one on.
func (r *sparseRows) dense(x []float32, inputs, first int) {
	clear(x)
	for i := range len(x) / inputs {
		for _, e := range r.entries[r.start[first+i]:r.start[first+i+1]] {
			x[i*inputs+int(e.at)/(4*sparseColumns)] = e.value
		}
	}
}

// sparseWeights are the weights and the bias of a layer, spread for sparse rows: a row of columns
// for each input, and one for the bias.
type sparseWeights []float32

// set takes the parameters of a layer in, and reports whether its weights are finite.
func (w *sparseWeights) set(weight, bias []float32, l layer) bool {
	if *w == nil {
		*w = make([]float32, (sparseInputs+1)*sparseColumns)
	}
	to, check := *w, float32(0)
	for o := range l.out {
		for i, v := range weight[o*l.in : (o+1)*l.in] {
			to[i*sparseColumns+o] = v
			check += v * 0
		}
	}
	clear(to[l.in*sparseColumns:][:sparseColumns])
	copy(to[l.in*sparseColumns:], bias)
	return check == 0
}

// product computes the outputs of a layer for n rows from the first one on. It may write into
// sparseColumns elements behind them, for which z has room.
func (w sparseWeights) product(z []float32, r *sparseRows, first, n int, l layer) {
	_ = z[:n*l.out+sparseColumns]
	if n == 0 {
		return
	}
	if len(r.entries) == 0 {
		for i := range n {
			copy(z[i*l.out:(i+1)*l.out], w[l.in*sparseColumns:])
		}
		return
	}
	sparseProduct(&z[0], 4*l.out, n, &r.start[first], &r.entries[0], &w[0], &w[l.in*sparseColumns])
}
