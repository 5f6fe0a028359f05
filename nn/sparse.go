package nn

import (
	"math"
	"sync"

	"github.com/gradwire/gradwire/nn/kernel"
)

// Sparse are the inputs of samples most of which are 0. Of each row it holds those that are not 0,
// and before them what makes their number even. It is immutable and safe for concurrent use.
type Sparse struct {
	inputs  int
	start   []uint32 // of each row in entries, and where the last one ends
	entries []sparseEntry
}

// sparseEntry is an input of a row, and its column times entryStep.
type sparseEntry struct {
	value float32
	at    uint32
}

// entryStep is how many bytes a vector of 8 has, so that scaled addresses reach rows of one, two
// and four.
const entryStep = 32

// NewSparse returns the inputs of samples, row after row, nil where so many are not 0 that it does
// not pay to train from it. Later changes of x are not seen.
func NewSparse(x []float32, inputs int) *Sparse { return newSparse(x, inputs, nil, trainingShare) }

// newSparse returns the rows of x in an order, nil where more than a share of all is not 0, of
// which the inverse is given.
func newSparse(x []float32, inputs int, order []int32, share int) *Sparse {
	n := 0
	for _, v := range x {
		n += notZero(v)
	}
	rows := len(x) / inputs
	if n > len(x)/share || uint64(n+2*rows) > math.MaxUint32 || uint64(inputs) > math.MaxUint32/entryStep {
		return nil
	}
	s := &Sparse{inputs: inputs, start: make([]uint32, 1, rows+1), entries: make([]sparseEntry, 0, n+2*rows)}
	for i := range rows {
		if order != nil {
			i = int(order[i])
		}
		s.append(x[i*inputs : (i+1)*inputs])
	}
	return s
}

// append appends a row. Loops take two entries at a time, and at least two: of rows of nearly the
// same length they mispredict fewer ends so.
func (s *Sparse) append(x []float32) {
	n := 0
	for _, v := range x {
		n += notZero(v)
	}
	for range max(n%2, 2-n) {
		s.entries = append(s.entries, sparseEntry{})
	}
	for column, v := range x {
		if notZero(v) == 1 {
			s.entries = append(s.entries, sparseEntry{v, entryStep * uint32(column)})
		}
	}
	s.start = append(s.start, uint32(len(s.entries)))
}

// notZero is 1 for all numbers but 0, among them -0.
func notZero(v float32) int {
	if math.Float32bits(v) == 0 {
		return 0
	}
	return 1
}

// has reports whether there are all of some rows.
func (s *Sparse) has(rows []int32) bool {
	for _, row := range rows {
		if uint(row) >= uint(len(s.start)-1) {
			return false
		}
	}
	return true
}

// Copy writes rows to x, one behind the other, zeros included. It panics if there is no such row or
// x is too short.
func (s *Sparse) Copy(x []float32, rows []int32) {
	clear(x)
	for len(rows) > 0 {
		n := min(len(rows), together)
		s.copy(x[:n*s.inputs], rows[:n])
		x, rows = x[n*s.inputs:], rows[n:]
	}
}

// together is how many rows are copied at a time.
const together = 32

// copy writes rows, at most together, to x, which is 0, first what each begins and ends with: they
// lie anywhere, and memory brings what several begin with in the time that it takes for one.
func (s *Sparse) copy(x []float32, rows []int32) {
	var room [together][]sparseEntry
	of := room[:len(rows)]
	for i, row := range rows {
		of[i] = s.row(row)
	}
	for i, entries := range of {
		first, last := entries[0], entries[len(entries)-1]
		x[i*s.inputs+int(first.at/entryStep)] = first.value
		x[i*s.inputs+int(last.at/entryStep)] = last.value
	}
	for i, entries := range of {
		row := x[i*s.inputs : (i+1)*s.inputs]
		for _, e := range entries {
			row[e.at/entryStep] = e.value
		}
	}
}

// turn writes rows to x, input by input.
func (s *Sparse) turn(x []float32, rows []int32) {
	clear(x)
	for i, row := range rows {
		for _, e := range s.row(row) {
			x[int(e.at/entryStep)*len(rows)+i] = e.value
		}
	}
}

// fetch prepares for products with rows that lie anywhere: memory brings several in the time that
// it takes for one.
func (s *Sparse) fetch(rows []int32) { fetchRows(&rows[0], len(rows), &s.start[0], &s.entries[0]) }

// row is the entries of a row, at least two.
func (s *Sparse) row(row int32) []sparseEntry { return s.entries[s.start[row]:s.start[row+1]] }

const (
	// sparseColumns is how many outputs of a layer are computed at a time.
	sparseColumns = 32
	// sparseInputs is how many inputs a layer may have; with more, dense products have several
	// chains.
	sparseInputs = 384
	// judgingShare is the inverse of the share of inputs other than 0 up to which it pays to
	// compute outputs from them alone, and trainingShare that for steps. Those of NSL-KDD and a9a,
	// where it is an eighth or less, take 0.55 to 0.85 times as long in batches of 64 and more.
	judgingShare, trainingShare = 4, 6
)

