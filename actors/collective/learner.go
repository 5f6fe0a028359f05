package collective

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
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
	// contribution is the vector that is summed over all ranks.
	contribution() *protos.Tensor
	// settle takes in the sum over all ranks, and owns it; weight is that of all batches of the round.
	settle(sum *protos.Tensor, weight float64)
	// state is the model that the next step starts from, and the updates it has seen.
	state() *model
}

// model is a worker's own copy of the model.
type model struct {
	env       actors.Env
	batch     float32 // samples of a full batch
	params    *protos.Tensor
	optimizer optim.Optimizer
	version   uint64 // updates of params by the optimiser
}

func newLearner(env actors.Env, task *train.Task, a Architecture) learner {
	m := model{
		env: env, batch: float32(task.Batch),
		params: env.Tensors().Copy(task.Initial()), optimizer: task.Method.New(task.Model.Params()),
	}
	if a.Reduce == Models {
		return &averager{model: m}
	}
	return &accumulator{model: m}
}

func (m *model) state() *model { return m }

// update makes a step of the optimiser.
func (m *model) update(gradient []float32) {
	m.params = m.env.Tensors().Writable(m.params)
	m.optimizer.Step(m.params.Data, gradient)
	m.version++
	m.env.Charge(m.optimizer.Work(len(gradient)))
	m.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: m.version, Origin: m.env.Node()})
}

// multiply multiplies values by a weight.
func (m *model) multiply(values []float32, weight float32) {
	if weight == 1 {
		return
	}
	for i := range values {
		values[i] *= weight
	}
	m.env.Charge(float64(len(values)))
}

// mean divides a weighted sum by its weight.
func (m *model) mean(sum []float32, weight float64) {
	divisor := float32(weight)
	if divisor == 1 {
		return
	}
	for i := range sum {
		sum[i] /= divisor
	}
	m.env.Charge(float64(len(sum)))
}

// accumulator learns by Gradients.
type accumulator struct {
	model
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

func (a *accumulator) contribution() *protos.Tensor {
	sum := a.sum
	a.sum = nil
	return sum
}

func (a *accumulator) settle(sum *protos.Tensor, weight float64) {
	a.mean(sum.Data, weight)
	a.update(sum.Data)
	sum.Release()
}

// averager learns by Models.
type averager struct {
	model
	samples int // of the round's steps
	steps   int // of the round
}

func (a *averager) step(gradient *protos.Tensor, samples int) {
	a.update(gradient.Data)
	gradient.Release()
	a.samples += samples
	a.steps++
}

// contribution is a copy, so that the model stays what it is until the round is over.
func (a *averager) contribution() *protos.Tensor {
	v := a.env.Tensors().Copy(a.params.Data)
	a.multiply(v.Data, float32(a.samples)/(a.batch*float32(a.steps)))
	return v
}

func (a *averager) settle(sum *protos.Tensor, weight float64) {
	a.mean(sum.Data, weight/float64(a.steps))
	a.params.Release()
	a.params = sum
	a.samples, a.steps = 0, 0
}
