package peer

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Replica is a peer's own copy of the model, and the optimiser that changes it.
type Replica struct {
	// Params may be read by everybody who holds a reference; who wants to write obtains
	// them through Writable.
	Params *protos.Tensor
	// Optimizer is the peer's own.
	Optimizer optim.Optimizer
	// Version counts the updates that Params are made of.
	Version uint64
	// Steps counts the peer's finished steps.
	Steps uint64

	env actors.Env
}

// NewReplica returns a replica with the initial parameters of the task, in memory from the pool
// of env.
func NewReplica(env actors.Env, task *train.Task) *Replica {
	params := env.Tensors().Copy(task.Initial())
	return &Replica{env: env, Params: params, Optimizer: task.Method.New(task.Model.Params())}
}

// Writable makes sure that nobody else reads Params, by a copy where that is necessary,
// and returns their values.
func (r *Replica) Writable() []float32 {
	r.Params = r.env.Tensors().Writable(r.Params)
	return r.Params.Data
}

// Update makes a step of the optimiser with a gradient, charges its work and records it.
func (r *Replica) Update(gradient []float32) {
	r.Params = train.Update(r.env.Tensors(), r.Optimizer, r.Params, gradient)
	r.Version++
	r.env.Charge(r.Optimizer.Work(len(gradient)))
	r.Record()
}

// Record records the update that has led to Params: one of its own, or another peer's whose model
// has taken the place of this one's.
func (r *Replica) Record() {
	r.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: r.Version, Origin: r.env.Node()})
}

// TakeRound takes in a round of a team that has begun with Params, and records its updates. The
// optimiser counts them too.
func (r *Replica) TakeRound(team *train.Team, round *train.Round) error {
	r.Replace(team.Model())
	for i := range round.Steps {
		r.Version++
		r.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: r.Version, Origin: r.env.Node(),
			Staleness: round.Steps[i].Staleness})
	}
	state := r.Optimizer.State()
	state.Step += len(round.Steps)
	state.Updates += len(round.Steps)
	return r.Optimizer.Restore(state)
}

// Resume lets the peer's steps and the optimiser's schedule go on after a number of steps; what the
// optimiser remembers of gradients, and of how many, stays as it is: nothing, for a peer that
// joins.
func (r *Replica) Resume(steps uint64) error {
	r.Steps = steps
	state := r.Optimizer.State()
	state.Step = int(steps)
	return r.Optimizer.Restore(state)
}

// Replace takes over the caller's reference to other parameters.
func (r *Replica) Replace(params *protos.Tensor) {
	r.Params.Release()
	r.Params = params
}
