package optim

import "github.com/gradwire/gradwire/nn/kernel"

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
	WeightDecay float64 `plan:"weight-decay" range:"0.." doc:"times each parameter, biases too, this is added to the gradient (an L2 penalty)"`
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
		kernel.Axpy(dst, -rate, grad, params)
		return
	}
	dst, params = dst[:len(grad)], params[:len(grad)]
	for i, g := range grad {
		p := params[i]
		dst[i] = p - float32(rate*(g+float32(o.decay*p)))
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
	Momentum float64 `plan:"momentum" range:"0..<1" doc:"factor of the velocity, to which each gradient is added; a step is the rate times the velocity"`
	Nesterov bool    `plan:"nesterov" doc:"whether a step is the rate times the sum of the gradient and momentum times the velocity (Nesterov 1983, as PyTorch has it)"`
	// WeightDecay is λ, the factor of an L2 penalty λ/2·‖p‖²; 0 is none.
	WeightDecay float64 `plan:"weight-decay" range:"0.." doc:"times each parameter, biases too, this is added to the gradient (an L2 penalty)"`
}

// Validate names the first field that makes no sense.
func (m Momentum) Validate() error { return check(m, "Rate", m.Rate) }

// New implements [Method].
func (m Momentum) New(n int) Optimizer {
	return &momentum{newCore(m.Rate, n, 1),
		kernel.Momentum{Mu: float32(m.Momentum), Decay: float32(m.WeightDecay), Nesterov: m.Nesterov}}
}

type momentum struct {
	core
	method kernel.Momentum
}

// Step implements [Optimizer].
func (o *momentum) Step(dst, params, grad []float32) {
	o.method.Rate = float32(o.begin(dst, params, grad))
	o.method.Step(dst, o.slots[0], params, grad)
}

// Work is 4 operations a parameter, 2 more with weight decay and 2 more with Nesterov's look ahead.
func (o *momentum) Work(n int) float64 {
	operations := 4 + decayWork(o.method.Decay)
	if o.method.Nesterov {
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
