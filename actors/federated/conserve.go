package federated

import (
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/periodic/robust"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
)

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves says that the model stays between those of clients where it is their mean: where the
// outer optimizer is SGD of a constant rate of 1 at most, weights add up to 1 at most, nothing
// corrects gradients, and all are honest; and where updates are late, if they are models and not
// differences.
func (a Architecture) Conserves() train.Conserved {
	outer, plain := a.Outer.(optim.SGD)
	rate, constant := outer.Rate.(optim.Constant)
	mean := plain && constant && rate <= 1 && outer.WeightDecay == 0 && a.Weights != periodic.Normalised
	fresh := !a.asynchronous() || a.Exchange == Parameters
	keeps := train.Conserved{Between: mean && fresh && !a.Controls && a.Attack == nil}
	if keeps.Between && !a.asynchronous() && rate == 1 && a.Weights == periodic.Samples &&
		a.Mean.Kind == robust.Mean && a.Proximal == 0 && len(a.Under) == 0 && a.Population == 0 && a.Local.Time == 0 {
		keeps.Weighed = a.Local.Steps
	}
	return keeps
}

// SendsBy is empty: messages do not depend on the trained values.
func (Architecture) SendsBy() string { return "" }
