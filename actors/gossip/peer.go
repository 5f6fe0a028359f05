package gossip

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// peer makes its steps, exchanges models, and merges what arrives. A step begins when
// none is under way, the peer has a model, nothing of the last exchange is awaited, and the
// lead allows it; see proceed.
type peer struct {
	env     actors.Env
	rules   Architecture
	local   *train.Local
	replica *peers.Replica
	drift   peers.Drift
	lead    *peers.Lead
	choice  chooser
	codec   *train.Codec

	models   *protos.Messages[*protos.Model]
	pulls    *protos.Messages[*protos.PullModel]
	arrivals *protos.Messages[*protos.Arrived]

	joining  peers.Joining
	merged   int // models, since the last step
	stepping bool

	exchange uint64    // number of the last one
	base     uint64    // number of the last one of earlier lives of the node
	promised []request // exchanges of others that want a model, from before there was one
	awaited  nodes     // that it is not over with

	idle peers.Idle // because of the exchange, or of the lead
	news bool       // the clock has changed, or those who should know it, since it was announced
}

// request is where an answer is wanted.
type request struct {
	node     int
	exchange uint64
}

// tick is the timer of exchanges with a period.
type tick struct{}

func newPeer(env actors.Env, task *train.Task, a Architecture) (*peer, error) {
	local, err := task.NewLocal(env)
	if err != nil {
		return nil, err
	}
	p := &peer{
		env: env, rules: a, local: local, replica: peers.NewReplica(env, task),
		drift: peers.NewDrift(a.Moved), lead: peers.NewLead(env, a.Lead),
		idle: peers.NewIdle(env), choice: chooser{env: env, choice: a.Choice},
		codec:    train.NewCodec(env, task, a.Compress),
		models:   protos.NewMessages(func() *protos.Model { return &protos.Model{} }),
		pulls:    protos.NewMessages(func() *protos.PullModel { return &protos.PullModel{} }),
		arrivals: protos.NewMessages(func() *protos.Arrived { return &protos.Arrived{} }),
	}
	p.joining = peers.NewJoining(env, p.local, p.replica, p.lead)
	return p, nil
}

func (p *peer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *protos.Message:
		p.receive(ctx, m)
		p.lead.Relay(ctx)
		m.Release()
	case *train.Gradient:
		p.step(ctx, m)
	case peers.AskAgain:
		if p.joining.AskAgain(ctx) {
			p.announce(ctx)
			p.enter(ctx)
		}
	case tick:
		p.trade(ctx)
		p.env.After(p.rules.Period, tick{})
	}
}

func (p *peer) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		p.start(ctx, head)
	case *protos.Join, *protos.Unready, *protos.Welcome:
		if p.joining.Receive(ctx, m) {
			p.announce(ctx)
			p.enter(ctx)
		}
	case *protos.View:
		p.change(ctx, head)
	case *protos.Model:
		p.model(ctx, head, m.Tensors)
	case *protos.PullModel:
		p.pull(ctx, head)
	case *protos.Arrived:
		p.arrived(ctx, head)
	case *protos.Clock:
		p.hear(head.Node, head.Floor, head.Others)
		p.proceed(ctx)
	case *protos.TakeSnapshot:
		train.AnswerSnapshot(ctx, p.env, head, p.replica.Params, p.replica.Version)
	default:
		actors.Unexpected(p.env, m)
	}
}

// proceed begins the next step if nothing stands in its way. A peer held by the lead passes on what
// it hears. Otherwise a peer could wait for a clock that stands still behind another waiting peer.
func (p *peer) proceed(ctx actor.Context) {
	if p.stepping || !p.joining.Ready() || len(p.awaited) > 0 {
		return
	}
	if slowest, held := p.lead.Slowest(); held {
		p.idle.Wait(p.env.View().Members[slowest].Name)
		if p.news {
			p.announce(ctx)
		}
		return
	}
	p.idle.Resume()
	p.stepping = true
	p.local.Begin(p.replica.Params.Retain())
}

var _ actors.Waiter = (*peer)(nil)

// Waiting implements [actors.Waiter].
func (p *peer) Waiting() string {
	members := p.env.View().Members
	switch {
	case p.stepping:
		return ""
	case !p.joining.Ready():
		return p.joining.Waiting()
	case len(p.awaited) > 0:
		return p.cause() + " of its exchange with " + members[p.awaited[0]].Name
	}
	return p.lead.Waiting()
}

