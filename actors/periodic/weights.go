package periodic

import "github.com/gradwire/gradwire/nn/optim"

// Weights says how much each node counts in an exchange.
type Weights string

// The weights.
const (
	// Samples weighs a node by how many samples it has.
	Samples Weights = "samples"
	// Equal weighs all alike.
	Equal Weights = "equal"
	// Normalised is FedNova: by samples, each Δ divided by the steps that have led to it, and their
	// mean times the mean of these (J. Wang et al., "Tackling the Objective Inconsistency Problem
	// in Heterogeneous Federated Optimization", NeurIPS 2020, equations 8 and 9).
	Normalised Weights = "steps-normalised"
)

// Done is what a node has done for an exchange.
type Done struct {
	Samples int
	Steps   float64 // effective ones, see [EffectiveSteps]; positive
}

// Coefficients are what the Δ of some nodes are multiplied by to be added up. Without Normalised
// their sum is 1.
func Coefficients(w Weights, all []Done) []float64 {
	weights, sum := make([]float64, len(all)), 0.0
	for i, s := range all {
		weights[i] = 1
		if w != Equal {
			weights[i] = float64(s.Samples)
		}
		sum += weights[i]
	}
	mean := meanSteps(weights, sum, all)
	for i, s := range all {
		weights[i] /= sum
		if w == Normalised {
			weights[i] *= mean / s.Steps
		}
	}
	return weights
}

// meanSteps is the mean of the steps, and exactly these where they are equal.
func meanSteps(weights []float64, sum float64, all []Done) float64 {
	mean, least, most := 0.0, all[0].Steps, all[0].Steps
	for i, s := range all {
		mean += weights[i] / sum * s.Steps
		least, most = min(least, s.Steps), max(most, s.Steps)
	}
	return min(max(mean, least), most)
}

// EffectiveSteps is ‖a‖₁ of FedNova: how many plain steps are worth as much as a number of steps of
// a round that begins without a momentum. It is how far they move a parameter whose gradient is 1,
// divided by the rate, with the proximal factor μ (section 3.2 there). Of a method that is not
// gradient descent each step counts 1; weight decay counts as a part of gradients.
func EffectiveSteps(m optim.Method, round, steps int, mu float64) float64 {
	momentum, nesterov, pull := 0.0, false, 0.0
	switch m := m.(type) {
	case optim.SGD:
		pull = mu * m.Rate.Rate(round)
	case optim.Momentum:
		momentum, nesterov, pull = m.Momentum, m.Nesterov, mu*m.Rate.Rate(round)
	}
	moved, velocity := 0.0, 0.0
	for range steps {
		gradient := 1 - pull*moved
		if velocity = momentum*velocity + gradient; nesterov {
			moved += gradient + momentum*velocity
		} else {
			moved += velocity
		}
	}
	return moved
}
