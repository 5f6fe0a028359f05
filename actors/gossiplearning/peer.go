package gossiplearning

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// peer sends the freshest of its models on, and creates models of those that arrive.
type peer struct {
	env       actors.Env
	rules     Architecture
	local     *train.Local
	optimizer *periodic.Inner // of the updates of all models
	steps     uint64          // that were made here
	passed    uint64          // visits that have waited in vain
	sendings  *protos.Messages[*protos.Model]

	cache    []model // of 1 to rules.Cache; the last one is the freshest
	last     model   // received before, as it came
	waiting  []visit // received, no model created yet: at most as many as the cache may have
	creating creation

	account account
	started bool
	ticking bool // a turn to send will come
	silence int  // turns since something was heard
}

// visit is a model that has arrived.
type visit struct {
	model
	from int32
	step uint64 // steps that the sender had finished
}

// creation is what is under way between a visit and the next model of the cache.
type creation struct {
	busy   bool
	useful bool  // the visitor is
	from   model // that the gradient is computed on
	next   model // UM: to be updated after that
	first  model // UM: what the first update has made
}

// patience is how many turns a peer has without hearing anything; then it waits until it does. So a
// run in which no message arrives comes to a standstill, of which the world tells. Among fewer
// peers than that each hears from somebody sooner.
const patience = 100_000

// tick is the timer of a peer's turns.
type tick struct{}

func newPeer(env actors.Env, task *train.Task, a Architecture) (*peer, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	optimizer, err := periodic.NewInner(task.Method, task.Model.Params(), periodic.Kept)
	if err != nil {
		return nil, err
	}
	initial := model{params: env.Tensors().Copy(task.Initial())}
	return &peer{
		env: env, rules: a, local: local, optimizer: optimizer,
		sendings: protos.NewMessages(func() *protos.Model { return &protos.Model{} }),
		cache:    append(make([]model, 0, a.Cache), initial.retain()), last: initial,
		waiting: make([]visit, 0, a.Cache), account: account{flow: a.Flow},
	}, nil
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
		m.Release()
	case *train.Gradient:
		p.update(ctx, m)
	case tick:
		p.turn(ctx)
	}
}

func (p *peer) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		p.started = true
		p.await()
	case *protos.View:
		p.silence = 0
		p.await()
	case *protos.Model:
		p.visit(head, m.Tensors)
	case *protos.TakeSnapshot:
		p.show(ctx, head)
	default:
		actors.Unexpected(p.env, m)
	}
}

// await sees to it that a turn comes if there is anybody to send to. The first is at a random
// instant of a period, so that peers take turns.
func (p *peer) await() {
	if p.started && !p.ticking && p.degree() > 0 {
		p.ticking = true
		phase := p.env.Rand("phase").Int64N(int64(p.rules.Period))
		p.env.After(p.rules.Period-time.Duration(phase), tick{})
	}
}

func (p *peer) degree() int { return p.env.View().Degree(p.env.Node()) }

func (p *peer) freshest() model { return p.cache[len(p.cache)-1] }

var _ actors.Waiter = (*peer)(nil)

// Waiting implements [actors.Waiter].
func (p *peer) Waiting() string {
	if p.ticking || p.creating.busy {
		return ""
	}
	if p.degree() > 0 {
		return "a model of a neighbour"
	}
	return "a neighbour to exchange models with"
}

// turn sends a model, or saves a token up. Without neighbours turns end until there are some.
func (p *peer) turn(ctx actor.Context) {
	p.silence++
	if p.ticking = p.degree() > 0 && p.silence <= patience; !p.ticking {
		return
	}
	p.env.After(p.rules.Period, tick{})
	if p.account.period(p.env.Rand("tokens")) {
		p.send(ctx, 1)
	}
}

// send sends the freshest model to a number of random neighbours, each drawn among all.
func (p *peer) send(ctx actor.Context, n int) {
	view, random, degree := p.env.View(), p.env.Rand("choice"), p.degree()
	fresh := p.freshest()
	m, head := p.sendings.Get(fresh.params.Retain())
	head.Node, head.Step, head.Age = int32(p.env.Node()), p.steps, fresh.age
	m.Retain(n - 1)
	for range n {
		to := view.Neighbour(p.env.Node(), random.IntN(degree))
		p.env.Record(actors.Event{Kind: actors.Selected, Origin: to})
		ctx.Send(view.Members[to].PID, m)
	}
}

