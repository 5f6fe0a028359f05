package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// drawSet draws samples of a model, of each of which a number of inputs at most are not 0.
func drawSet(r *rand.Rand, m nn.Model, n, most int) nn.Batch {
	set := denseBatch(r, m, n)
	clear(set.X)
	for i := range n {
		row := set.X[i*m.Inputs() : (i+1)*m.Inputs()]
		for _, column := range r.Perm(len(row))[:most] {
			row[column] = float32(r.NormFloat64())
			switch r.IntN(20) {
			case 0:
				row[column] = float32(math.Copysign(0, -1))
			case 1:
				clear(row)
			}
		}
	}
	return set
}

// draw draws a batch of rows of a set, as rows and as copies of them.
func draw(r *rand.Rand, m nn.Model, set nn.Batch, s *nn.Sparse, n int) (sparse, dense nn.Batch) {
	sparse.Sparse = s
	for range n {
		row := r.IntN(len(set.Y))
		sparse.Rows = append(sparse.Rows, int32(row))
		dense.X = append(dense.X, set.X[row*m.Inputs():(row+1)*m.Inputs()]...)
		dense.Y = append(dense.Y, set.Y[row])
	}
	sparse.Y = dense.Y
	return sparse, dense
}

// same compares floats by their bits, all NaN being one.
func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) || a != a && b != b }

func TestSparseBatchesHaveTheBitsOfDenseOnes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		if rapid.Bool().Draw(t, "wide") {
			widths := []int{rapid.SampledFrom([]int{93, 123, 384, 385}).Draw(t, "inputs"), 16, 33, 5}
			hidden := rapid.IntRange(1, 3).Draw(t, "hidden")
			activation := rapid.SampledFrom([]nn.Activation{nn.ReLU, nn.Tanh, nn.Sigmoid}).Draw(t, "activation")
			var err error
			if m, err = nn.NewMLP(append(widths[:hidden:hidden], widths[3]), activation); err != nil {
				t.Fatal(err)
			}
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		set := drawSet(r, m, 50, rapid.IntRange(0, m.Inputs()/6).Draw(t, "most"))
		s := nn.NewSparse(set.X, m.Inputs())
		if s == nil {
			if m.Inputs() >= 6 {
				t.Fatal("no sparse rows")
			}
			return
		}
		params := make([]float32, m.Params())
		m.Init(params, r)
		if v := rapid.SampledFrom([]float64{0, 0, 0, math.NaN(), math.Inf(1), 1e38}).Draw(t, "strange"); v != 0 {
			params[r.IntN(len(params))] = float32(v)
		}
		n := rapid.SampledFrom([]int{1, 2, 8, 16, 31, 32, 100, 257, 300}).Draw(t, "batch")
		sparse, dense := draw(r, m, set, s, n)
		compareBatches(t, m, params, sparse, dense)
	})
}

// compareBatches compares what becomes of two batches, bit by bit.
func compareBatches(t *rapid.T, m nn.Model, params []float32, got, want nn.Batch) {
	n := len(want.Y)
	w, grad, wantGrad := m.NewWorkspace(n), make([]float32, len(params)), make([]float32, len(params))
	for range 2 { // the first one leaves something in the workspace
		if loss, wantLoss := w.Gradient(params, grad, got), m.NewWorkspace(n).Gradient(params, wantGrad, want); !same(
			loss, wantLoss) {
			t.Fatalf("loss %v, want %v", loss, wantLoss)
		}
		for i, g := range grad {
			if math.Float32bits(g) != math.Float32bits(wantGrad[i]) && (g == g || wantGrad[i] == wantGrad[i]) {
				t.Fatalf("gradient %d is %v, want %v", i, g, wantGrad[i])
			}
		}
	}
	loss, correct := w.Evaluate(params, got)
	wantLoss, wantCorrect := m.NewWorkspace(n).Evaluate(params, want)
	if !same(loss, wantLoss) || correct != wantCorrect {
		t.Fatalf("loss %v and %d correct, want %v and %d", loss, correct, wantLoss, wantCorrect)
	}
}

