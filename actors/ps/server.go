package ps

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// server holds the model. Receivers share one snapshot of it, which is copied
// only when the next gradient comes while somebody still reads it.
type server struct {
	env        actors.Env
	params     *protos.Tensor
	version    uint64 // updates applied to params
	optimizer  optim.Optimizer
	factor     float32
	workers    []*actor.PID // by rank
	nodes      []int        // positions in the view, by rank
	parameters *protos.Messages[*protos.Parameters]
}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	s := &server{
		env:        env,
		params:     env.Tensors().Copy(task.Initial()),
		optimizer:  task.Method.New(task.Model.Params()),
		factor:     1,
		nodes:      env.View().Role(RoleWorker),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
	for _, node := range s.nodes {
		s.workers = append(s.workers, env.View().Members[node].PID)
	}
	if a.Scale == Mean {
		s.factor = 1 / float32(len(s.workers))
	}
	return s
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		for rank := range s.workers {
			s.answer(ctx, rank)
		}
	case *protos.Push:
		s.push(ctx, head, m)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, s.env, head, s.params, s.version)
	default:
		unexpected(s.env, m)
	}
}

// push applies a gradient and answers the worker that sent it.
func (s *server) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	rank := int(head.Rank)
	if rank < 0 || rank >= len(s.workers) || len(m.Tensors) != 1 || len(m.Tensors[0].Data) != len(s.params.Data) || head.Version > s.version {
		s.env.Fail(fmt.Errorf("node %s: a push of rank %d at version %d does not fit %d workers, %d parameters and version %d",
			name(s.env), head.Rank, head.Version, len(s.workers), len(s.params.Data), s.version))
		return
	}
	s.apply(m.Tensors[0])
	s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: s.version, Staleness: s.version - 1 - head.Version, Origin: s.nodes[rank]})
	s.answer(ctx, rank)
}

func (s *server) apply(gradient *protos.Tensor) {
	s.params = s.env.Tensors().Writable(s.params)
	work := s.optimizer.Work(len(s.params.Data))
	if s.factor != 1 {
		gradient = s.env.Tensors().Writable(gradient.Retain())
		defer gradient.Release()
		for i := range gradient.Data {
			gradient.Data[i] *= s.factor
		}
		work += float64(len(s.params.Data))
	}
	s.optimizer.Step(s.params.Data, gradient.Data)
	s.version++
	s.env.Charge(work)
}

func (s *server) answer(ctx actor.Context, rank int) {
	m, head := s.parameters.Get(s.params.Retain())
	head.Version = s.version
	ctx.Send(s.workers[rank], m)
}
