package main

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// worker computes a gradient on every set of parameters that its site's server sends.
type worker struct {
	env     actors.Env
	local   *train.Local
	params  int // of the model
	server  *actor.PID
	pushes  *protos.Messages[*protos.Push]
	version uint64 // of the parameters in use
	pushed  time.Duration
}

func newWorker(env actors.Env, task *train.Task, h hierarchy) (*worker, error) {
	local, err := task.NewLocal(env)
	return &worker{
		env: env, local: local, params: task.Model.Params(),
		server: member(env.View(), h.siteOf(name(env))).PID,
		pushes: protos.NewMessages(func() *protos.Push { return &protos.Push{} }),
	}, err
}

// State declares the worker's position in its shard and its step in flight.
func (w *worker) State(s *state.State) {
	s.Part("local", w.local)
	state.Int(s, "version", &w.version)
	state.Int(s, "pushed", &w.pushed)
}

// Receive handles two things: parameters begin a step, its result is pushed.
func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *train.Gradient:
		w.push(ctx, m)
	case *protos.Message:
		if head, ok := m.Head.(*protos.Parameters); ok {
			w.begin(head, m)
		} else {
			other(w.env, m)
		}
		m.Release()
	}
}

func (w *worker) begin(head *protos.Parameters, m *protos.Message) {
	params, ok := vector(w.env, m, w.params)
	if !ok {
		return
	}
	if w.pushed > 0 {
		w.env.Record(actors.Event{Kind: actors.Waited, Duration: w.env.Now() - w.pushed, Cause: "parameters"})
	}
	w.version = head.Version
	w.local.Begin(params.Retain()) // the message gives its own reference back
}

func (w *worker) push(ctx actor.Context, g *train.Gradient) {
	m, head := w.pushes.Get(g.Values) // the gradient is ours: it goes with the message
	head.Node, head.Step, head.Version, head.Samples = int32(w.env.Node()), g.Step, w.version, uint32(g.Samples)
	w.local.Done(g)
	w.pushed = w.env.Now()
	ctx.Send(w.server, m)
}
