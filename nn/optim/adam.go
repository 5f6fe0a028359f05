package optim

import (
	"math"

	"github.com/gradwire/gradwire/nn/kernel"
)

// Adam is the method of Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015,
// algorithm 1, as torch.optim.Adam computes it: in its update t = 1, 2, … with the rate η and the
// weight decay λ,
//
//	g ← g + λp
//	m ← β₁m + (1−β₁)g
//	v ← β₂v + (1−β₂)g²
//	p ← p − η/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)
//
// (https://pytorch.org/docs/stable/generated/torch.optim.Adam.html). The weight decay is an L2
// penalty that passes through m and v, not the decoupled one of AdamW. Slot 0 is m, slot 1 is v.
//
// The fields are taken literally, zeros as well; NewAdam fills in the usual values.
type Adam struct {
	Rate Schedule `key:"rate"` // η; required
	// Beta1 is β₁ and Beta2 β₂, usually 0.9 and 0.999.
	Beta1 float64 `plan:"beta1" range:"0..<1" doc:"decay of the mean of the gradients"`
	Beta2 float64 `plan:"beta2" range:"0..<1" doc:"decay of the mean of their squares"`
	// Epsilon is ε, usually 1e-8.
	Epsilon float64 `plan:"epsilon" range:">0" doc:"added to the root of the latter"`
	// WeightDecay is λ, the factor of an L2 penalty λ/2·‖p‖²; 0 is none.
	WeightDecay float64 `plan:"weight-decay" range:"0.." doc:"times each parameter, biases too, this is added to the gradient before both means (an L2 penalty, not AdamW)"`
}

// NewAdam returns Adam with the constants that the paper recommends, β₁ = 0.9, β₂ = 0.999 and ε =
// 1e-8, and no weight decay.
func NewAdam(rate Schedule) Adam {
	return Adam{Rate: rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
}

// Validate names the first field that makes no sense.
func (m Adam) Validate() error { return check(m, "Rate", m.Rate) }

// New implements [Method].
func (m Adam) New(n int) Optimizer { return &adam{core: newCore(m.Rate, n, 2), method: m} }

type adam struct {
	core
	method Adam
}

// Step implements [Optimizer].
func (o *adam) Step(dst, params, grad []float32) {
	rate := o.begin(dst, params, grad)
	t := float64(o.updates)
	step := kernel.Adam{
		Beta1: float32(o.method.Beta1), Rest1: float32(1 - o.method.Beta1),
		Beta2: float32(o.method.Beta2), Rest2: float32(1 - o.method.Beta2),
		Size:    float32(rate / (1 - math.Pow(o.method.Beta1, t))),
		Root:    float32(1 / math.Sqrt(1-math.Pow(o.method.Beta2, t))),
		Epsilon: float32(o.method.Epsilon), Decay: float32(o.method.WeightDecay),
	}
	step.Step(dst, o.slots[0], o.slots[1], params, grad)
}

// Work is 13 operations a parameter, 15 with weight decay, a division or square root counting as
// one.
func (o *adam) Work(n int) float64 {
	return (13 + decayWork(float32(o.method.WeightDecay))) * float64(n)
}

var (
	_ Method = SGD{}
	_ Method = Momentum{}
	_ Method = Adam{}
)
