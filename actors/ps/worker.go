package ps

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// worker computes gradients on every set of parameters that it is sent: one, or a round of several,
// between which it changes its copy.
type worker struct {
	env   actors.Env
	local *train.Local
	team  *train.Team // nil for one thread
	busy  bool        // a round is under way
	round localRound

	compressor compressor
	up         *compress.Encoder // nil where gradients travel as they are
	down       *compress.Decoder // nil where models do
	answers    int               // values of an answer

	server  *actor.PID
	params  int // of the model
	pushes  *protos.Messages[*protos.Push]
	version uint64 // of the parameters in use
	life    uint64 // see Push
	// latest are parameters for the next round: those that came during a round, if the worker does
	// not wait for them, or the greeting of another life.
	latest  latest
	greeted bool // latest is a greeting
	clock   uint64
	heard   uint64 // the highest clock that an answer had
	ahead   uint64 // by how much clock may be above that when a round begins
	epoch   uint64 // that samples are of
	epochs  bool   // the server says when a pass begins
	idle    time.Duration
	waiting bool // for parameters, since idle
}

// latest are parameters that a round can begin on.
type latest struct {
	params         *protos.Tensor // nil for none
	version, epoch uint64
}

// localRound is what a worker does on its own between two pushes of several steps each.
type localRound struct {
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
	team, err := task.NewTeam(env, local, true)
	if err != nil {
		return nil, err
	}
	view := env.View()
	w := &worker{
		env:        env,
		local:      local,
		team:       team,
		server:     view.Members[serverOf(view)].PID,
		params:     task.Model.Params(),
		pushes:     protos.NewMessages(func() *protos.Push { return &protos.Push{} }),
		round:      localRound{every: max(a.Every, 1)},
		ahead:      a.model().Ahead(),
		epochs:     a.EpochShare > 0,
		compressor: newCompressor(env, task, a.Compress),
		answers:    a.Compress.Down.Size(task.Model.Params(), task.Model.Tensors()),
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
	case *train.Round:
		w.finish(ctx, m)
	}
}

func (w *worker) receive(m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start, *protos.View: // the server's greeting is what starts a worker
	case *protos.Parameters:
		size := w.answers
		if head.Life > w.life {
			size = w.params
		}
		if !actors.IsVector(m.Tensors, size) {
			actors.Fail(w.env, "parameters that are not one vector of %d", size)
			return
		}
		w.take(head, m)
	default:
		actors.Unexpected(w.env, m)
	}
}

// take takes in parameters, and begins a round on them if it may.
func (w *worker) take(head *protos.Parameters, m *protos.Message) {
	greets := head.Life > w.life
	switch {
	case head.Life < w.life, !greets && w.busy && w.ahead == 0:
		return // an answer to what this node pushed in its former life
	case greets:
		w.life, w.clock, w.heard = head.Life, head.Clock, head.Clock
		w.meet(m.Tensors[0].Data)
	default:
		w.heard = max(w.heard, head.Clock)
		w.clock = max(w.clock, head.Clock)
	}
	if w.latest.params == nil || greets || head.Version >= w.latest.version {
		params := m.Tensors[0].Retain()
		if w.down != nil && !greets {
			var ok bool
			if params, ok = w.compressor.decode(w.down, params); !ok {
				return
			}
		}
		w.latest.release()
		w.latest = latest{params, head.Version, head.Epoch}
	}
	w.greeted = w.greeted || greets && w.busy
	if !w.busy {
		w.proceed()
	}
}

// meet begins anew what is compressed between this worker and a server that greets it with
// parameters.
func (w *worker) meet(params []float32) {
	c := &w.compressor
	if c.both.Up != nil {
		w.up = c.both.Up.NewEncoder(c.params, c.tensors, c.both.Feedback, w.env.Rand("compress"))
	}
	if c.both.Down != nil {
		w.down = c.both.Down.NewDecoder(c.params, c.tensors, compress.EF21)
		copy(w.down.Memory(), params)
	}
}

// release gives the parameters back.
func (l *latest) release() {
	if l.params != nil {
		l.params.Release()
		l.params = nil
	}
}

// proceed begins a round if the worker may, on the latest parameters that it has.
func (w *worker) proceed() {
	if w.clock-w.heard > w.ahead || w.epochs && w.local.AtEnd() && w.latest.epoch == w.epoch {
		return
	}
	if w.waiting {
		w.waiting = false
		if idle := w.env.Now() - w.idle; idle > 0 || w.ahead == 0 {
			w.env.Record(actors.Event{Kind: actors.Waited, Duration: idle, Cause: "parameters"})
		}
	}
	if w.epochs && w.latest.epoch != w.epoch {
		w.epoch = w.latest.epoch
		w.local.Pass(w.epoch)
	}
	w.version = w.latest.version
	w.busy, w.greeted = true, false
	if w.team != nil {
		w.team.Begin(w.latest.params.Retain(), w.round.every)
	} else {
		if w.round.every > 1 {
			w.round.begin(w.latest.params.Retain())
		}
		w.local.Begin(w.latest.params.Retain())
	}
	if w.ahead == 0 {
		w.latest.release()
	}
}

// step takes a gradient in, and pushes at the end of a round.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	gradient, samples := g.Values, g.Samples
	w.local.Done(g)
	if w.greeted { // the round before is of another life
		gradient.Release()
		w.round.abandon()
		w.proceed()
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
	w.push(ctx, gradient, g.Step, samples)
}

// finish pushes the sum of the gradients of a round by several threads.
func (w *worker) finish(ctx actor.Context, r *train.Round) {
	w.team.Done(r)
	if w.greeted { // as in step
		w.proceed()
		return
	}
	w.push(ctx, w.team.Sum(), r.Steps[len(r.Steps)-1].Step, r.Samples)
}

// push pushes a gradient, which it takes over, and begins the next round if it may.
func (w *worker) push(ctx actor.Context, gradient *protos.Tensor, step uint64, samples int) {
	if w.up != nil {
		gradient = w.compressor.encode(w.up, gradient)
	}
	m, head := w.pushes.Get(gradient)
	head.Node, head.Step, head.Samples = int32(w.env.Node()), step, uint32(samples)
	head.Version, head.Life, head.Epoch = w.version, w.life, w.epoch
	w.busy = false
	w.clock++
	w.idle, w.waiting = w.env.Now(), true
	ctx.Send(w.server, m)
	if w.latest.params != nil {
		w.proceed()
	}
}

// begin takes over a reference to the parameters of a round.
func (r *localRound) begin(params *protos.Tensor) { r.model, r.steps, r.samples = params, 0, 0 }

// take adds a gradient, which it takes over, to the sum, and changes the copy by it. It returns the
// work.
func (r *localRound) take(env actors.Env, gradient *protos.Tensor, samples int) (work float64) {
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
func (r *localRound) abandon() {
	for _, t := range []*protos.Tensor{r.model, r.sum} {
		if t != nil {
			t.Release()
		}
	}
	r.model, r.sum = nil, nil
}

// end gives the copy back and hands the sum of the gradients over.
func (r *localRound) end() (sum *protos.Tensor, samples int) {
	r.model.Release()
	sum, r.sum, r.model = r.sum, nil, nil
	return sum, r.samples
}
