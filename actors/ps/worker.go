package ps

import (
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
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

	layout *layout
	owners []int             // the server of each shard
	order  []int             // in which shards are sent
	parts  []*part           // by shard
	behind int               // parts for which the next round waits
	since  uint64            // the view with which this life began; 0 before that is known
	early  []*protos.Message // parameters that have come before
	fleet  shards.Fleet
	safe   bool // shards have replicas: what was not answered is pushed again if servers come or go

	params  *protos.Tensor // of a model of several shards, as they are put together; nil at first
	pushes  *protos.Messages[*protos.Push]
	ahead   uint64 // how many pushes of a part may be unanswered when a round begins
	epoch   uint64 // that samples are of
	epochs  bool   // the first shard says when a pass begins
	shard   int    // samples that the worker has
	left    int    // of them in this pass
	idle    time.Duration
	waiting bool // for parameters, since idle
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
	l := newLayout(a.Servers, task.Model, view.Members)
	w := &worker{
		env:    env,
		local:  local,
		team:   team,
		layout: l,
		behind: l.shards,
		fleet:  shards.NewFleet(env),
		pushes: protos.NewMessages(func() *protos.Push { return &protos.Push{} }),
		safe:   l.servers.Replicas > 0,
		round:  localRound{every: max(a.Every, 1)},
		ahead:  a.model().Ahead(),
		epochs: a.EpochShare > 0,
		shard:  local.Samples(),
	}
	w.fleet.Replicated = w.safe
	w.left = w.shard
	w.locate()
	for k := range l.shards {
		w.parts = append(w.parts, newPart(env, l, k, a.Compress))
	}
	if w.round.every > 1 {
		w.round.optimizer = task.Method.New(l.params)
	}
	return w, nil
}

var _ actors.Waiter = (*worker)(nil)

// Waiting implements [actors.Waiter].
func (w *worker) Waiting() string {
	if w.busy {
		return ""
	}
	view := w.env.View()
	names := []string{}
	for k, p := range w.parts {
		if w.owners == nil || !p.late(w.ahead) {
			continue
		}
		if name := view.Members[w.owners[k]].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "parameters from a server"
	}
	return "parameters from " + strings.Join(names, ", ")
}

func (w *worker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		w.receive(ctx, m)
	case *train.Gradient:
		w.step(ctx, m)
	case *train.Round:
		w.team.Done(m)
		w.finish(ctx, w.team.Sum(), m.Steps[len(m.Steps)-1].Step, m.Samples)
	}
}

func (w *worker) receive(ctx actor.Context, m *protos.Message) {
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		w.start(ctx, head.View)
	case *protos.View:
		w.view(ctx)
	case *protos.Parameters:
		w.parameters(ctx, head, m)
	default:
		actors.Unexpected(w.env, m)
	}
}

// locate sets the owners of the shards in the view, and the order of sending.
func (w *worker) locate() {
	w.owners = w.layout.owners(w.env.View())
	w.order = inTurns(w.owners)
}

// view applies a new view: it locates the shards again if servers came or went.
func (w *worker) view(ctx actor.Context) {
	moved, leaving, ok := w.fleet.Follow()
	if !ok {
		return
	}
	if moved {
		w.locate()
	}
	if !w.safe {
		w.fleet.Farewell(ctx, leaving)
	} else if moved {
		w.again(ctx)
	}
}

// again sends what was not answered once more, in the same order, to the servers of the view.
func (w *worker) again(ctx actor.Context) {
	for _, k := range w.order {
		p := w.parts[k]
		p.fresh = p.builds()
		for i := range p.sent {
			w.send(ctx, p, &p.sent[i], p.sent[i].values.Retain())
		}
		if p.epoch < p.awaits {
			w.pull(ctx, p)
		}
	}
}

// start notes the view with which this life began. Greetings of the servers may have come before,
// and so may what was meant for a former life of this node, which is forgotten.
func (w *worker) start(ctx actor.Context, view uint64) {
	w.since = max(view, 1)
	for _, m := range w.early {
		w.parameters(ctx, m.Head.(*protos.Parameters), m)
		m.Release()
	}
	w.early = nil
}

// parameters takes in the parameters of a shard, once it is known which life of this node they can
// be for.
func (w *worker) parameters(ctx actor.Context, head *protos.Parameters, m *protos.Message) {
	switch {
	case int(head.Shard) >= len(w.parts):
		actors.Fail(w.env, "parameters of shard %d of %d", head.Shard, len(w.parts))
	case w.since == 0:
		w.early = append(w.early, m.Retain(1))
	case head.Life >= w.since:
		w.take(ctx, w.parts[head.Shard], head, m)
	}
}

// take takes in the parameters of a shard, and begins a round if the worker may.
func (w *worker) take(ctx actor.Context, p *part, head *protos.Parameters, m *protos.Message) {
	was := p.late(w.ahead)
	if !p.take(head, m) {
		return
	}
	if w.ahead == 0 && head.Pushes > 0 && head.Pushes == p.pushes { // all are there, and it may go on
		p.heard = p.clock
	}
	if was && !p.late(w.ahead) {
		w.behind--
	}
	if !w.busy {
		w.proceed(ctx)
	}
}

