package ps

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker computes a gradient on every set of parameters that it is sent.
type worker struct {
	env     actors.Env
	local   *train.Local
	busy    bool // a step is under way
	server  *actor.PID
	params  int // of the model
	pushes  *protos.Messages[*protos.Push]
	version uint64 // of the parameters in use
	pushed  time.Duration
	waiting bool // a push is under way
}

func newWorker(env actors.Env, task *train.Task) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view := env.View()
	return &worker{
		env:    env,
		local:  local,
		server: view.Members[view.Role(RoleServer)[0]].PID,
		params: task.Model.Params(),
		pushes: protos.NewMessages(func() *protos.Push { return &protos.Push{} }),
	}, nil
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(m)
	case *train.Gradient:
		w.push(ctx, m)
	}
}

func (w *worker) receive(m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start, *protos.View: // the server's greeting is what starts a worker
	case *protos.Parameters:
		if w.busy {
			return // an answer to what this node pushed in its former life
		}
		if w.waiting {
			w.env.Record(actors.Event{Kind: actors.Waited, Duration: w.env.Now() - w.pushed, Cause: "parameters"})
		}
		if len(m.Tensors) != 1 || len(m.Tensors[0].Data) != w.params {
			w.env.Fail(fmt.Errorf("node %s: parameters that are not one vector of %d", name(w.env), w.params))
			return
		}
		w.version = head.Version
		w.busy = true
		w.local.Begin(m.Tensors[0].Retain())
	default:
		unexpected(w.env, m)
	}
}

func (w *worker) push(ctx actor.Context, g *train.Gradient) {
	m, head := w.pushes.Get(g.Values)
	head.Node, head.Step, head.Version, head.Samples = int32(w.env.Node()), g.Step, w.version, uint32(g.Samples)
	w.local.Done(g)
	w.busy = false
	w.pushed, w.waiting = w.env.Now(), true
	ctx.Send(w.server, m)
}
