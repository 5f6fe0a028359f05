package dpsgd

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// look takes over from the view which nodes are there and which are neighbours.
func (p *peer) look() {
	view := p.env.View()
	if p.arch.Track {
		p.tracker.restart(view.Number)
	}
	for i := range p.pairs {
		x := &p.pairs[i]
		there := view.Members[x.node].Present
		switch linked := there && view.Linked(p.env.Node(), x.node); {
		case linked && x.stage == absent:
			x.stage, x.since, x.met = apart, view.Number, x.there
			p.news = p.news || x.met // it may have missed what was announced
		case !linked && x.stage != absent:
			x.part()
		}
		x.there = there
	}
}

// change goes on with those who are there, and are neighbours, in a new view.
func (p *peer) change(ctx actor.Context, head *protos.View) {
	p.look()
	if p.joining.Change(ctx, head) {
		p.greet(ctx)
		return
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
		return p.replica.Steps + 1
	}
	return p.replica.Steps
}

// model takes in a neighbour's model of a step.
func (p *peer) model(ctx actor.Context, head *protos.Model, m *protos.Message) {
	p.merge(head.Node, head.Floor, head.Others)
	switch x := p.pair(head.Node); {
	case x == nil:
		actors.Fail(p.env, "model of node %d, which is no neighbour", head.Node)
	case x.stage == absent || head.Exchange != p.token(x):
		// It is from an earlier life of either.
	default:
		params, code := len(p.replica.Params.Data), 0
		if p.choco != nil {
			code = p.choco.encoder.Size()
		}
		if err := x.accept(head, m, p.replica.Steps, params, code); err != nil {
			actors.Fail(p.env, "model of %s in step %d: %w", x.name, head.Step, err)
			return
		}
		p.advance(ctx)
	}
}

// greet agrees with all neighbours that are there from which step on to average: those who
// have asked are answered, the others asked.
func (p *peer) greet(ctx actor.Context) {
	p.phase = meeting
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

// wish asks a neighbour to average from a step on, or tells it the step that it has to be.
func (p *peer) wish(ctx actor.Context, x *pair, step uint64, answer bool) {
	head := &protos.Meet{Node: int32(p.env.Node()), Since: p.token(x), Step: step, Answer: answer}
	head.Floor, head.Others = p.lead.Append(nil)
	ctx.Send(p.pid(x), protos.NewMessage(head))
}

// agree takes in a neighbour's wish or its answer. Two wishes that cross are each other's
// answer. A wish that outruns the view that explains it waits for that.
func (p *peer) agree(ctx actor.Context, head *protos.Meet) {
	p.merge(head.Node, head.Floor, head.Others)
	x := p.pair(head.Node)
	if x == nil {
		actors.Fail(p.env, "node %d, which is no neighbour, asks to average", head.Node)
		return
	}
	switch token := p.token(x); {
	case head.Since < token:
		return // from an earlier life of either
	case head.Since == token && x.stage == asked:
		x.stage, x.first = joined, max(head.Step, x.mine)
	case !head.Answer:
		x.greeted, x.wish = head.Since, head.Step
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
// remembers of gradients begins empty.
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
	p.phase, p.news = resting, true
	p.joining.Resume(max(p.replica.Steps, first))
}
