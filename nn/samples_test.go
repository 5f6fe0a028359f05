package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/nn"
)

// drawModel draws a network, an MLP or a linear model.
func drawModel(t *rapid.T) nn.Model {
	if rapid.IntRange(0, 3).Draw(t, "linear") == 0 {
		m, err := nn.NewLinear(rapid.IntRange(1, 40).Draw(t, "inputs"),
			rapid.SampledFrom([]nn.MarginLoss{nn.Hinge, nn.Squared}).Draw(t, "loss"))
		if err != nil {
			t.Fatal(err)
		}
		return drawnLinear{m}
	}
	if rapid.Bool().Draw(t, "MLP") {
		widths := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 3).Draw(t, "widths")
		m, err := nn.NewMLP(append(widths, rapid.IntRange(2, 9).Draw(t, "classes")), nn.ReLU)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	input := nn.Shape{Channels: rapid.IntRange(1, 3).Draw(t, "channels"),
		Height: rapid.IntRange(1, 9).Draw(t, "height"), Width: rapid.IntRange(1, 9).Draw(t, "width")}
	m, err := nn.NewNetwork(input, drawLayers(t, input))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// laidOut draws a model and samples for it, many of whose values are 0, in their order or in
// another one. Some models have a weight that is not finite.
func laidOut(t *rapid.T) (m nn.Model, params []float32, b nn.Batch, order []int32) {
	m = drawModel(t)
	params, b = start(rapid.Uint64().Draw(t, "seed"), m, rapid.IntRange(1, 100).Draw(t, "samples"))
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
	dense := rapid.Float64Range(0, 1).Draw(t, "share that is not 0")
	for i := range b.X {
		if r.Float64() >= dense {
			b.X[i] = 0
		}
	}
	if strange := rapid.SampledFrom([]float64{0, 0, 0, math.NaN(), math.Inf(1)}).Draw(t, "strange"); strange != 0 {
		params[r.IntN(len(params))] = float32(strange)
	}
	if rapid.Bool().Draw(t, "in another order") {
		for _, i := range r.Perm(len(b.Y)) {
			order = append(order, int32(i))
		}
	}
	return m, params, b, order
}

func TestSamplesLaidOutAreJudgedAsABatchIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, params, b, order := laidOut(t)
		n := len(b.Y)
		wantLoss, want := m.NewWorkspace(256).Evaluate(params, b)

		s := m.Samples(b.X, b.Y, order)
		w := m.NewWorkspace(rapid.IntRange(16, 300).Draw(t, "workspace"))
		logits := make([]float32, n*m.Classes())
		first := min(16*rapid.IntRange(0, 6).Draw(t, "tiles"), n)
		if first == n {
			first = n / 16 * 16
		}
		w.Logits(params, s, 0, first, logits)
		before := s.Correct(logits, 0, first)
		if got := countRight(m, params, b, order, first); before != got {
			t.Fatalf("%d of the first %d are right, want %d", before, first, got)
		}
		w.Logits(params, s, first, n-first, logits)
		if got := before + s.Correct(logits, first, n-first); got != want {
			t.Fatalf("%d of %d are right, want %d", got, n, want)
		}
		loss, correct := s.Score(logits)
		if math.Float64bits(loss) != math.Float64bits(wantLoss) && (loss == loss || wantLoss == wantLoss) {
			t.Fatalf("loss %v, want %v", loss, wantLoss)
		}
		if correct != want || s.Len() != n {
			t.Fatalf("%d of %d are right, want %d of %d", correct, s.Len(), want, n)
		}
	})
}

// countRight counts one by one how many of the first samples in an order are classified correctly.
func countRight(m nn.Model, params []float32, b nn.Batch, order []int32, first int) (right int) {
	w := m.NewWorkspace(1)
	for i := range first {
		if order != nil {
			i = int(order[i])
		}
		_, correct := w.Evaluate(params, nn.Batch{X: b.X[i*m.Inputs() : (i+1)*m.Inputs()], Y: b.Y[i : i+1]})
		right += correct
	}
	return right
}

func TestLogitsAllocateNothing(t *testing.T) {
	for _, m := range []nn.Model{nn.SmallCNN(), newMLP(t, nn.Tanh, 93, 21, 5)} {
		params, b := start(1, m, 70)
		w, s, logits := m.NewWorkspace(32), m.Samples(b.X, b.Y, nil), make([]float32, 70*m.Classes())
		if n := testing.AllocsPerRun(3, func() {
			w.Logits(params, s, 0, 70, logits)
			s.Correct(logits, 0, 70)
			s.Score(logits)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestMistakesWithSamplesPanic(t *testing.T) {
	m := newMLP(t, nn.ReLU, 2, 3)
	params, b := start(1, m, 40)
	s, w, to := m.Samples(b.X, b.Y, nil), m.NewWorkspace(16), make([]float32, 40*3)
	for name, do := range map[string]func(){
		"label":    func() { m.Samples([]float32{1, 2}, []int32{3}, nil) },
		"values":   func() { m.Samples([]float32{1}, []int32{0}, nil) },
		"short":    func() { m.Samples(b.X, b.Y, []int32{0}) },
		"twice":    func() { m.Samples(b.X[:4], b.Y[:2], []int32{1, 1}) },
		"outside":  func() { m.Samples(b.X[:4], b.Y[:2], []int32{1, 2}) },
		"params":   func() { w.Logits(params[1:], s, 0, 40, to) },
		"logits":   func() { w.Logits(params, s, 0, 40, to[1:]) },
		"begin":    func() { w.Logits(params, s, 8, 16, to) },
		"end":      func() { w.Logits(params, s, 0, 17, to) },
		"beyond":   func() { w.Logits(params, s, 32, 16, to) },
		"negative": func() { w.Logits(params, s, -16, 16, to) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			do()
		}()
	}
}