// wake asks all shards but the first for parameters after a rest: they do not know that it is over.
func (w *worker) wake(ctx actor.Context) {
	w.left = w.shard
	for _, p := range w.parts[1:] {
		if !p.late(w.ahead) {
			w.behind++
		}
		p.awaits = w.parts[0].latest.epoch
		w.pull(ctx, p)
	}
}

// pull asks for the parameters of a shard after a rest.
func (w *worker) pull(ctx actor.Context, p *part) {
	head := &protos.Pull{Node: int32(w.env.Node()), Life: p.life, Shard: uint32(p.index), Epoch: p.awaits,
		Pushes: p.pushes}
	if w.safe {
		head.View = w.env.View().Number
	}
	ctx.Send(w.server(p), protos.NewMessage(head))
}

// server is where messages about a shard go.
func (w *worker) server(p *part) *actor.PID { return w.env.View().Members[w.owners[p.index]].PID }

// proceed begins a round if the worker may, on the latest parameters that it has.
func (w *worker) proceed(ctx actor.Context) {
	first := &w.parts[0].latest
	if w.epochs && w.left <= 0 && first.epoch != w.epoch {
		w.wake(ctx)
	}
	if w.behind > 0 || w.epochs && w.left <= 0 && first.epoch == w.epoch {
		return
	}
	if w.waiting {
		w.waiting = false
		if idle := w.env.Now() - w.idle; idle > 0 || w.ahead == 0 {
			w.env.Record(actors.Event{Kind: actors.Waited, Duration: idle, Cause: "parameters"})
		}
	}
	if w.epochs && first.epoch != w.epoch {
		w.epoch, w.left = first.epoch, w.shard
		w.local.Pass(w.epoch)
	}
	params := w.assemble()
	w.busy = true
	if w.team != nil {
		w.team.Begin(params, w.round.every)
		return
	}
	if w.round.every > 1 {
		w.round.begin(params.Retain())
	}
	w.local.Begin(params)
}

// assemble returns the latest parameters of all shards, with a reference for the caller.
func (w *worker) assemble() *protos.Tensor {
	for _, p := range w.parts {
		p.version = p.latest.version
	}
	if len(w.parts) == 1 {
		return w.parts[0].give(w.ahead > 0)
	}
	pool := w.env.Tensors()
	if w.params == nil {
		w.params = pool.Get(w.layout.params)
	}
	w.params = pool.Writable(w.params)
	copied := 0
	for _, p := range w.parts {
		if p.latest.params != nil {
			copied += copy(w.params.Data[p.low:p.high], p.latest.params.Data)
			p.latest.release()
		}
	}
	w.env.Charge(float64(copied))
	return w.params.Retain()
}

// step takes a gradient in, and pushes at the end of a round.
func (w *worker) step(ctx actor.Context, g *train.Gradient) {
	gradient, samples := g.Values, g.Samples
	w.local.Done(g)
	if w.round.every > 1 {
		w.env.Charge(w.round.take(w.env, gradient, samples))
		if w.round.steps < w.round.every {
			w.local.Begin(w.round.model.Retain())
			return
		}
		gradient, samples = w.round.end()
	}
	w.finish(ctx, gradient, g.Step, samples)
}

// finish takes over the gradient of a round, pushes it, and begins the next one if it may.
func (w *worker) finish(ctx actor.Context, gradient *protos.Tensor, step uint64, samples int) {
	w.push(ctx, gradient, step, samples)
	w.busy = false
	w.idle, w.waiting = w.env.Now(), true
	if w.ahead > 0 {
		w.proceed(ctx)
	}
}

// push takes over a gradient, and sends each shard's part to its server.
func (w *worker) push(ctx actor.Context, gradient *protos.Tensor, step uint64, samples int) {
	w.left -= samples
	w.behind = 0
	for _, k := range w.order {
		p, values := w.parts[k], gradient
		if len(w.parts) > 1 {
			values = gradient.View(p.low, p.high)
		}
		values = p.code(values)
		p.pushes++
		if p.clock++; p.late(w.ahead) {
			w.behind++
		}
		sent := push{step: step, samples: uint32(samples), version: p.version, epoch: w.epoch,
			rests: w.epochs && w.left <= 0, whole: p.fresh, number: p.pushes}
		if w.safe {
			p.keep(sent, values)
		}
		w.send(ctx, p, &sent, values)
	}
	if len(w.parts) > 1 {
		gradient.Release()
	}
}

// send sends a push, whose values it takes over.
func (w *worker) send(ctx actor.Context, p *part, sent *push, values *protos.Tensor) {
	m, head := w.pushes.Get(values)
	head.Node, head.Step, head.Samples = int32(w.env.Node()), sent.step, sent.samples
	head.Version, head.Life, head.Epoch = sent.version, p.life, sent.epoch
	head.Shard, head.Rests, head.Whole = uint32(p.index), sent.rests, sent.whole
	if w.safe {
		head.Number, head.View = sent.number, w.env.View().Number
	}
	ctx.Send(w.server(p), m)
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

// end gives the copy back and hands the sum of the gradients over.
func (r *localRound) end() (sum *protos.Tensor, samples int) {
	r.model.Release()
	sum, r.sum, r.model = r.sum, nil, nil
	return sum, r.samples
}
