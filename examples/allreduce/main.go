// Command allreduce is gradwire with one more architecture, synchronous all-to-all all-reduce.
// It has every command of gradwire; without arguments it runs its own plan.
package main

import (
	"fmt"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// allToAll lets every peer send its gradient to all others and apply the mean.
type allToAll struct{}

func (allToAll) Roles() []train.Role {
	return []train.Role{{Name: "worker", Doc: "computes gradients and exchanges them with all others", Trains: true,
		Holds: true, Min: 1}}
}

func (allToAll) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		local, err := task.NewLocal(env)
		return &peer{
			env: env, local: local, params: env.Tensors().Copy(task.Initial()),
			optimizer: task.Method.New(task.Model.Params()),
			gradients: actors.NewGather[*protos.Tensor](0, env.View().Role("worker")),
		}, err
	}
}

// peer keeps its own copy of the model, which equals all others after each round.
type peer struct {
	env       actors.Env
	local     *train.Local
	params    *protos.Tensor
	optimizer optim.Optimizer
	gradients *actors.Gather[*protos.Tensor] // of all peers
}

// State declares the peer's model, optimizer and gathered gradients, for checkpoints.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Tensor("params", &p.params)
	train.OptimizerState(s, "optimizer", p.optimizer)
	actors.GatherState(s, "gradients", p.gradients,
		func(s *state.State, t **protos.Tensor) { s.Received("values", t) })
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *train.Gradient:
		p.local.Done(m)
		p.share(ctx, m.Values)
	case *protos.Message:
		switch head := m.Head.(type) {
		case *protos.Start:
			p.local.Begin(p.params.Retain())
		case *protos.TakeSnapshot:
			train.AnswerSnapshot(ctx, p.env, head, p.params, p.gradients.Round())
		case *protos.Chunk:
			p.collect(head.Round, int(head.Rank), m.Tensors[0].Retain())
		default:
			p.env.Fail(fmt.Errorf("unexpected message %T", head))
		}
		m.Release()
	}
}

// share sends the own gradient to all others and keeps it for the sum.
func (p *peer) share(ctx actor.Context, gradient *protos.Tensor) {
	for _, member := range p.env.View().Members {
		if me := p.env.View().Members[p.env.Node()]; member.Name != me.Name {
			head := &protos.Chunk{View: p.env.View().Number, Round: p.gradients.Round(), Rank: int32(me.Rank)}
			ctx.Send(member.PID, protos.NewMessage(head, gradient.Retain()))
		}
	}
	p.collect(p.gradients.Round(), p.env.View().Members[p.env.Node()].Rank, gradient)
}

// collect applies the mean, summed in the order of ranks, when all gradients of the round are
// there.
func (p *peer) collect(round uint64, rank int, gradient *protos.Tensor) {
	peers := p.env.View().Role("worker")
	if rank < 0 || rank >= len(peers) {
		actors.Fail(p.env, "a gradient of rank %d among %d peers", rank, len(peers))
		return
	}
	if err := p.gradients.Put(peers[rank], round, gradient); err != nil {
		actors.Fail(p.env, "a gradient of rank %d in round %d: %w", rank, round, err)
		return
	}
	if !p.gradients.Complete() {
		return
	}
	gradients := p.gradients.Values()
	sum := p.env.Tensors().Get(len(p.params.Data))
	clear(sum.Data)
	for _, g := range gradients {
		nn.AddScaled(sum.Data, 1/float32(len(gradients)), g.Data)
		g.Release()
	}
	p.params = train.Update(p.env.Tensors(), p.optimizer, p.params, sum.Data)
	sum.Release()
	p.gradients.Next()
	p.env.Charge(float64(2*len(gradients))*float64(len(p.params.Data)) + p.optimizer.Work(len(p.params.Data)))
	p.local.Begin(p.params.Retain())
}

// withAllToAll is everything that comes with Gradwire, and the architecture of this program.
func withAllToAll() *catalog.Catalog {
	c := catalog.Default()
	c.Architectures.Declare("all-to-all", allToAll{},
		"synchronous all-reduce: every worker sends its gradient to all others")
	return c
}

func main() {
	if len(os.Args) == 1 {
		os.Args = append(os.Args, "run", "examples/allreduce/plan.yaml")
	}
	cli.Main(withAllToAll())
}
