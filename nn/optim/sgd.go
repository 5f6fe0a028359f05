package optim

import (
	"unsafe"

	"github.com/gradwire/gradwire/nn"
)

// SGD is plain stochastic gradient descent, as torch.optim.SGD without momentum: with the rate η
// and the weight decay λ,
//
//	g ← g + λp
//	p ← p − ηg
//
// (https://pytorch.org/docs/stable/generated/torch.optim.SGD.html). It remembers nothing but the
// number of steps.
type SGD struct {
	Rate Schedule `key:"rate"` // η; required
	// WeightDecay is λ, the factor of an L2 penalty λ/2·‖p‖²; 0 is none.
	WeightDecay float64 `plan:"weight-decay" range:"0.." doc:"factor by which weights pull back to zero"`
}

// Validate names the first field that makes no sense.
func (m SGD) Validate() error { return check(m, "Rate", m.Rate) }

// New implements [Method].
func (m SGD) New(n int) Optimizer {
	return &sgd{core: newCore(m.Rate, n, 0), decay: float32(m.WeightDecay)}
}

type sgd struct {
	core
	decay float32
}

// Step implements [Optimizer].
func (o *sgd) Step(dst, params, grad []float32) {
	rate := float32(o.begin(dst, params, grad))
	if o.decay == 0 {
		addScaled(dst, params, -rate, grad)
		return
	}
	dst, params = dst[:len(grad)], params[:len(grad)]
	for i, g := range grad {
		p := params[i]
		dst[i] = p - float32(rate*(g+float32(o.decay*p)))
	}
}

// addScaled computes dst = x + alpha·y. dst may be x.
func addScaled(dst, x []float32, alpha float32, y []float32) {
	if unsafe.SliceData(dst) == unsafe.SliceData(x) {
		nn.AddScaled(dst, alpha, y)
		return
	}
	const part = 2048 // stays in the cache
	for low := 0; low < len(dst); low += part {
		high := min(low+part, len(dst))
		copy(dst[low:high], x[low:high])
		nn.AddScaled(dst[low:high], alpha, y[low:high])
	}
}

// Work is 2 operations a parameter, 4 with weight decay.
func (o *sgd) Work(n int) float64 { return (2 + decayWork(o.decay)) * float64(n) }

// Momentum is stochastic gradient descent with momentum as in torch.optim.SGD with dampening 0:
// with the rate η, the momentum μ and the weight decay λ,
//
//	g ← g + λp
//	v ← μv + g
//	p ← p − ηv           or, with Nesterov,  p ← p − η(g + μv)
//
// (https://pytorch.org/docs/stable/generated/torch.optim.SGD.html). Unlike in Sutskever et al., "On
// the importance of initialization and momentum in deep learning", ICML 2013, the rate is not a
// factor inside v. Slot 0 is v.
type Momentum struct {
	Rate Schedule `key:"rate"` // η; required
	// Momentum is μ; 0.9 is usual, 0 is plain SGD.
	Momentum float64 `plan:"momentum" range:"0..<1" doc:"the share of the last step that is taken again"`
	Nesterov bool    `plan:"nesterov" doc:"whether the gradient is looked at ahead (Nesterov 1983)"`
	// WeightDecay is λ, the factor of an L2 penalty λ/2·‖p‖²; 0 is none.
	WeightDecay float64 `plan:"weight-decay" range:"0.." doc:"factor by which weights pull back to zero"`
}

// Validate names the first field that makes no sense.
func (m Momentum) Validate() error { return check(m, "Rate", m.Rate) }

// New implements [Method].
func (m Momentum) New(n int) Optimizer {
	return &momentum{core: newCore(m.Rate, n, 1), mu: float32(m.Momentum), decay: float32(m.WeightDecay),
		nesterov: m.Nesterov}
}

type momentum struct {
	core
	mu, decay float32
	nesterov  bool
}

// Step implements [Optimizer].
func (o *momentum) Step(dst, params, grad []float32) {
	rate := float32(o.begin(dst, params, grad))
	v := o.slots[0][:len(grad)]
	dst, params = dst[:len(grad)], params[:len(grad)]
	if o.nesterov {
		for i, g := range grad {
			p := params[i]
			g += float32(o.decay * p)
			vi := float32(o.mu*v[i]) + g
			v[i] = flush(vi)
			dst[i] = p - float32(rate*(g+float32(o.mu*vi)))
		}
		return
	}
	for i, g := range grad {
		p := params[i]
		vi := float32(o.mu*v[i]) + (g + float32(o.decay*p))
		v[i] = flush(vi)
		dst[i] = p - float32(rate*vi)
	}
}

// Work is 4 operations a parameter, 2 more with weight decay and 2 more with Nesterov's look ahead.
func (o *momentum) Work(n int) float64 {
	operations := 4 + decayWork(o.decay)
	if o.nesterov {
		operations += 2
	}
	return operations * float64(n)
}

// decayWork is the number of operations that weight decay adds for each parameter.
func decayWork(decay float32) float64 {
	if decay == 0 {
		return 0
	}
	return 2
}
