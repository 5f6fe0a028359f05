package adpsgd

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// change goes on with those who are there, and are neighbours, in a new view. An exchange with one
// who is no neighbour any more comes to its end.
func (p *peer) change(ctx actor.Context) {
	before, view := p.view, p.env.View()
	for _, node := range p.others {
		if view.Linked(p.env.Node(), int(node)) && !before.Linked(p.env.Node(), int(node)) {
			p.due = true // it may have missed what was announced
		}
	}
	p.view = view
	if p.partner != none && !p.member(p.partner).Present {
		p.partner = none
	}
	if p.phase == pulling && (p.source == none || !p.member(p.source).Present) {
		p.pull(ctx)
	}
	p.advance(ctx)
}

// pull asks the next neighbour that is there for its model, in turn. Who has no neighbour, or
// was refused by as many as there are nodes because they are joining as well, begins
// with the initial parameters.
func (p *peer) pull(ctx actor.Context) {
	p.source = none
	for i := range p.others {
		node := int(p.others[(i+p.refusals)%len(p.others)])
		if p.near(node) {
			p.source = node
			break
		}
	}
	if p.source == none || p.refusals > len(p.env.View().Members) {
		p.resumeAt(0)
		p.advance(ctx)
		return
	}
	ctx.Send(p.member(p.source).PID, protos.NewMessage(&protos.PullModel{Node: int32(p.env.Node()), Exchange: p.since,
		Joins: true}))
}

// give answers who asks for a model.
func (p *peer) give(ctx actor.Context, head *protos.PullModel) {
	if _, known := slices.BinarySearch(p.others, head.Node); !known {
		actors.Fail(p.env, "node %d asks for a model and is no neighbour", head.Node)
		return
	}
	if p.phase < resting {
		p.busy(ctx, head.Node, head.Exchange)
		return
	}
	p.send(ctx, int(head.Node), head.Exchange, false)
}

// busy says that there is no model here yet.
func (p *peer) busy(ctx actor.Context, node int32, exchange uint64) {
	ctx.Send(p.member(int(node)).PID, protos.NewMessage(&protos.Busy{Node: int32(p.env.Node()), Exchange: exchange}))
}

// refused asks somebody else for a model, or goes on without an exchange.
func (p *peer) refused(ctx actor.Context, head *protos.Busy) {
	switch {
	case p.phase == pulling && p.source == int(head.Node) && head.Exchange == p.since:
		p.refusals++
		p.pull(ctx)
	case p.partner == int(head.Node) && head.Exchange == p.exchange:
		p.partner = none
		p.advance(ctx)
	}
}

// adopt begins with a neighbour's model and its count of steps.
func (p *peer) adopt(head *protos.Model, params *protos.Tensor) {
	p.replica.Replace(params.Retain())
	p.replica.Version = head.Age
	p.resumeAt(head.Step)
}

// resumeAt ends the joining: the walk through the shard and the optimiser's schedule go on
// after so many steps; what the optimiser remembers of gradients begins anew.
func (p *peer) resumeAt(step uint64) {
	p.phase, p.source, p.step, p.due = resting, none, step, true
	p.lead.Finish(step)
	p.local.Resume(step)
	if err := p.replica.Resume(step); err != nil {
		actors.Fail(p.env, "%w", err)
	}
}
