package ps

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// worker computes gradients on every set of parameters that it is sent: one, or a round of several,
// between which it changes its copy.
type worker struct {
	env     actors.Env
	local   *train.Local
	busy    bool // a round is under way
	round   round
	server  *actor.PID
	params  int // of the model
	pushes  *protos.Messages[*protos.Push]
	version uint64          // of the parameters in use
	life    uint64          // of the server that they are from
	next    *protos.Message // the greeting of a later server, which came during a round
	pushed  time.Duration
	waiting bool // a push is under way
}

// round is what a worker does on its own between two pushes of several steps each.
type round struct {
	every     int // steps of a round
	optimizer optim.Optimizer
	model     *protos.Tensor // the worker's copy
	sum       *protos.Tensor // of the gradients
	steps     int            // so far
	samples   int
}

func newWorker(env actors.Env, task *train.Task, a Architecture) (*worker, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	view := env.View()
	w := &worker{
		env:    env,
		local:  local,
		server: view.Members[serverOf(view)].PID,
		params: task.Model.Params(),
		pushes: protos.NewMessages(func() *protos.Push { return &protos.Push{} }),
		round:  round{every: max(a.Every, 1)},
	}
	if w.round.every > 1 {
		w.round.optimizer = task.Method.New(w.params)
	}
	return w, nil
}

// serverOf is the position of the server, whether it is present or not.
func serverOf(view *actors.View) int {
	return slices.IndexFunc(view.Members, func(m actors.Member) bool { return m.Role == RoleServer })
}

var _ actors.Waiter = (*worker)(nil)

// Waiting implements [actors.Waiter].
func (w *worker) Waiting() string {
	if w.busy {
		return ""
	}
	view := w.env.View()
	return "parameters from " + view.Members[serverOf(view)].Name
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(m)
	case *train.Gradient:
		w.step(ctx, m)
	}
}

func (w *worker) receive(m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start, *protos.View: // the server's greeting is what starts a worker
	case *protos.Parameters:
		switch {
		case !actors.IsVector(m.Tensors, w.params):
			actors.Fail(w.env, "parameters that are not one vector of %d", w.params)
		case w.busy && head.Life > w.life:
			w.next = m
			m.Retain(1)
		case w.busy: // an answer to what this node pushed in its former life
		default:
			if w.waiting {
				w.env.Record(actors.Event{Kind: actors.Waited, Duration: w.env.Now() - w.pushed, Cause: "parameters"})
			}
			w.begin(head, m.Tensors[0])
		}
	default:
		actors.Unexpected(w.env, m)
	}
}

// begin starts a round on parameters.
func (w *worker) begin(head *protos.Parameters, params *protos.Tensor) {
	w.version, w.life = head.Version, head.Life
	w.busy = true
	if w.round.every > 1 {
		w.round.begin(params.Retain())
	}
	w.local.Begin(params.Retain())
}

// restart gives a round up and begins one on the parameters of a later server.
func (w *worker) restart(gradient *protos.Tensor) {
	gradient.Release()
	w.round.abandon()
	m := w.next
	w.next = nil
	w.begin(m.Head.(*protos.Parameters), m.Tensors[0])
	m.Release()
}

// step takes a gradient in, and pushes at the end of a round.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	gradient, samples := g.Values, g.Samples
	w.local.Done(g)
	if w.next != nil {
		w.restart(gradient)
		return
	}
	if w.round.every > 1 {
		w.env.Charge(w.round.take(w.env, gradient, samples))
		if w.round.steps < w.round.every {
			w.local.Begin(w.round.model.Retain())
			return
		}
		gradient, samples = w.round.end()
	}
	m, head := w.pushes.Get(gradient)
	head.Node, head.Step, head.Samples = int32(w.env.Node()), g.Step, uint32(samples)
	head.Version, head.Life = w.version, w.life
	w.busy = false
	w.pushed, w.waiting = w.env.Now(), true
	ctx.Send(w.server, m)
}

// begin takes over a reference to the parameters of a round.
func (r *round) begin(params *protos.Tensor) { r.model, r.steps, r.samples = params, 0, 0 }

// take adds a gradient, which it takes over, to the sum, and changes the copy by it. It returns the
// work.
func (r *round) take(env actors.Env, gradient *protos.Tensor, samples int) (work float64) {
	r.steps++
	r.samples += samples
	r.model = train.Update(env.Tensors(), r.optimizer, r.model, gradient.Data)
	work = r.optimizer.Work(len(gradient.Data))
	if r.steps == 1 {
		r.sum = gradient
		return work
	}
	nn.AddScaled(r.sum.Data, 1, gradient.Data)
	gradient.Release()
	return work + float64(len(r.sum.Data))
}

// abandon gives back what a round that does not end has.
func (r *round) abandon() {
	for _, t := range []*protos.Tensor{r.model, r.sum} {
		if t != nil {
			t.Release()
		}
	}
	r.model, r.sum = nil, nil
}

// end gives the copy back and hands the sum of the gradients over.
func (r *round) end() (sum *protos.Tensor, samples int) {
	r.model.Release()
	sum, r.sum, r.model = r.sum, nil, nil
	return sum, r.samples
}