// visit takes a model in.
func (p *peer) visit(head *protos.Model, tensors []*protos.Tensor) {
	switch size := len(p.last.params.Data); {
	case !actors.Known(p.env, head.Node):
		return
	case !actors.IsVector(tensors, size):
		actors.Fail(p.env, "a model of node %d that is not one vector of %d values", head.Node, size)
		return
	}
	p.silence = 0
	p.await()
	if len(p.waiting) == p.rules.Cache {
		p.waiting[0].params.Release()
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.passed++
		p.env.Record(actors.Event{Kind: actors.Measured, Name: PassedOver, Value: float64(p.passed)})
	}
	p.waiting = append(p.waiting, visit{model{tensors[0].Retain(), head.Age}, head.Node, head.Step})
	p.create()
}

// create begins to create a model of the visitor that has waited longest.
func (p *peer) create() {
	if p.creating.busy || len(p.waiting) == 0 {
		return
	}
	v := p.waiting[0]
	p.waiting = slices.Delete(p.waiting, 0, 1)
	p.env.Record(actors.Event{Kind: actors.Merged, Origin: int(v.from), Step: v.step})
	c := &p.creating
	*c = creation{busy: true, useful: v.age >= p.freshest().age}
	switch p.rules.Create {
	case MU:
		c.from = p.rules.Merge.merge(p.env, v.model, p.last)
	case UM:
		c.from, c.next = v.retain(), p.last.retain()
	default:
		c.from = v.retain()
	}
	p.last.params.Release()
	p.last = v.model
	p.local.Begin(c.from.params.Retain())
}

// update makes an update with the gradient of a step; the last one of a creation ends it.
func (p *peer) update(ctx actor.Context, g *train.Gradient) {
	gradient, c := g.Values, &p.creating
	p.steps = g.Step
	p.local.Done(g)
	updated := p.step(c.from, gradient.Data)
	gradient.Release()
	if c.next.params != nil {
		c.first, c.from, c.next = updated, c.next, model{}
		p.local.Begin(c.from.params.Retain())
		return
	}
	if c.first.params != nil {
		merged := p.rules.Merge.merge(p.env, c.first, updated)
		c.first.params.Release()
		updated.params.Release()
		updated = merged
	}
	p.keep(updated)
	useful := c.useful
	*c = creation{}
	p.react(ctx, useful)
	p.create()
}

// step takes over a model and returns what an update makes of it.
func (p *peer) step(m model, gradient []float32) model {
	p.optimizer.Begin(int(m.age))
	m.params = train.Update(p.env.Tensors(), p.optimizer, m.params, gradient)
	m.age++
	p.env.Charge(p.optimizer.Work(len(gradient)))
	p.env.Record(actors.Event{Kind: actors.UpdateApplied, Version: p.steps, Origin: p.env.Node()})
	return m
}

// keep puts a model into the cache.
func (p *peer) keep(m model) {
	if len(p.cache) == p.rules.Cache {
		p.cache[0].params.Release()
		p.cache = slices.Delete(p.cache, 0, 1)
	}
	p.cache = append(p.cache, m)
}

// react spends tokens because a model was created.
func (p *peer) react(ctx actor.Context, useful bool) {
	if p.degree() == 0 {
		return
	}
	if n := p.account.created(useful, p.env.Rand("tokens")); n > 0 {
		p.send(ctx, n)
	}
}

// show answers with what the peer predicts by: the freshest model, and for a vote the others.
func (p *peer) show(ctx actor.Context, head *protos.TakeSnapshot) {
	fresh, others := p.freshest(), p.cache[:len(p.cache)-1]
	if p.rules.Predict == Freshest {
		others = nil
	}
	answer := &protos.Snapshot{Evaluation: head.Evaluation, Node: int32(p.env.Node()), Version: fresh.age}
	tensors := []*protos.Tensor{fresh.params.Retain()}
	for _, m := range others {
		tensors = append(tensors, m.params.Retain())
	}
	ctx.Send(actors.CoordinatorPID(), protos.NewMessage(answer, tensors...))
}
