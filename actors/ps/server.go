package ps

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// server holds the model. Receivers share one snapshot of it; the next gradient makes another only
// while somebody still reads it.
type server struct {
	env        actors.Env
	params     *protos.Tensor
	version    uint64 // updates applied to params
	life       uint64 // number of the view with which this server joined; 0 for the first
	optimizer  optim.Optimizer
	scale      Scale
	factor     float32      // of a gradient
	workers    []*actor.PID // by node; nil where none is present
	parameters *protos.Messages[*protos.Parameters]
}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	s := &server{
		env:        env,
		params:     env.Tensors().Copy(task.Initial()),
		optimizer:  task.Method.New(task.Model.Params()),
		scale:      a.Scale,
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
	s.follow()
	return s
}

// follow takes in the members of the view, and returns the workers that have come, in the
// order of their ranks.
func (s *server) follow() (come []int) {
	view := s.env.View()
	before := s.workers
	s.workers = make([]*actor.PID, len(view.Members))
	workers := view.Role(RoleWorker)
	for _, node := range workers {
		s.workers[node] = view.Members[node].PID
		if before == nil || before[node] == nil {
			come = append(come, node)
		}
	}
	s.factor = 1
	if s.scale == Mean {
		s.factor = 1 / float32(max(len(workers), 1))
	}
	return come
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		if head.Joins {
			s.life = head.View
		}
		for _, node := range s.env.View().Role(RoleWorker) {
			s.answer(ctx, node)
		}
	case *protos.View:
		for _, node := range s.follow() {
			s.answer(ctx, node)
		}
	case *protos.Push:
		s.push(ctx, head, m)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, s.env, head, s.params, s.version)
	default:
		actors.Unexpected(s.env, m)
	}
}

// push applies a gradient and answers the worker that sent it, if it is still there.
func (s *server) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	node := int(head.Node)
	members := s.env.View().Members
	if !s.env.View().Has(head.Node) || members[node].Role != RoleWorker ||
		!actors.IsVector(m.Tensors, len(s.params.Data)) || head.Version > s.version && head.Life == s.life {
		const format = "a push of node %d at version %d does not fit a run of %d nodes, %d parameters and version %d"
		actors.Fail(s.env, format, head.Node, head.Version, len(members), len(s.params.Data), s.version)
		return
	}
	if head.Life != s.life {
		return // a gradient on the model of a server that is gone; its worker has been greeted by this one
	}
	s.apply(m.Take(0))
	s.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: s.version, Staleness: s.version - 1 - head.Version,
		Origin: node})
	if s.workers[node] != nil {
		s.answer(ctx, node)
	}
}

// apply takes a gradient over.
func (s *server) apply(gradient *protos.Tensor) {
	n := len(gradient.Data)
	work := s.optimizer.Work(n)
	if s.factor != 1 {
		gradient = s.env.Tensors().Writable(gradient)
		nn.Scale(gradient.Data, s.factor)
		work += float64(n)
	}
	s.params = train.Update(s.env.Tensors(), s.optimizer, s.params, gradient.Data)
	gradient.Release()
	s.version++
	s.env.Charge(work)
}

func (s *server) answer(ctx actor.Context, node int) {
	m, head := s.parameters.Get(s.params.Retain())
	head.Version, head.Life = s.version, s.life
	ctx.Send(s.workers[node], m)
}
