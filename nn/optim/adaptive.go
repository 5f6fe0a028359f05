package optim

import (
	"math"

	"github.com/gradwire/gradwire/nn/kernel"
)

// Second says how [Adaptive] remembers the squares of gradients.
type Second string

// The second moments.
const (
	// SecondAdam is a decaying mean: v ← β₂v + (1−β₂)g².
	SecondAdam Second = "adam"
	// SecondYogi moves by as much as g² has, never by more: v ← v − (1−β₂)g²·sign(v − g²).
	SecondYogi Second = "yogi"
	// SecondAdagrad is a sum: v ← v + g².
	SecondAdagrad Second = "adagrad"
)

// Adaptive are the methods of S. Reddi et al., "Adaptive Federated Optimization", ICLR 2021,
// algorithm 2, for what many local steps have led to: with the rate η,
//
//	m ← β₁m + (1−β₁)g
//	v ← as Second says, from τ² on
//	p ← p − η·m / (√v + τ)
//
// Unlike Adam they do not correct the bias of m and v: τ, which is large, takes care of the first
// steps. Slot 0 is m, slot 1 is v − τ², so that a state begins with zeros. The paper uses adagrad
// with β₁ = 0.
//
// The fields are taken literally, zeros as well; NewAdaptive fills in the usual values.
type Adaptive struct {
	Rate   Schedule `key:"rate"` // η; required
	Second Second   `plan:"second" words:"adam|yogi|adagrad" doc:"how the squares of gradients are remembered; the paper has beta1: 0 with adagrad"`
	// Beta1 is β₁ and Beta2 β₂, in the paper 0.9 and 0.99.
	Beta1 float64 `plan:"beta1" range:"0..<1" doc:"decay of the mean of the gradients"`
	Beta2 float64 `plan:"beta2" range:"0..<1" doc:"decay of the mean of their squares; with yogi, 1 less the share of a square that it moves by; adagrad has none"`
	// Tau is τ, in the paper 1e-3.
	Tau float64 `plan:"tau" range:">0" doc:"added to the root of the latter, which begins with it: the larger, the less adaptive"`
}

// NewAdaptive returns a method with the paper's constants: β₁ = 0.9, β₂ = 0.99 and τ = 1e-3.
func NewAdaptive(second Second, rate Schedule) Adaptive {
	return Adaptive{Rate: rate, Second: second, Beta1: 0.9, Beta2: 0.99, Tau: 1e-3}
}

// Validate names the first field that makes no sense.
func (m Adaptive) Validate() error { return check(m, "Rate", m.Rate) }

// New implements [Method].
func (m Adaptive) New(n int) Optimizer { return &adaptive{core: newCore(m.Rate, n, 2), method: m} }

type adaptive struct {
	core
	method Adaptive
}

// Step implements [Optimizer].
func (o *adaptive) Step(dst, params, grad []float32) {
	rate, tau := float32(o.begin(dst, params, grad)), float32(o.method.Tau)
	beta, rest := float32(o.method.Beta1), float32(1-o.method.Beta1)
	first, m, above := float32(tau*tau), o.slots[0], o.slots[1]
	for i, g := range grad {
		v := o.method.second(above[i]+first, float32(g*g))
		m[i], above[i] = kernel.Flush(float32(beta*m[i])+float32(rest*g)), kernel.Flush(v-first)
		dst[i] = params[i] - float32(rate*(m[i]/(float32(math.Sqrt(float64(v)))+tau)))
	}
}

// second is what the second moment v becomes with a square.
func (m *Adaptive) second(v, square float32) float32 {
	rest := float32(float32(1-m.Beta2) * square)
	switch {
	case m.Second == SecondAdagrad:
		return v + square
	case m.Second == SecondAdam:
		return float32(float32(m.Beta2)*v) + rest
	case v > square:
		return v - rest
	case v < square:
		return v + rest
	}
	return v
}

// Work is 14 operations a parameter, a division or square root counting as one.
func (o *adaptive) Work(n int) float64 { return 14 * float64(n) }

var _ Method = Adaptive{}
