package gossip

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// entry is how a peer comes to its first model: the run's initial one, or, if the run has
// begun before, that of a neighbour.
//
// Who is asked by a peer that joins and has no model either says so at once, and sends its model
// when it has one; meanwhile the other asks somebody else. When a peer that joins has no neighbour
// left to ask, it starts from the initial model if it is the first of them in the order of the
// plan: so not all of those who join together can wait for each other. Who starts from the initial
// model starts at step 0, and a bounded lead makes the others wait until it has caught up.
type entry struct {
	started bool
	ready   bool      // there is a model
	base    uint64    // the last exchange before that
	asked   int       // for a model, or nobody
	without set       // neighbours that have no model either
	asking  []request // those who wait for the model
}

// request is where an answer is wanted.
type request struct {
	node     int
	exchange uint64
}

const nobody = -1

// start begins the run. Exchanges are numbered from the view in which the peer starts, so
// that no answer to one that lived on this node before can be mistaken for one to this.
func (p *peer) start(ctx actor.Context, head *protos.Start) {
	if p.started {
		actors.Fail(p.env, "started a second time")
		return
	}
	p.started = true
	p.base = head.View << 32
	p.exchange = p.base
	if head.Joins {
		p.ask(ctx)
		return
	}
	p.enter(ctx)
}

// enter begins to train and to exchange, and keeps what was promised.
func (p *peer) enter(ctx actor.Context) {
	p.ready, p.base = true, p.exchange
	for _, r := range p.asking {
		if p.env.View().Members[r.node].Present {
			p.reply(ctx, r)
		}
	}
	p.asking = nil
	if p.rules.Period > 0 {
		p.env.After(p.rules.Period, tick{})
	}
	p.proceed(ctx)
}

// ask asks a neighbour for its model, if none is asked already.
func (p *peer) ask(ctx actor.Context) {
	if p.ready || !p.started || p.asked != nobody {
		return
	}
	view := p.env.View()
	neighbours := view.Neighbours(p.env.Node())
	var left []int
	for _, node := range neighbours {
		if !p.without.has(node) {
			left = append(left, node)
		}
	}
	switch {
	case len(left) > 0:
		p.asked = left[p.env.Rand("join").IntN(len(left))]
		p.exchange++
		m, head := p.pulls.Get()
		head.Node, head.Exchange, head.Joins = int32(p.env.Node()), p.exchange, true
		ctx.Send(view.Members[p.asked].PID, m)
	case len(neighbours) == 0 || p.env.Node() < neighbours[0]:
		p.enter(ctx)
	}
}

// refused asks another neighbour than the one that has no model.
func (p *peer) refused(ctx actor.Context, head *protos.Busy) {
	if !p.known(head.Node) || p.ready || int(head.Node) != p.asked || head.Exchange != p.exchange {
		return
	}
	p.without.add(p.asked)
	p.asked = nobody
	p.ask(ctx)
}

// left forgets what a node that has gone was asked for.
func (p *peer) left(node int) {
	p.without.remove(node)
	if p.asked == node {
		p.asked = nobody
	}
}

// pull answers a peer that asks for a model.
func (p *peer) pull(ctx actor.Context, head *protos.PullModel) {
	if !p.known(head.Node) {
		return
	}
	from := request{int(head.Node), head.Exchange}
	switch {
	case !head.Joins && p.rules.Exchange != Pull:
		actors.Fail(p.env, "node %d pulls a model, here exchanges are %s", head.Node, p.rules.Exchange)
	case p.ready:
		p.reply(ctx, from)
	default:
		p.promise(from)
		if head.Joins {
			busy := &protos.Busy{Node: int32(p.env.Node()), Exchange: head.Exchange}
			ctx.Send(p.env.View().Members[head.Node].PID, protos.NewMessage(busy))
		}
	}
}

// promise keeps a request until there is a model.
func (p *peer) promise(r request) { p.asking = append(p.asking, r) }

// adopt starts from another peer's model, and from its count of steps; where the others know this
// node by a later step, of the peer that lived here before, from that, because clocks do not go
// back. The walk through the shard and the optimiser's schedule go on there; what the optimiser
// remembers of gradients begins anew.
func (p *peer) adopt(ctx actor.Context, head *protos.Model, model *protos.Tensor) {
	p.replica.Replace(model.Retain())
	p.replica.Version = head.Age
	p.steps = head.Step
	if p.env.Node() < len(head.Clock) {
		p.steps = max(p.steps, head.Clock[p.env.Node()])
	}
	p.local.Resume(p.steps)
	if err := p.replica.Resume(p.steps); err != nil {
		actors.Fail(p.env, "%w", err)
		return
	}
	p.lead.Finish(p.steps)
	p.announce(ctx)
	p.enter(ctx)
}
