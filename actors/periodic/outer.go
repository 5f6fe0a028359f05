package periodic

import "github.com/gradwire/gradwire/nn/optim"

// Outer is the outer optimizer of nodes that all hold the shared model φ, and exchange it as a
// whole or part by part. What it remembers is that of all parameters; each part makes steps of its
// own.
type Outer struct {
	optim.Adopter
	slots [][]float32
	part  optim.State // of the present step
}

// NewOuter makes the outer optimizer of a method for n parameters. It returns an error if the
// method's optimizers are no [optim.Adopter].
func NewOuter(m optim.Method, n int) (*Outer, error) {
	o, err := adopter(m, n)
	if err != nil {
		return nil, err
	}
	state := o.State()
	return &Outer{Adopter: o, slots: state.Slots, part: optim.State{Slots: make([][]float32, len(state.Slots))}}, nil
}

// Step writes to dst what a part phi of the shared model becomes by the mean of the Δ of all nodes,
// see [optim.Optimizer]. The part begins with the parameter low, and has made a number of steps.
func (o *Outer) Step(dst, phi, mean []float32, low, steps int) {
	for i, slot := range o.slots {
		o.part.Slots[i] = slot[low : low+len(mean)]
	}
	o.part.Step, o.part.Updates = steps, steps
	o.Adopt(len(mean), o.part)
	o.Adopter.Step(dst, phi, mean)
}

// Slots are what it remembers of all parameters, a vector for each quantity, to be read or replaced
// by those of another node.
func (o *Outer) Slots() [][]float32 { return o.slots }

// Averages reports whether a step with an outer optimizer makes φ the mean of the models that have
// come from it, but for rounding: plain gradient descent of rate 1 does, and so does none.
func Averages(m optim.Method) bool {
	switch m := m.(type) {
	case nil:
		return true
	case optim.SGD:
		return m.Rate == optim.Constant(1) && m.WeightDecay == 0
	case optim.Momentum:
		return m.Rate == optim.Constant(1) && m.Momentum == 0 && m.WeightDecay == 0
	}
	return false
}
