// Package periodic holds what training by local steps and a rare exchange is made of, whoever
// exchanges with whom: how long a node works on its own ([Work]), by which optimizer and with which
// state ([Inner]), with what pull and correction ([Pull], [Correction]), how much each node counts
// ([Coefficients]), and what becomes of the shared model ([PseudoGradient], and any optim.Method as
// the outer optimizer, see [Outer]).
//
// What is exchanged is the pseudo-gradient Δ = φ − θ of a node: φ is the model that all shared
// last, θ what the node's steps have made of it. An outer optimizer takes the mean of the Δ for a
// gradient at φ. With SGD of rate 1 that is the mean of the models (H. B. McMahan et al.,
// "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017), with
// optim.Momentum and Nesterov it is DiLoCo (A. Douillard et al., arXiv 2311.08105), and with
// optim.Adaptive it is FedOpt (S. Reddi et al., "Adaptive Federated Optimization", ICLR 2021).
//
// There are no actors here: all is functions of vectors, and plain state.
package periodic

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
)

// Work is what a node does on its own between two exchanges.
type Work struct {
	// Epochs counts passes through the node's samples, Steps its steps. One of the two is positive.
	Epochs int `plan:"epochs,omitzero" range:"1..1048576" either:"epochs|steps" counts:"interval=passes" doc:"passes through a node's own samples"`
	Steps  int `plan:"steps,omitzero" range:"1..1048576" either:"epochs|steps" counts:"interval=steps|epochs|samples" doc:"steps; or 0.1 epochs, or 4000 samples, of all clients of a round together"`
	// Time ends the work early, with the step under way; 0 does not.
	Time time.Duration `plan:"time,omitzero" range:">0s" counts:"interval=time" doc:"after which a node ends its work early, with the step under way, and sends what it has; default: it ends nothing early"`
}

// Of is how many steps that is for a node whose passes take a number of them.
func (w Work) Of(pass int) int {
	if w.Steps > 0 {
		return w.Steps
	}
	return w.Epochs * pass
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (w Work) Validate() error { return field.Check(w) }

// State says what becomes of a node's inner optimizer between its exchanges.
type State string

// The states.
const (
	// Fresh forgets it: each round begins without a momentum, as FedAvg does.
	Fresh State = "fresh"
	// Kept has it go on, as DiLoCo does.
	Kept State = "kept"
)

// Inner is the optimizer of a node's local steps. The schedule of its rate goes by rounds, not by
// steps: the node says when one begins, and the rate is the same for all its steps.
type Inner struct {
	optim.Adopter
	state optim.State
	fate  State
	round int
}

// NewInner makes the inner optimizer of a method for n parameters. It returns an error if the
// method's optimizers are no [optim.Adopter].
func NewInner(m optim.Method, n int, fate State) (*Inner, error) {
	o, err := adopter(m, n)
	if err != nil {
		return nil, err
	}
	return &Inner{Adopter: o, state: o.State(), fate: fate}, nil
}

// adopter makes an optimizer that works on the state of others.
func adopter(m optim.Method, n int) (optim.Adopter, error) {
	o, ok := m.New(n).(optim.Adopter)
	if !ok {
		return nil, fmt.Errorf("optimizer %T cannot be told how far its schedule is: it is no optim.Adopter", m)
	}
	return o, nil
}

// Begin begins a round, counted from 0.
func (i *Inner) Begin(round int) {
	i.round = round
	if i.fate == Kept {
		return
	}
	i.state.Updates = 0
	for _, slot := range i.state.Slots {
		clear(slot)
	}
}

// Step makes a step of the round, see [optim.Optimizer].
func (i *Inner) Step(dst, params, grad []float32) {
	i.state.Step = i.round
	i.Adopt(len(params), i.state)
	i.Adopter.Step(dst, params, grad)
	i.state.Updates++
}

// Pull adds the gradient of the proximal term μ/2·‖θ − φ‖² to that at θ (T. Li et al., "Federated
// Optimization in Heterogeneous Networks", MLSys 2020, equation 2).
func Pull(gradient []float32, mu float32, theta, phi []float32) {
	for k, v := range theta {
		gradient[k] += float32(mu * (v - phi[k]))
	}
}

// Correction is what SCAFFOLD adds to each gradient of a node with a control of its own: c − c_i
// (S. P. Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
// ICML 2020, equation 3).
func Correction(dst, control, own []float32) { nn.WeightedSum(dst, 1, control, -1, own) }

// PseudoGradient is Δ = φ − θ.
func PseudoGradient(dst, phi, theta []float32) { nn.WeightedSum(dst, 1, phi, -1, theta) }
