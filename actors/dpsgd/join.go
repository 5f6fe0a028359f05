package dpsgd

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// look takes over from the view who is there and who is a neighbour.
func (p *peer) look() {
	view := p.env.View()
	for i := range p.pairs {
		x := &p.pairs[i]
		there := view.Members[x.node].Present
		switch linked := there && view.Linked(p.env.Node(), x.node); {
		case linked && x.stage == absent:
			x.stage, x.since, x.met = apart, view.Number, x.there
			p.news = p.news || x.met // it may have missed what was announced
		case !linked && x.stage != absent:
			x.part()
			if p.source == x.node {
				p.source = -1
			}
		}
		x.there = there
	}
}

// change goes on with those who are there, and are neighbours, in a new view.
func (p *peer) change(ctx actor.Context) {
	p.look()
	if p.phase == pulling && p.source < 0 {
		p.pull(ctx)
	}
	for i := range p.pairs {
		p.answer(ctx, &p.pairs[i])
	}
	p.approach(ctx)
	p.meet()
	p.advance(ctx)
}

// approach asks those who have become neighbours while both were there; of two the one that comes
// first in the plan asks. It begins no other step before it knows the answer, which comes at once.
func (p *peer) approach(ctx actor.Context) {
	if p.phase < meeting {
		return // greet asks all
	}
	for i := range p.pairs {
		if x := &p.pairs[i]; x.stage == apart && x.met && p.env.Node() < x.node {
			p.ask(ctx, x)
		}
	}
}

// ask wishes to average with a neighbour from the next step on.
func (p *peer) ask(ctx actor.Context, x *pair) {
	x.stage, x.mine = asked, p.next()
	p.wish(ctx, x, x.mine, false)
}

// next is the first step that this peer has not begun.
func (p *peer) next() uint64 {
	if p.phase == working {
		return p.step + 1
	}
	return p.step
}

// pull asks the next neighbour that is there for its model, in turn. Who has no neighbour, or
// was refused by as many as there are nodes because they are joining as well, begins
// with the initial parameters.
func (p *peer) pull(ctx actor.Context) {
	next := -1
	for i := range p.pairs {
		k := (i + p.refusals) % len(p.pairs)
		if p.pairs[k].stage != absent {
			next = k
			break
		}
	}
	if next < 0 || p.refusals > len(p.env.View().Members) {
		p.greet(ctx)
		return
	}
	x := &p.pairs[next]
	p.source = x.node
	ctx.Send(p.pid(x), protos.NewMessage(&protos.PullModel{Node: int32(p.env.Node()), Exchange: p.since, Joins: true}))
}

// give answers who asks for a model.
func (p *peer) give(ctx actor.Context, head *protos.PullModel) {
	x := p.pair(head.Node)
	if x == nil {
		actors.Fail(p.env, "node %d asks for a model and is no neighbour", head.Node)
		return
	}
	if p.phase == idle || p.phase == pulling {
		ctx.Send(p.pid(x), protos.NewMessage(&protos.Busy{Node: int32(p.env.Node()), Exchange: head.Exchange}))
		return
	}
	m, answer := p.models.Get(p.replica.Params.Retain())
	p.fill(answer, head.Exchange)
	answer.Answer = true
	ctx.Send(p.pid(x), m)
}

// refused asks somebody else.
func (p *peer) refused(ctx actor.Context, head *protos.Busy) {
	if p.phase == pulling && p.source == int(head.Node) && p.since == head.Exchange {
		p.refusals++
		p.pull(ctx)
	}
}

// model takes in a neighbour's model: that of a step, or the one to begin with.
func (p *peer) model(ctx actor.Context, head *protos.Model, m *protos.Message) {
	p.merge(head.Clock)
	x := p.pair(head.Node)
	switch {
	case x == nil:
		actors.Fail(p.env, "model of node %d, which is no neighbour", head.Node)
	case head.Wanted, head.Answer && len(m.Tensors) == 0:
		p.agree(ctx, x, head)
	case head.Answer:
		p.adopt(ctx, head, m)
	case x.stage == absent || head.Exchange != p.token(x):
		// It is from a former life of either.
	default:
		if err := x.accept(head, m, p.step, len(p.replica.Params.Data)); err != nil {
			actors.Fail(p.env, "model of %s in step %d: %w", x.name, head.Step, err)
			return
		}
		p.advance(ctx)
	}
}

// adopt begins with a neighbour's model and its count of steps.
func (p *peer) adopt(ctx actor.Context, head *protos.Model, m *protos.Message) {
	if p.phase != pulling || head.Exchange != p.since {
		return // the answer to a former life
	}
	if !actors.IsVector(m.Tensors, len(p.replica.Params.Data)) {
		actors.Fail(p.env, "a model to begin with that is not one vector of %d", len(p.replica.Params.Data))
		return
	}
	p.replica.Replace(m.Tensors[0].Retain())
	p.replica.Version = head.Age
	p.step = head.Step
	p.greet(ctx)
}

// greet agrees with all neighbours that are there from which step on to average: those who
// have asked are answered, the others asked.
func (p *peer) greet(ctx actor.Context) {
	p.phase, p.source = meeting, -1
	for i := range p.pairs {
		x := &p.pairs[i]
		p.answer(ctx, x)
		if x.stage == apart {
			p.ask(ctx, x)
		}
	}
	p.meet()
	p.advance(ctx)
}

// wish asks a neighbour to average from a step on, or tells it the step that it has to be. Such
// a message is the head of a model without one.
func (p *peer) wish(ctx actor.Context, x *pair, step uint64, answer bool) {
	m, head := p.models.Get()
	p.fill(head, p.token(x))
	head.Step, head.Wanted, head.Answer = step, !answer, answer
	ctx.Send(p.pid(x), m)
}

// agree takes in a neighbour's wish or its answer. Two wishes that cross are each other's
// answer. A wish that outruns the view that explains it waits for that.
func (p *peer) agree(ctx actor.Context, x *pair, head *protos.Model) {
	token := p.token(x)
	switch {
	case head.Exchange < token:
		return // from a former life of either
	case head.Exchange == token && x.stage == asked:
		x.stage, x.first = joined, max(head.Step, x.mine)
	case head.Wanted:
		x.greeted, x.wish = head.Exchange, head.Step
		p.answer(ctx, x)
	}
	p.meet()
	p.advance(ctx)
}

// answer agrees to a neighbour's wish, if it has one and this peer has a model: the pair averages
// from the first step that neither has begun.
func (p *peer) answer(ctx actor.Context, x *pair) {
	if p.phase < meeting || x.stage != apart || x.greeted != p.token(x) {
		return
	}
	x.stage, x.first = joined, max(x.wish, p.next())
	p.wish(ctx, x, x.first, true)
}

// meet ends the joining once all neighbours have answered: this peer goes on with the first
// step in which it averages with one of them. The optimiser's schedule goes on from there; what it
// remembers of gradients begins anew.
func (p *peer) meet() {
	if p.phase != meeting {
		return
	}
	first, found := uint64(0), false
	for i := range p.pairs {
		switch x := &p.pairs[i]; {
		case x.stage == asked:
			return
		case x.stage == joined && (!found || x.first < first):
			first, found = x.first, true
		}
	}
	p.step = max(p.step, first)
	p.phase, p.news = resting, true
	p.lead.Finish(p.step)
	p.local.Resume(p.step)
	if err := p.replica.Resume(p.step); err != nil {
		actors.Fail(p.env, "%w", err)
	}
}
