package gaia

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker computes gradients on the parameters that the server of its site sends.
type worker struct {
	env    actors.Env
	local  *train.Local
	idle   peer.Idle
	pushes *protos.Messages[*protos.Push]
	home   int // the position of its site's server
	values int // of a model

	since   uint64         // the view with which this life began; 0 before that is known
	life    uint64         // as the server knows it; 0 before it has greeted
	version uint64         // of the parameters
	params  *protos.Tensor // for the next step; nil while there are none
	busy    bool           // a step is under way
	over    bool           // no more parameters are to come
}

func newWorker(env actors.Env, task *train.Task) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view := env.View()
	home := slices.IndexFunc(view.Members, func(m actors.Member) bool {
		return m.Role == RoleServer && m.Site == view.Members[env.Node()].Site
	})
	if home < 0 {
		return nil, fmt.Errorf("no server is at the site of %s", actors.Name(env))
	}
	return &worker{env: env, local: local, idle: peer.NewIdle(env), home: home, values: task.Model.Params(),
		pushes: protos.NewMessages(func() *protos.Push { return &protos.Push{} })}, nil
}

var _ actors.Waiter = (*worker)(nil)

// Waiting implements [actors.Waiter].
func (w *worker) Waiting() string {
	if cause := w.idle.Cause(); cause != "" {
		return cause + " from " + w.server().Name
	}
	return ""
}

// server is that of the worker's site.
func (w *worker) server() *actors.Member { return &w.env.View().Members[w.home] }

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(m)
		m.Release()
	case *train.Gradient:
		w.push(ctx, m)
	}
}

func (w *worker) receive(m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		w.start(max(head.View, 1))
	case *protos.View:
		if m := w.server(); !m.Present {
			gone(w.env, m)
		}
	case *protos.Parameters:
		w.take(head, m)
	case *protos.Mirror:
		w.over = true
		w.idle.Resume()
	default:
		actors.Unexpected(w.env, m)
	}
}

// gone ends the run because of a server.
func gone(env actors.Env, server *actors.Member) {
	actors.Fail(env, "%s has gone, and with it the model of its site", server.Name)
}

// start begins this life. Parameters may have come before; those for a former life are forgotten.
func (w *worker) start(view uint64) {
	w.since = view
	if w.params != nil && w.life < view {
		w.params.Release()
		w.params = nil
	}
	w.idle.Wait("parameters")
	w.begin()
}

// take takes in what the next step is made on.
func (w *worker) take(head *protos.Parameters, m *protos.Message) {
	if !actors.IsVector(m.Tensors, w.values) {
		actors.Fail(w.env, "parameters that are not one vector of %d values", w.values)
		return
	}
	if head.Life < w.since {
		return
	}
	if w.params != nil {
		w.params.Release()
	}
	w.life, w.version, w.params = head.Life, head.Version, m.Take(0)
	w.begin()
}

func (w *worker) begin() {
	if w.since == 0 || w.params == nil || w.busy {
		return
	}
	w.idle.Resume()
	params := w.params
	w.params, w.busy = nil, true
	w.local.Begin(params)
}

// push sends the gradient of a step.
func (w *worker) push(ctx actor.Context, g *train.Gradient) {
	w.local.Done(g)
	m, head := w.pushes.Get(g.Values)
	head.Node, head.Step, head.Samples = int32(w.env.Node()), g.Step, uint32(g.Samples)
	head.Version, head.Life = w.version, w.life
	ctx.Send(w.server().PID, m)
	w.busy = false
	if !w.over {
		w.idle.Wait("parameters")
	}
	w.begin()
}
