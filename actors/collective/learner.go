package collective

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
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
	// step takes in the gradient of a local step, and owns it.
	step(gradient *protos.Tensor, samples int)
	// contribution is the vector that is summed over all ranks, to be read. The reference is the
	// caller's; the same values can be had again until the round is settled.
	contribution() *protos.Tensor
	// base is what contributions are differences from; nil for nothing.
	base() *protos.Tensor
	// weight is what the sum over all ranks is to be divided by, if all batches of the round have
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
	// adopt replaces the model by another rank's joint model and outcome, and takes its own
	// references to them; the outcome may be nil.
	adopt(joint, outcome *protos.Tensor)
	// model is what the next step starts from.
	model() *peer.Replica
}

func newLearner(env actors.Env, task *train.Task, a *Architecture) learner {
	l := local{env: env, batch: float32(task.Batch), replica: peer.NewReplica(env, task)}
	if a.Reduce == Models {
		l.mean = l.replica.Params.Retain()
		return &averager{local: l, differs: a.compresses()}
	}
	return &accumulator{local: l}
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

func (a *accumulator) base() *protos.Tensor { return nil }

func (a *accumulator) weight(batches float64) float64 { return batches }

func (a *accumulator) settle(mean *protos.Tensor) {
	a.sum.Release()
	a.sum = nil
	a.replica.Update(mean.Data)
	a.keep(mean)
}

func (a *accumulator) joint() *protos.Tensor { return a.replica.Params }

func (a *accumulator) adopt(joint, outcome *protos.Tensor) {
	a.replica.Replace(joint.Retain())
	if outcome != nil {
		a.keep(outcome.Retain())
	}
}

// averager learns by Models. Its outcome is the joint model itself.
type averager struct {
	local
	samples int  // of the round's steps
	steps   int  // of the round
	differs bool // contributions are differences from the joint model
}

func (a *averager) step(gradient *protos.Tensor, samples int) {
	a.replica.Update(gradient.Data)
	gradient.Release()
	a.samples += samples
	a.steps++
}

// round takes in the steps of a team that has begun with the model.
func (a *averager) round(team *train.Team, round *train.Round) error {
	a.samples, a.steps = round.Samples, len(round.Steps)
	return a.replica.TakeRound(team, round)
}

func (a *averager) contribution() *protos.Tensor {
	weight := float32(a.samples) / (a.batch * float32(a.steps))
	if weight == 1 && !a.differs {
		return a.replica.Params.Retain()
	}
	v := a.env.Tensors().Copy(a.replica.Params.Data)
	if a.differs {
		nn.AddScaled(v.Data, -1, a.mean.Data)
		a.env.Charge(float64(len(v.Data)))
	}
	a.multiply(v.Data, weight)
	return v
}

func (a *averager) base() *protos.Tensor {
	if a.differs {
		return a.mean
	}
	return nil
}

func (a *averager) weight(batches float64) float64 { return batches / float64(a.steps) }

func (a *averager) settle(mean *protos.Tensor) {
	a.samples, a.steps = 0, 0
	if mean == nil {
		return
	}
	a.replica.Replace(mean.Retain())
	a.keep(mean)
}

func (a *averager) joint() *protos.Tensor { return a.mean }

func (a *averager) adopt(joint, _ *protos.Tensor) {
	a.replica.Replace(joint.Retain())
	a.keep(joint.Retain())
}
