package main

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// root holds the joint model. It takes in what the sites have learnt, each by its share of
// the workers, and answers with the model.
type root struct {
	env        actors.Env
	wait       bool
	sites      []int                          // positions in the view
	share      []float32                      // of all workers, in the order of sites
	changes    *actors.Gather[*protos.Tensor] // of the sites
	model      *peer.Replica
	parameters *protos.Messages[*protos.Parameters]
}

func newRoot(env actors.Env, task *train.Task, h hierarchy) *root {
	view := env.View()
	r := &root{
		env: env, wait: h.Wait, sites: view.Role(roleSite), model: peer.NewReplica(env, task),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
	for _, s := range r.sites {
		r.share = append(r.share, float32(len(h.Sites[view.Members[s].Name]))/float32(len(task.Workers)))
	}
	r.changes = actors.NewGather[*protos.Tensor](0, r.sites)
	return r
}

// State declares the model and the changes of the current round.
func (r *root) State(s *state.State) {
	s.Part("model", r.model)
	actors.GatherState(s, "changes", r.changes, received)
}

// received declares a tensor received from another actor.
func received(s *state.State, t **protos.Tensor) { s.Received("values", t) }

func (r *root) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	switch head := m.Head.(type) {
	case *Exchange:
		r.exchange(ctx, head, m)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, r.env, head, r.model.Params, r.model.Version)
	default:
		other(r.env, m)
	}
	m.Release()
}

// exchange applies the change of a site: at once, or when all sites have sent theirs.
func (r *root) exchange(ctx actor.Context, head *Exchange, m *protos.Message) {
	change, ok := vector(r.env, m, len(r.model.Params.Data))
	if !ok {
		return
	}
	i := slices.Index(r.sites, int(head.Node))
	if i < 0 || head.Version > r.model.Version {
		actors.Fail(r.env, "an exchange of node %d at version %d does not fit version %d", head.Node, head.Version,
			r.model.Version)
		return
	}
	r.env.Record(actors.Event{Kind: actors.UpdateApplied, Origin: int(head.Node), Version: r.model.Version + 1,
		Staleness: r.model.Version - head.Version})
	if !r.wait {
		r.applyChange(i, change)
		r.answer(ctx, r.sites[i:i+1])
		return
	}
	if err := r.changes.Put(int(head.Node), r.changes.Round(), change); err != nil {
		actors.Fail(r.env, "an exchange of node %d: %w", head.Node, err)
		return
	}
	change.Retain()
	if r.changes.Complete() {
		for i, change := range r.changes.Values() { // in a fixed order, not in the order of arrival
			r.applyChange(i, change)
			change.Release()
		}
		r.changes.Next()
		r.answer(ctx, r.sites)
	}
}

// applyChange adds a site's change to the model.
func (r *root) applyChange(i int, change *protos.Tensor) {
	nn.AddScaled(r.model.Writable(), r.share[i], change.Data)
	r.env.Charge(2 * float64(len(change.Data)))
	r.model.Version++
}

// answer sends the model to sites, who share one message.
func (r *root) answer(ctx actor.Context, sites []int) {
	m, head := r.parameters.Get(r.model.Params.Retain())
	head.Version = r.model.Version
	m.Retain(len(sites) - 1)
	for _, s := range sites {
		ctx.Send(r.env.View().Members[s].PID, m)
	}
}
