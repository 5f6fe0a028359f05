package gossiplearning

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// Merge says how two models are averaged. The age of the result is the larger of the two.
type Merge string

// The averages.
const (
	// Mean is half and half (Ormándi et al. 2013, algorithm 3).
	Mean Merge = "mean"
	// Age weighs each model by its age, and two of age 0 alike: mergeAverage of I. Hegedűs, G.
	// Danner and M. Jelasity, "Gossip learning as a decentralized alternative to federated
	// learning", DAIS 2019.
	Age Merge = "age"
)

// share is that of a model of age a in the average with one of age b.
func (m Merge) share(a, b uint64) float64 {
	if m != Age || a == 0 && b == 0 {
		return 0.5
	}
	return float64(a) / (float64(a) + float64(b))
}

// model is one that a peer holds a reference to. Nobody writes its parameters.
type model struct {
	params *protos.Tensor
	age    uint64
}

func (m model) retain() model { return model{m.params.Retain(), m.age} }

// merge returns the average of two models, in new memory, and charges its work. Both are kept.
func (m Merge) merge(env actors.Env, a, b model) model {
	merged := env.Tensors().Get(len(a.params.Data))
	share := m.share(a.age, b.age)
	nn.WeightedSum(merged.Data, float32(share), a.params.Data, float32(1-share), b.params.Data)
	env.Charge(3 * float64(len(merged.Data)))
	return model{merged, max(a.age, b.age)}
}
