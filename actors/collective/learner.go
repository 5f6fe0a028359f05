package collective

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// learner is what a worker learns by: what its steps do to its model, what it
// contributes to a round, and what the round does to the model.
//
// A batch weighs its number of samples ÷ batch, which is 1 for a full batch, so that no rounding
// comes from weights where all batches are full.
type learner interface {
	state.Declared
	// step takes in the gradient of a local step, and owns it.
	step(gradient *protos.Tensor, samples int)
	// contribution is the vector that is summed over all ranks, to be read, once so many steps of a
	// round are done as its exchange begins after. The reference is the caller's; the same values
	// can be had again until the round is settled.
	contribution() *protos.Tensor
	// weight is what the sum over all ranks is to be divided by, if all batches of these steps have
	// the given weight together.
	weight(batches float64) float64
	// settle ends the round with its mean, which it owns. The mean is nil if the round did
	// without.
	settle(mean *protos.Tensor)
	// outcome is the mean of the last round that had one; it may be nil before the first.
	outcome() *protos.Tensor
	// joint is the model that all ranks have in common since then: a rank that joins starts from
	// it.
	joint() *protos.Tensor
	// slots are what the joint model's optimizer remembers beside that of the steps, to be read or
	// replaced by those of another rank.
	slots() [][]float32
	// adopt replaces the model by another rank's joint model and outcome after a number of rounds,
	// and takes its own references to them; the outcome may be nil.
	adopt(joint, outcome *protos.Tensor, rounds uint64)
	// model is what the next step starts from.
	model() *peer.Replica
}

func newLearner(env actors.Env, task *train.Task, a *Architecture) (learner, error) {
	l := local{env: env, batch: float32(task.Batch), replica: peer.NewReplica(env, task)}
	if a.Reduce == Models {
		v, err := newAverager(l, a)
		if err != nil || !a.streams() {
			return v, err
		}
		return newStreamer(v, a, task.Seed), nil
	}
	return &accumulator{local: l}, nil
}

// local is what learners have in common.
type local struct {
	env     actors.Env
	batch   float32 // samples of a full batch
	replica *peer.Replica
	mean    *protos.Tensor // the outcome
}

func (l *local) model() *peer.Replica { return l.replica }

func (l *local) outcome() *protos.Tensor { return l.mean }

// keep takes over the reference to an outcome.
func (l *local) keep(mean *protos.Tensor) {
	if l.mean != nil {
		l.mean.Release()
	}
	l.mean = mean
}

// multiply multiplies values by a weight.
func (l *local) multiply(values []float32, weight float32) {
	if weight == 1 {
		return
	}
	nn.Scale(values, weight)
	l.env.Charge(float64(len(values)))
}

// accumulator learns by Gradients. Its model changes only when a round is settled.
type accumulator struct {
	local
	sum *protos.Tensor // of the round's gradients, weighted; nil before the first
}

func (a *accumulator) step(gradient *protos.Tensor, samples int) {
	a.multiply(gradient.Data, float32(samples)/a.batch)
	if a.sum == nil {
		a.sum = gradient
		return
	}
	nn.AddScaled(a.sum.Data, 1, gradient.Data)
	a.env.Charge(float64(len(gradient.Data)))
	gradient.Release()
}

func (a *accumulator) contribution() *protos.Tensor { return a.sum.Retain() }

func (a *accumulator) weight(batches float64) float64 { return batches }

func (a *accumulator) settle(mean *protos.Tensor) {
	a.sum.Release()
	a.sum = nil
	a.replica.Update(mean.Data)
	a.keep(mean)
}

func (a *accumulator) joint() *protos.Tensor { return a.replica.Params }

func (a *accumulator) slots() [][]float32 { return nil }

func (a *accumulator) adopt(joint, outcome *protos.Tensor, _ uint64) {
	a.replica.Replace(joint.Retain())
	if outcome != nil {
		a.keep(outcome.Retain())
	}
}
