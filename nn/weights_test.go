package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradwire/gradwire/nn"
)

// weighed is a model with a random batch, whose samples a sparse copy has too.
type weighed struct {
	name   string
	model  nn.Model
	params []float32
	batch  nn.Batch
}

func weighedModels(t *testing.T, n int) (all []weighed) {
	t.Helper()
	network, err := nn.NewNetwork(nn.Shape{Channels: 1, Height: 6, Width: 6}, []nn.Layer{
		nn.Conv2D{Channels: 3, Kernel: 3}, nn.ReLU, nn.Flatten{}, nn.Dense{Outputs: 4}})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	for name, m := range map[string]nn.Model{"mlp": newMLP(t, nn.Tanh, 36, 9, 4), "network": network} {
		w := weighed{name, m, make([]float32, m.Params()), denseBatch(r, m, n)}
		m.Init(w.params, r)
		thin(r, w.batch.X, 0.1)
		all = append(all, w)
		w.name += " of sparse samples"
		rows := make([]int32, n)
		for i := range rows {
			rows[i] = int32(i)
		}
		if s := nn.NewSparse(w.batch.X, m.Inputs()); s == nil {
			t.Fatal("the samples are not taken to be sparse")
		} else {
			w.batch = nn.Batch{Y: w.batch.Y, Sparse: s, Rows: rows}
		}
		all = append(all, w)
	}
	return all
}

func (w *weighed) gradient(b nn.Batch) (float64, []float32) {
	grad := make([]float32, w.model.Params())
	loss := w.model.NewWorkspace(len(b.Y)).Gradient(w.params, grad, b)
	return loss, grad
}

func TestASampleOfWeightTwoIsTwoSamples(t *testing.T) {
	for _, n := range []int{20, 300} {
		for _, w := range weighedModels(t, n) {
			in := w.model.Inputs()
			repeated := nn.Batch{Sparse: w.batch.Sparse}
			for i, y := range w.batch.Y {
				for range y + 1 { // class c has weight c + 1
					repeated.Y = append(repeated.Y, y)
					if w.batch.Sparse != nil {
						repeated.Rows = append(repeated.Rows, int32(i))
					} else {
						repeated.X = append(repeated.X, w.batch.X[i*in:(i+1)*in]...)
					}
				}
			}
			want, wantGrad := w.gradient(repeated)
			w.batch.Weights = []float32{1, 2, 3, 4}
			loss, grad := w.gradient(w.batch)
			if math.Abs(loss-want) > 1e-6*want {
				t.Errorf("%s, %d samples: loss %v, of repeated samples %v", w.name, n, loss, want)
			}
			for i := range grad {
				if !near(grad[i], float64(wantGrad[i]), 0.1) {
					t.Fatalf("%s, %d samples: grad[%d] = %v, of repeated samples %v", w.name, n, i, grad[i],
						wantGrad[i])
				}
			}
		}
	}
}

// The losses of the samples are taken one by one, without weights.
func TestTheWeightedLossIsTheWeightedMeanAndTheGradientItsSlope(t *testing.T) {
	weights := []float32{0.5, 3, 1e-3, 12}
	for _, w := range weighedModels(t, 30) {
		workspace := w.model.NewWorkspace(30)
		mean := func() float64 {
			sum, total := 0.0, 0.0
			for i, y := range w.batch.Y {
				one := nn.Batch{Y: w.batch.Y[i : i+1], Sparse: w.batch.Sparse}
				if one.Sparse != nil {
					one.Rows = w.batch.Rows[i : i+1]
				} else {
					one.X = w.batch.X[i*w.model.Inputs() : (i+1)*w.model.Inputs()]
				}
				loss, _ := workspace.Evaluate(w.params, one)
				sum, total = sum+float64(weights[y])*loss, total+float64(weights[y])
			}
			return sum / total
		}
		weighted := w.batch
		weighted.Weights = weights
		loss, grad := w.gradient(weighted)
		if want := mean(); math.Abs(loss-want) > 1e-6*want {
			t.Errorf("%s: loss %v, the weighted mean is %v", w.name, loss, want)
		}
		const h = 1. / 512
		for i := 0; i < len(grad); i += 7 {
			p := w.params[i]
			w.params[i] = p + h
			up := mean()
			w.params[i] = p - h
			down := mean()
			w.params[i] = p
			if slope := (up - down) / (2 * h); math.Abs(slope-float64(grad[i])) > 2e-3 {
				t.Errorf("%s: slope along parameter %d is %v, gradient %v", w.name, i, slope, grad[i])
			}
		}
	}
}

func TestWeightsOfAnyScaleGiveTheSameGradientAndNothingIsAllocated(t *testing.T) {
	for _, w := range weighedModels(t, 40) {
		want, wantGrad := w.gradient(w.batch)
		for _, scale := range []float32{1, 1024, 1. / 1024} {
			w.batch.Weights = []float32{scale, scale, scale, scale}
			loss, grad := w.gradient(w.batch)
			if math.Abs(loss-want) > 1e-9*want {
				t.Errorf("%s, all weights %v: loss %v, without %v", w.name, scale, loss, want)
			}
			for i := range grad {
				if !near(grad[i], float64(wantGrad[i]), 0.01) {
					t.Fatalf("%s, all weights %v: grad[%d] = %v, without %v", w.name, scale, i, grad[i], wantGrad[i])
				}
			}
		}
		workspace, grad := w.model.NewWorkspace(40), make([]float32, w.model.Params())
		if n := testing.AllocsPerRun(10, func() { workspace.Gradient(w.params, grad, w.batch) }); n > 0 {
			t.Errorf("%s: %v allocations a step", w.name, n)
		}
	}
}

func TestALossThatIsNoNumberShowsInTheWeightedMean(t *testing.T) {
	for _, w := range weighedModels(t, 20) {
		w.batch.Weights = []float32{1, 2, 3, 4}
		for i := range w.params {
			w.params[i] = float32(math.NaN())
		}
		if loss, _ := w.gradient(w.batch); !math.IsNaN(loss) {
			t.Errorf("%s: loss %v of NaN", w.name, loss)
		}
	}
}
