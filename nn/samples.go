package nn

// Samples are labelled samples laid out for a model, once, so that [Workspace.Logits] can judge
// many parameter vectors by them: a network finds its convolutions' inputs turned already, sample
// by sample in the lanes. They are immutable and safe for concurrent use.
type Samples struct {
	inputs int
	y      []int32
	order  []int32   // of the samples laid out, their places in y; nil: the same
	rows   []float32 // n×inputs in that order, unless they are turned
	turned []float32 // tiles of tileLanes samples, the last one of fewer: inputs×lanes each
}

// newSamples checks n×inputs values, n class indices and an order, which it keeps.
func newSamples(m Model, x []float32, y, order []int32) *Samples {
	if len(x) != len(y)*m.Inputs() {
		panic(badX)
	}
	checkLabels(m, y)
	if order != nil && len(order) != len(y) {
		panic(badOrder)
	}
	seen := make([]bool, len(order))
	for _, i := range order {
		if i < 0 || int(i) >= len(y) || seen[i] {
			panic(badOrder)
		}
		seen[i] = true
	}
	return &Samples{inputs: m.Inputs(), y: y, order: order}
}

// Len is the number of samples.
func (s *Samples) Len() int { return len(s.y) }

// place returns where sample i of those laid out was before.
func (s *Samples) place(i int) int {
	if s.order == nil {
		return i
	}
	return int(s.order[i])
}

// put writes n rows of logits, of the samples laid out from the first one on, to the places that
// these had before.
func (s *Samples) put(to, logits []float32, classes, first, n int) {
	if s.order == nil {
		copy(to[first*classes:], logits[:n*classes])
		return
	}
	for i, place := range s.order[first : first+n] {
		copy(to[int(place)*classes:][:classes], logits[i*classes:])
	}
}

// Correct returns how many of n samples, from the first one laid out on, are classified correctly
// by logits that [Workspace.Logits] has written, in the same way as [Workspace.Evaluate] counts.
func (s *Samples) Correct(logits []float32, first, n int) (correct int) {
	classes := len(logits) / max(len(s.y), 1)
	for i := first; i < first+n; i++ {
		place := s.place(i)
		z := logits[place*classes:][:classes]
		best := maximum(z)
		var sum float32 // shows NaN, whose comparisons do not
		for _, v := range z {
			sum += v - z[best]
		}
		if best == int(s.y[place]) && sum == sum {
			correct++
		}
	}
	return correct
}

// Score returns what [Workspace.Evaluate] does, bit by bit, given the logits of all samples, which
// it overwrites.
func (s *Samples) Score(logits []float32) (loss float64, correct int) {
	sum, classes := lossSum{product: 1}, len(logits)/max(len(s.y), 1)
	for i := 0; i < len(s.y); i += tileRows {
		y := s.y[i:min(i+tileRows, len(s.y))]
		correct += sum.score(logits[i*classes:][:len(y)*classes], classes, y)
	}
	return sum.total(), correct
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

// Samples implements [Model]. Without an order the samples stay where they are.
func (m *MLP) Samples(x []float32, y, order []int32) *Samples {
	s := newSamples(m, x, y, order)
	if s.rows = x; order != nil {
		s.rows = make([]float32, len(x))
		for i, place := range order {
			copy(s.rows[i*s.inputs:], x[int(place)*s.inputs:][:s.inputs])
		}
	}
	return s
}

// Logits implements [Workspace].
func (w *mlpWorkspace) Logits(params []float32, s *Samples, first, n int, to []float32) {
	s.checkLogits(w.model, params, first, n, to)
	classes := w.model.Classes()
	for i := first; i < first+n; i += w.rows {
		rows := min(w.rows, first+n-i)
		s.put(to, w.forward(params, s.rows[i*s.inputs:][:rows*s.inputs], rows), classes, i, rows)
	}
}

// Samples implements [Model]. A copy is made, in which the samples are turned.
func (n *Network) Samples(x []float32, y, order []int32) *Samples {
	s := newSamples(n, x, y, order)
	s.turned = make([]float32, len(x))
	tile := make([]float32, tileLanes*s.inputs)
	for first := 0; first < len(y); first += tileLanes {
		lanes := min(tileLanes, len(y)-first)
		for i := range lanes {
			copy(tile[i*s.inputs:], x[s.place(first+i)*s.inputs:][:s.inputs])
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
		logits := w.forward()
		transpose(w.sorted, logits, w.net.Classes(), w.n)
		s.put(to, w.sorted, w.net.Classes(), w.first, w.n)
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
	transpose(x, w.batch.X[t.first*in:(t.first+t.lanes)*in], t.lanes, in)
	return x
}
