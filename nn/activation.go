package nn

import (
	"fmt"
	"strings"

	"github.com/gradwire/gradwire/nn/kernel"
)

// Activation is the function applied element by element to the output of every hidden layer.
type Activation uint8

// The activations.
const (
	ReLU    Activation = iota // max(0, z); its derivative at 0 is taken as 0, NaN stays NaN
	Tanh                      // hyperbolic tangent
	Sigmoid                   // logistic function, 1 / (1 + exp(−z))
)

var activationNames = [...]string{ReLU: "relu", Tanh: "tanh", Sigmoid: "sigmoid"}

// String is the name under which a plan knows the activation, for instance "relu".
func (a Activation) String() string {
	if a.valid() {
		return activationNames[a]
	}
	return fmt.Sprintf("activation(%d)", uint8(a))
}

func (a Activation) valid() bool { return int(a) < len(activationNames) }

// ParseActivation returns the activation of the given name. The error names what is accepted.
func ParseActivation(name string) (Activation, error) {
	for i, n := range activationNames {
		if n == name {
			return Activation(i), nil
		}
	}
	return 0, fmt.Errorf("unknown activation %q: accepted are %s", name, strings.Join(activationNames[:], ", "))
}

// apply replaces every z by its activation.
func (a Activation) apply(z []float32) {
	switch a {
	case ReLU:
		kernel.Rectify(z, z)
	case Tanh:
		for i, v := range z {
			z[i] = tanh(v)
		}
	case Sigmoid:
		for i, v := range z {
			z[i] = sigmoid(v)
		}
	}
}

// chain multiplies every d by the activation's derivative, which for all activations here is a
// function of the activation's value h itself.
func (a Activation) chain(d, h []float32) {
	h = h[:len(d)]
	switch a {
	case ReLU:
		kernel.Rectify(d, h)
	case Tanh:
		for i, v := range h {
			d[i] *= 1 - float32(v*v)
		}
	case Sigmoid:
		for i, v := range h {
			d[i] *= float32(v * (1 - v))
		}
	}
}
