package collective

import (
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// averager learns by Models. Without an outer optimizer the models themselves are averaged, and the
// outcome is the joint model; with one the outcome is the mean of their Δ from it.
type averager struct {
	local
	samples int    // of the round's steps
	steps   int    // of the round
	rounds  uint64 // that are settled
	shared  *protos.Tensor
	outer   *periodic.Outer // nil where models are averaged
}

func newAverager(l local, a *Architecture) (*averager, error) {
	v := &averager{local: l, shared: l.replica.Params.Retain()}
	method := a.outer()
	if method == nil {
		if !a.streams() {
			v.mean = v.shared.Retain()
		}
		return v, nil
	}
	var err error
	v.outer, err = periodic.NewOuter(method, len(v.shared.Data))
	return v, err
}

// OuterOptimizer implements [train.Outer].
func (a Architecture) OuterOptimizer() (optim.Method, int) { return a.outer(), a.Every }

// outer is the method of the outer optimizer; nil where models are averaged as they are. Codes are
// of differences.
func (a *Architecture) outer() optim.Method {
	switch {
	case a.Reduce != Models:
		return nil
	case !periodic.Averages(a.Outer):
		return a.Outer
	case a.compresses():
		return optim.SGD{Rate: optim.Constant(1)}
	}
	return nil
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

// share is this rank's part in the mean.
func (a *averager) share() float32 { return float32(a.samples) / (a.batch * float32(a.steps)) }

func (a *averager) contribution() *protos.Tensor {
	params, weight := a.replica.Params, a.share()
	if weight == 1 && a.outer == nil {
		return params.Retain()
	}
	v := a.env.Tensors().Get(len(params.Data))
	a.contribute(v.Data, a.shared.Data, params.Data, weight)
	return v
}

// contribute writes what a part of the model, which differs from the shared one, contributes.
func (a *averager) contribute(dst, shared, params []float32, weight float32) {
	if a.outer == nil {
		copy(dst, params)
	} else {
		periodic.PseudoGradient(dst, shared, params)
		a.env.Charge(float64(len(dst)))
	}
	a.multiply(dst, weight)
}

func (a *averager) weight(batches float64) float64 { return batches / float64(a.steps) }

func (a *averager) settle(mean *protos.Tensor) {
	a.samples, a.steps = 0, 0
	a.rounds++
	if mean == nil {
		return
	}
	next := mean
	if a.outer == nil {
		mean.Retain()
	} else {
		next = a.env.Tensors().Get(len(mean.Data))
		a.outer.Step(next.Data, a.shared.Data, mean.Data, 0, int(a.rounds-1))
		a.env.Charge(a.outer.Work(len(mean.Data)))
	}
	a.keep(mean)
	a.begin(next)
}

// begin goes on from a joint model, of which it takes over a reference.
func (a *averager) begin(joint *protos.Tensor) {
	a.shared.Release()
	a.shared = joint
	a.replica.Replace(joint.Retain())
}

func (a *averager) joint() *protos.Tensor { return a.shared }

func (a *averager) slots() [][]float32 {
	if a.outer == nil {
		return nil
	}
	return a.outer.Slots()
}

func (a *averager) adopt(joint, outcome *protos.Tensor, rounds uint64) {
	a.rounds = rounds
	a.begin(joint.Retain())
	if outcome != nil {
		a.keep(outcome.Retain())
	}
}