func (p *peer) announce(ctx actor.Context) {
	p.news = false
	p.lead.Announce(ctx)
}

// step applies the gradient of a step to the present model.
func (p *peer) step(ctx actor.Context, g *train.Gradient) {
	gradient := g.Values
	p.stepping, p.replica.Steps, p.merged = false, g.Step, 0
	p.local.Done(g)
	p.replica.Update(gradient.Data)
	gradient.Release()
	p.lead.Finish(p.replica.Steps)
	p.announce(ctx)
	if p.rules.Every > 0 && p.replica.Steps%uint64(p.rules.Every) == 0 {
		p.trade(ctx)
	}
	p.proceed(ctx)
}

// start takes in that the run begins for this peer. Exchanges are numbered from the view in which
// the peer starts, so that no answer to an earlier life of the node can be mistaken for one to
// this.
func (p *peer) start(ctx actor.Context, head *protos.Start) {
	p.base = head.View << 32
	p.exchange = p.base
	if p.joining.Start(ctx, head) {
		p.enter(ctx)
	}
}

// started reports whether this life of the node has; before that, answers are to an earlier one.
func (p *peer) started() bool { return p.base > 0 }

// enter begins to train and to exchange, and keeps what was promised.
func (p *peer) enter(ctx actor.Context) {
	for _, r := range p.promised {
		if p.env.View().Members[r.node].Present {
			p.answer(ctx, r)
		}
	}
	p.promised = nil
	if p.rules.Period > 0 {
		p.env.After(p.rules.Period, tick{})
	}
	p.proceed(ctx)
}

// pull answers a peer that asks for this peer's model.
func (p *peer) pull(ctx actor.Context, head *protos.PullModel) {
	switch {
	case !actors.Known(p.env, head.Node):
	case p.rules.Exchange != Pull:
		actors.Fail(p.env, "node %d pulls a model, here exchanges are %s", head.Node, p.rules.Exchange)
	default:
		p.answer(ctx, request{int(head.Node), head.Exchange})
	}
}

// trade begins an exchange, unless the model has hardly moved.
func (p *peer) trade(ctx actor.Context) {
	far, work := p.drift.Far(p.replica.Params.Data)
	p.env.Charge(work)
	if !far {
		return
	}
	chosen := p.choice.draw()
	if len(chosen) == 0 {
		return
	}
	p.drift.Mark(p.replica.Params)
	p.exchange++
	m := p.opening()
	m.Retain(len(chosen) - 1)
	members := p.env.View().Members
	for _, node := range chosen {
		p.env.Record(actors.Event{Kind: actors.Selected, Origin: node})
		if p.rules.Wait {
			p.awaited.add(node)
			p.idle.Wait(p.cause())
		}
		ctx.Send(members[node].PID, m)
	}
}

// opening is the message that an exchange begins with.
func (p *peer) opening() *protos.Message {
	if p.rules.Exchange != Pull {
		m, head := p.own()
		head.Exchange, head.Wanted = p.exchange, p.rules.Exchange == PushPull
		return m
	}
	m, head := p.pulls.Get()
	head.Node, head.Exchange = int32(p.env.Node()), p.exchange
	return m
}

// own is a message with the peer's model, of no exchange yet.
func (p *peer) own() (*protos.Message, *protos.Model) {
	m, head := p.models.Get(p.codec.Encode(p.replica.Params))
	head.Node, head.Step, head.Age = int32(p.env.Node()), p.replica.Steps, p.replica.Version
	head.Exchange, head.Wanted, head.Answer = 0, false, false
	head.Floor, head.Others = p.lead.Append(head.Others[:0])
	return m, head
}

// answer answers the exchange of another peer with the present model, or once there is one.
func (p *peer) answer(ctx actor.Context, to request) {
	if !p.joining.Ready() {
		p.promised = append(p.promised, to)
		return
	}
	m, head := p.own()
	head.Exchange, head.Answer = to.exchange, true
	ctx.Send(p.env.View().Members[to.node].PID, m)
}

