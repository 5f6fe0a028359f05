package peer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// alone is a world in which nothing happens but updates.
type alone struct {
	actors.Env
	pool protos.TensorPool
}

func (a *alone) Node() int                   { return 0 }
func (a *alone) Tensors() *protos.TensorPool { return &a.pool }
func (a *alone) Charge(float64)              {}
func (a *alone) Record(actors.Event)         {}

// A peer that joins takes over a model and the step of the others, but nothing of what their
// optimisers remember.
func TestAdamOfAPeerThatJoinsCorrectsItsBiasFromItsOwnFirstUpdateOn(t *testing.T) {
	const steps, beta1, beta2, epsilon = 5000, 0.9, 0.999, 1e-8
	model, err := nn.NewMLP([]int{3, 2}, nn.Tanh)
	if err != nil {
		t.Fatal(err)
	}
	rate := optim.Inverse{First: 0.1, Half: 1000}
	task := &train.Task{Model: model, Method: optim.NewAdam(rate)}
	r := peer.NewReplica(&alone{}, task)
	if err := r.Resume(steps); err != nil {
		t.Fatal(err)
	}
	want := make([]float64, model.Params())
	m, v := make([]float64, len(want)), make([]float64, len(want))
	for i, p := range r.Params.Data {
		want[i] = float64(p)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for update := 1; update <= 10; update++ {
		gradient := make([]float32, len(want))
		for i := range gradient {
			gradient[i] = float32(random.NormFloat64())
			g := float64(gradient[i])
			m[i], v[i] = beta1*m[i]+(1-beta1)*g, beta2*v[i]+(1-beta2)*g*g
			unbiased, root := m[i]/(1-math.Pow(beta1, float64(update))), math.Sqrt(v[i]/(1-math.Pow(beta2,
				float64(update))))
			want[i] -= rate.Rate(steps+update-1) * unbiased / (root + epsilon)
		}
		r.Update(gradient)
		for i, p := range r.Params.Data {
			if d := math.Abs(float64(p) - want[i]); d > 1e-5 {
				t.Fatalf("update %d after step %d: parameter %d is %v, Adam gives %v", update, steps, i, p, want[i])
			}
		}
	}
}
