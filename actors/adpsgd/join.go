package adpsgd

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/protos"
)

// change goes on with those who are there, and are neighbours, in a new view. An exchange with one
// that has ceased to be a neighbour comes to its end.
func (p *peer) change(ctx actor.Context, head *protos.View) {
	before, view := p.view, p.env.View()
	for _, node := range p.others {
		if view.Linked(p.env.Node(), int(node)) && !before.Linked(p.env.Node(), int(node)) {
			p.due = true // it may have missed what was announced
		}
	}
	p.view = view
	if p.partner != none && !p.member(p.partner).Present {
		p.part()
	}
	if p.joining.Change(ctx, head) {
		p.enter(ctx)
		return
	}
	p.advance(ctx)
}

// enter begins the first step with the model that the peer has.
func (p *peer) enter(ctx actor.Context) {
	p.phase, p.due = resting, true
	p.advance(ctx)
}

// refused goes on without an exchange that its partner has no model for.
func (p *peer) refused(ctx actor.Context, head *protos.Busy) {
	if p.partner == int(head.Node) && head.Exchange == p.exchange {
		p.part()
		p.advance(ctx)
	}
}