// model takes in a model: one that is pushed, or an answer.
func (p *peer) model(ctx actor.Context, head *protos.Model, tensors []*protos.Tensor) {
	size := p.codec.Size(len(p.replica.Params.Data))
	switch {
	case !actors.Known(p.env, head.Node):
		return
	case !actors.IsVector(tensors, size):
		actors.Fail(p.env, "a model of node %d that is not one vector of %d values", head.Node, size)
		return
	case head.Answer && p.started() && head.Exchange > p.exchange:
		actors.Fail(p.env, "node %d answers exchange %d, the last one was %d", head.Node, head.Exchange, p.exchange)
		return
	case !head.Answer && (p.rules.Exchange == Pull || head.Wanted != (p.rules.Exchange == PushPull)):
		actors.Fail(p.env, "node %d pushes a model (answer wanted: %v), here exchanges are %s", head.Node, head.Wanted,
			p.rules.Exchange)
		return
	}
	p.hear(head.Node, head.Floor, head.Others)
	if head.Answer {
		p.answered(head, tensors[0])
	} else {
		p.pushed(ctx, head, tensors[0])
	}
	p.proceed(ctx)
}

// pushed takes in a model that its sender has pushed.
func (p *peer) pushed(ctx actor.Context, head *protos.Model, model *protos.Tensor) {
	from := request{int(head.Node), head.Exchange}
	switch {
	case head.Wanted:
		p.answer(ctx, from)
	case p.rules.Wait:
		m, arrived := p.arrivals.Get()
		arrived.Node, arrived.Exchange = int32(p.env.Node()), head.Exchange
		ctx.Send(p.env.View().Members[head.Node].PID, m)
	}
	if p.joining.Ready() {
		p.merge(head, model)
	}
}

// answered takes in a model that this peer has asked for, unless it was asked in an earlier life of
// the node.
func (p *peer) answered(head *protos.Model, model *protos.Tensor) {
	if p.started() && head.Exchange > p.base {
		p.merge(head, model)
		p.over(int(head.Node), head.Exchange)
	}
}

// over notes that nothing more is awaited of a node, unless that was another exchange.
func (p *peer) over(node int, exchange uint64) {
	if exchange == p.exchange && p.awaited.remove(node) && len(p.awaited) == 0 {
		p.idle.Resume()
	}
}

// cause is what an exchange is waited for by.
func (p *peer) cause() string {
	if p.rules.Exchange == Push {
		return "delivery"
	}
	return "answer"
}

// arrived notes that what was pushed is there.
func (p *peer) arrived(ctx actor.Context, head *protos.Arrived) {
	if !actors.Known(p.env, head.Node) || !p.started() {
		return
	}
	if !p.rules.Wait || p.rules.Exchange != Push || head.Exchange > p.exchange {
		actors.Fail(p.env, "node %d has received exchange %d, and nobody waits for that", head.Node, head.Exchange)
		return
	}
	p.over(int(head.Node), head.Exchange)
	p.proceed(ctx)
}

// hear takes in how far others are.
func (p *peer) hear(node int32, floor uint64, others []byte) {
	if p.lead.Merge(node, floor, others) {
		p.news = true
	}
}

// merge merges another model, as it has travelled, into the present one, in new memory, because a
// step or a message may still read what was there.
func (p *peer) merge(head *protos.Model, code *protos.Tensor) {
	own := Counts{Age: p.replica.Version, Steps: p.replica.Steps, Merged: p.merged}
	weight := p.rules.Rule.Weight(own, Counts{Age: head.Age, Steps: head.Step})
	if !(weight >= 0 && weight <= 1) {
		actors.Fail(p.env, "the rule %T gives a model the weight %v, accepted is 0 to 1", p.rules.Rule, weight)
		return
	}
	other, err := p.codec.Decode(code)
	if err != nil {
		actors.Fail(p.env, "a model of node %d: %w", head.Node, err)
		return
	}
	merged := p.env.Tensors().Get(len(other.Data))
	nn.WeightedSum(merged.Data, float32(1-weight), p.replica.Params.Data, float32(weight), other.Data)
	other.Release()
	p.replica.Replace(merged)
	p.replica.Version = max(p.replica.Version, head.Age)
	p.merged++
	p.env.Record(actors.Event{Kind: actors.Merged, Origin: int(head.Node), Step: head.Step})
	p.env.Charge(3 * float64(len(merged.Data)))
}

// change goes on without those that have gone.
func (p *peer) change(ctx actor.Context, head *protos.View) {
	for _, node := range head.Absent {
		p.over(int(node), p.exchange)
	}
	p.news = true
	if p.joining.Change(ctx, head) {
		p.enter(ctx)
	}
	p.proceed(ctx)
}
