package nn

import "slices"

// Samples are labelled samples laid out for a model, once, so that [Workspace.Logits] can judge
// many parameter vectors by them: a network finds its convolutions' inputs turned already, sample
// by sample in the lanes. They are immutable and safe for concurrent use.
type Samples struct {
	inputs  int
	y       []int32   // in the order in which they are laid out
	place   []int32   // of the samples as they were before, where they are laid out; nil: there
	rows    []float32 // n×inputs, unless they are sparse or turned
	sparse  *Sparse
	numbers []int32    // of the sparse rows: 0, 1 and so on
	turned  []float32  // tiles of tileLanes samples, the last one of fewer: inputs×lanes each
	margin  MarginLoss // 0: the negative log-likelihood of a log-softmax
}

// newSamples checks n×inputs values, n class indices and an order, in which it lays out the latter.
func newSamples(m Model, x []float32, y, order []int32) *Samples {
	if len(x) != len(y)*m.Inputs() {
		panic(badX)
	}
	checkLabels(m, y)
	if order == nil {
		return &Samples{inputs: m.Inputs(), y: y}
	}
	if len(order) != len(y) {
		panic(badOrder)
	}
	s := &Samples{inputs: m.Inputs(), y: make([]int32, len(y)), place: slices.Repeat([]int32{-1}, len(y))}
	for at, i := range order {
		if i < 0 || int(i) >= len(y) || s.place[i] >= 0 {
			panic(badOrder)
		}
		s.y[at], s.place[i] = y[i], int32(at)
	}
	return s
}

// Len is the number of samples.
func (s *Samples) Len() int { return len(s.y) }

// Correct returns how many of n samples, from the first one laid out on, are classified correctly
// by logits that [Workspace.Logits] has written, in the same way as [Workspace.Evaluate] counts.
func (s *Samples) Correct(logits []float32, first, n int) (correct int) {
	classes := len(logits) / max(len(s.y), 1)
	for i, label := range s.y[first : first+n] {
		if class, ok := predicted(logits[(first+i)*classes:][:classes]); ok && class == int(label) {
			correct++
		}
	}
	return correct
}

// predicted is the class that logits stand for; it is not ok if there is NaN.
func predicted(z []float32) (class int, ok bool) {
	class = maximum(z)
	var sum float32 // shows NaN, whose comparisons do not
	for _, v := range z {
		sum += v - z[class]
	}
	return class, sum == sum
}

// Vote adds a vote for the class that each sample is taken for, by logits of all samples, to votes,
// samples×Classes; none if there is NaN. Correct takes votes as it takes logits.
func (s *Samples) Vote(logits, votes []float32) {
	classes := len(logits) / max(len(s.y), 1)
	for i := range s.y {
		if class, ok := predicted(logits[i*classes : (i+1)*classes]); ok {
			votes[i*classes+class]++
		}
	}
}

// Score returns what [Workspace.Evaluate] does, bit by bit, given the logits of all samples. It
// sums the losses in the order that the samples had before they were laid out.
func (s *Samples) Score(logits []float32) (loss float64, correct int) {
	if s.margin != 0 {
		return s.scoreMargins(logits)
	}
	var room [1 << 12]float32
	var labels [TileRows]int32
	sum, classes := lossSum{product: 1}, len(logits)/max(len(s.y), 1)
	z := room[:]
	if classes > len(room) {
		z = make([]float32, classes)
	}
	rows := min(len(z)/max(classes, 1), TileRows)
	for i := 0; i < len(s.y); i += rows {
		n := min(rows, len(s.y)-i)
		for k := range n {
			at := i + k
			if s.place != nil {
				at = int(s.place[at])
			}
			labels[k] = s.y[at]
			to, from := z[k*classes:(k+1)*classes], logits[at*classes:][:classes]
			for j, v := range from { //nolint:staticcheck // of so few values a call of copy takes longer
				to[j] = v
			}
		}
		correct += sum.score(z[:n*classes], classes, labels[:n])
	}
	return sum.total(), correct
}

// scoreMargins is Score of a [Linear] model.
func (s *Samples) scoreMargins(logits []float32) (loss float64, correct int) {
	for i := range s.y {
		at := i
		if s.place != nil {
			at = int(s.place[i])
		}
		one, right := s.margin.judge(logits[2*at+1], s.y[at])
		loss, correct = loss+one, correct+right
	}
	return loss, correct
}