func TestSparseRowsAreCopiedBitByBit(t *testing.T) {
	m := newMLP(t, nn.ReLU, 93, 2)
	r := rand.New(rand.NewPCG(1, 2))
	set := drawSet(r, m, 100, 15)
	sparse, dense := draw(r, m, set, nn.NewSparse(set.X, 93), 40)
	x := slices.Repeat([]float32{7}, len(dense.X))
	sparse.Sparse.Copy(x, sparse.Rows)
	if !slices.Equal(bits(x), bits(dense.X)) {
		t.Error("other bits")
	}
	for i := range set.X[:len(set.X)/6+1] {
		set.X[i] = 1
	}
	if nn.NewSparse(set.X, 93) != nil {
		t.Error("more than a sixth is sparse")
	}
}

func TestStepsFromSparseRowsAllocateNothing(t *testing.T) {
	m := newMLP(t, nn.ReLU, 93, 40, 5)
	r := rand.New(rand.NewPCG(1, 2))
	set := drawSet(r, m, 100, 12)
	sparse, _ := draw(r, m, set, nn.NewSparse(set.X, 93), 70)
	params, grad, w := make([]float32, m.Params()), make([]float32, m.Params()), m.NewWorkspace(70)
	if n := testing.AllocsPerRun(3, func() { w.Gradient(params, grad, sparse) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMistakesWithSparseRowsPanic(t *testing.T) {
	x := make([]float32, 12)
	s := nn.NewSparse(x, 6)
	for name, b := range map[string]nn.Batch{
		"inputs":   {Sparse: nn.NewSparse(x, 12), Rows: []int32{0}, Y: []int32{0}},
		"few":      {Sparse: s, Rows: []int32{0}, Y: []int32{0, 0}},
		"beyond":   {Sparse: s, Rows: []int32{2}, Y: []int32{0}},
		"negative": {Sparse: s, Rows: []int32{-1}, Y: []int32{0}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			m := newMLP(t, nn.ReLU, 6, 2)
			m.NewWorkspace(2).Evaluate(make([]float32, m.Params()), b)
		}()
	}
}

// BenchmarkSparseStep is a step of stochastic gradient descent with batches drawn from many
// samples: copied as they are, or as sparse rows. Where there are no such rows it is as before.
func BenchmarkSparseStep(b *testing.B) {
	for _, c := range []struct {
		layers []int
		most   int
	}{
		{[]int{93, 16, 5}, 12}, {[]int{93, 64, 32, 5}, 12}, {[]int{123, 2}, 14}, {[]int{123, 16, 2}, 14},
		{[]int{784, 32, 10}, 150},
	} {
		m := newMLP(b, nn.ReLU, c.layers...)
		r := rand.New(rand.NewPCG(1, 2))
		set := drawSet(r, m, 1<<15*93/m.Inputs(), c.most)
		s := nn.NewSparse(set.X, m.Inputs())
		for _, n := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("%v/batch=%d/dense", c.layers, n), func(b *testing.B) { steps(b, m, set, nil, n) })
			if s != nil {
				b.Run(fmt.Sprintf("%v/batch=%d/sparse", c.layers, n), func(b *testing.B) { steps(b, m, set, s, n) })
			}
		}
	}
}

// steps makes steps of batches of n samples of a set, from sparse rows if there are.
func steps(b *testing.B, m nn.Model, set nn.Batch, s *nn.Sparse, n int) {
	r := rand.New(rand.NewPCG(1, 2))
	params, grad, w := make([]float32, m.Params()), make([]float32, m.Params()), m.NewWorkspace(n)
	m.Init(params, r)
	step := optim.SGD{Rate: optim.Constant(0.01)}.New(m.Params())
	batch := nn.Batch{Sparse: s, Rows: make([]int32, n), Y: make([]int32, n)}
	if s == nil {
		batch.X = make([]float32, n*m.Inputs())
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range n {
			row := r.IntN(len(set.Y))
			batch.Rows[i], batch.Y[i] = int32(row), set.Y[row]
			if s == nil {
				copy(batch.X[i*m.Inputs():(i+1)*m.Inputs()], set.X[row*m.Inputs():])
			}
		}
		w.Gradient(params, grad, batch)
		step.Step(params, params, grad)
	}
}