// sparseLayer computes the first layer of an MLP from sparse rows. The chains of sums are the dense
// product's without most zeros. As long as weights and deltas are finite, gradients have the same
// bits, because what they are added to is never -0, and outputs but for the sign of one that is 0,
// which no gradient shows.
type sparseLayer struct {
	layer
	pitch   int       // outputs computed at a time, and room for them
	weights []float32 // for pitch outputs at a time a row for each input, and one for the bias
	turned  []float32 // gradients of the weights of pitch outputs, a row for each output
}

// stepRows is from how many rows on it pays for a step to turn the weights of a number of outputs
// and their gradients: as many as are turned at a time, and twice that for the widest where more
// than a seventh of the inputs is not 0. With 64 outputs and a sixth of 383 inputs not 0, steps of
// 32 rows took 1.1 times as long as with the rows written out, of 64 rows 0.94 times.
func (s *Sparse) stepRows(out int) int {
	pitch := sparsePitch(out)
	const share = 7
	if pitch == sparseColumns && len(s.entries) > s.inputs*(len(s.start)-1)/share {
		return 2 * pitch
	}
	return pitch
}

// sparsePitch is how many outputs a layer computes at a time.
func sparsePitch(out int) int {
	pitch := 8
	for pitch < out && pitch < sparseColumns {
		pitch *= 2
	}
	return pitch
}

// idleLayers are sparse layers for use again, by workspaces that take turns: at most as many as
// were in use at one time.
var idleLayers struct {
	sync.Mutex
	free []*sparseLayer
}

// takeSparseLayer returns a sparse layer until it is given back.
func takeSparseLayer(l layer) *sparseLayer {
	s := idleSparseLayer()
	s.layer, s.pitch = l, sparsePitch(l.out)
	s.weights = grow(s.weights, (l.in+1)*((l.out+s.pitch-1)/s.pitch*s.pitch))
	s.turned = grow(s.turned, l.in*s.pitch+kernel.TransposeMargin)
	return s
}

func idleSparseLayer() *sparseLayer {
	idleLayers.Lock()
	defer idleLayers.Unlock()
	n := len(idleLayers.free)
	if n == 0 {
		return &sparseLayer{}
	}
	s := idleLayers.free[n-1]
	idleLayers.free = idleLayers.free[:n-1]
	return s
}

func (s *sparseLayer) giveBack() {
	idleLayers.Lock()
	defer idleLayers.Unlock()
	idleLayers.free = append(idleLayers.free, s)
}

// grow returns room for n elements, the given one if it is enough.
func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n)
	}
	return x[:n]
}

// set takes the parameters in, and reports whether the weights are finite.
func (s *sparseLayer) set(params []float32) bool {
	weight, bias := s.split(params)
	for o := 0; o < s.out; o += s.pitch {
		n, to := min(s.pitch, s.out-o), s.weights[o*(s.in+1):]
		kernel.Transpose(to, s.pitch, weight[o*s.in:], s.in, n, s.in)
		copy(to[s.in*s.pitch:], bias[o:o+n])
	}
	return finite(weight)
}

// finite reports whether all elements of x are.
func finite(x []float32) bool {
	var sums [8]float32
	if n := len(x) &^ 31; n > 0 {
		zeroTimes(&sums, &x[0], n)
		x = x[n:]
	}
	sum := total(sums[:])
	for _, v := range x {
		sum += 0 * v
	}
	return sum == 0
}

// forward computes the outputs for rows. It may write into sparseColumns elements behind them, for
// which z has room.
func (s *sparseLayer) forward(z []float32, x *Sparse, rows []int32) {
	// What the last outputs write beyond the end of a row is mended by those before them.
	for o := (s.out - 1) / s.pitch * s.pitch; o >= 0; o -= s.pitch {
		weights := s.weights[o*(s.in+1):]
		sparseProduct(&z[o], 4*s.out, &rows[0], len(rows), &x.start[0], &x.entries[0], &weights[0],
			&weights[s.in*s.pitch], s.pitch/8)
	}
}

// gradient adds to the gradient of the weights what rows contribute, whose deltas are in d. It may
// read sparseColumns elements behind them, for which d has room.
func (s *sparseLayer) gradient(grad, d []float32, x *Sparse, rows []int32) {
	sums := s.weights[:s.in*s.pitch]
	for o := 0; o < s.out; o += s.pitch {
		n := min(s.pitch, s.out-o)
		clear(sums)
		sparseGradient(&sums[0], &d[o], 4*s.out, &rows[0], len(rows), &x.start[0], &x.entries[0], s.pitch/8)
		kernel.Transpose(s.turned, s.in, sums, s.pitch, s.in, n)
		AddScaled(grad[o*s.in:(o+n)*s.in], 1, s.turned[:n*s.in])
	}
}