// checkLogits panics unless samples and logits are of the model and the range is one of samples.
func (s *Samples) checkLogits(m Model, params []float32, first, n int, to []float32) {
	switch {
	case len(params) != m.Params():
		panic(badParams)
	case s.inputs != m.Inputs() || len(to) != len(s.y)*m.Classes():
		panic(badLogits)
	case first < 0 || n < 0 || first > len(s.y)-n || first%tileLanes != 0 || n%tileLanes != 0 && first+n != len(s.y):
		panic(badRange)
	}
}

// Samples implements [Model]. Without an order the samples stay where they are; of those that are
// mostly 0 the rest is kept.
func (m *MLP) Samples(x []float32, y, order []int32) *Samples {
	s := newSamples(m, x, y, order)
	if sparseProducts && s.inputs <= sparseInputs {
		if s.sparse = newSparse(x, s.inputs, order, judgingShare); s.sparse != nil {
			s.numbers = make([]int32, len(y))
			for i := range s.numbers {
				s.numbers[i] = int32(i)
			}
			return s
		}
	}
	s.lay(x, order)
	return s
}

// lay takes rows in an order; without one they stay where they are.
func (s *Samples) lay(x []float32, order []int32) {
	if s.rows = x; order != nil {
		s.rows = make([]float32, len(x))
		for i, place := range order {
			copy(s.rows[i*s.inputs:], x[int(place)*s.inputs:][:s.inputs])
		}
	}
}

// Logits implements [Workspace].
func (w *mlpWorkspace) Logits(params []float32, s *Samples, first, n int, to []float32) {
	s.checkLogits(w.model, params, first, n, to)
	classes, in := w.model.Classes(), w.model.Inputs()
	w.take(params, s.sparse)
	for i := first; i < first+n; i += w.rows {
		rows := min(w.rows, first+n-i)
		tile := inputs{sparse: s.sparse}
		if s.sparse != nil {
			tile.rows = s.numbers[i : i+rows]
		} else {
			tile.x = s.rows[i*in : (i+rows)*in]
		}
		copy(to[i*classes:], w.forward(params, &tile, rows))
	}
	w.release()
}

// Samples implements [Model]. A copy is made, in which the samples are turned.
func (n *Network) Samples(x []float32, y, order []int32) *Samples {
	s := newSamples(n, x, y, order)
	s.turned = make([]float32, len(x))
	tile := make([]float32, tileLanes*s.inputs)
	for first := 0; first < len(y); first += tileLanes {
		lanes := min(tileLanes, len(y)-first)
		for i := range lanes {
			at := first + i
			if order != nil {
				at = int(order[at])
			}
			copy(tile[i*s.inputs:], x[at*s.inputs:][:s.inputs])
		}
		transpose(s.turned[first*s.inputs:][:lanes*s.inputs], tile[:lanes*s.inputs], lanes, s.inputs)
	}
	return s
}

// Logits implements [Workspace].
func (w *networkWorkspace) Logits(params []float32, s *Samples, first, n int, to []float32) {
	s.checkLogits(w.net, params, first, n, to)
	rows := w.rows / tileLanes * tileLanes
	if rows == 0 {
		panic(smallWorkspace)
	}
	w.params, w.samples, w.training = params, s, false
	w.prepare()
	for w.first = first; w.first < first+n; w.first += rows {
		w.n = min(rows, first+n-w.first)
		transpose(to[w.first*w.net.Classes():], w.forward(), w.net.Classes(), w.n)
	}
	w.release()
}

// input returns the inputs of the worker's tile, turned.
func (w *networkWorkspace) input(k *networkWorker, unit int) []float32 {
	in, t := w.net.input.Size(), &k.tile
	if w.samples != nil {
		return w.samples.turned[t.first*in:][:t.lanes*in]
	}
	x := w.at(k, unit, 0)
	if s := w.batch.Sparse; s != nil {
		s.turn(x, w.batch.Rows[t.first:][:t.lanes])
		return x
	}
	transpose(x, w.batch.X[t.first*in:(t.first+t.lanes)*in], t.lanes, in)
	return x
}
