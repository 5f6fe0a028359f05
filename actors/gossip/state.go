package gossip

import (
	"github.com/gradwire/gradwire/actors/state"
)

var _ = state.Register[tick]("gossip.tick")

// State declares nothing: a tick has no fields.
func (*tick) State(*state.State) {}

// State declares the peer's model and steps, and the exchange under way. The list of neighbours to
// choose from follows from the view.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Part("replica", p.replica)
	s.Part("drift", &p.drift)
	s.Part("lead", p.lead)
	s.Part("codec", p.codec)
	s.Part("joining", &p.joining)
	state.Int(s, "merged", &p.merged)
	s.Bool("stepping", &p.stepping)
	state.Int(s, "exchange", &p.exchange)
	state.Int(s, "base", &p.base)
	state.List(s, "promised", &p.promised, func(s *state.State, r *request) {
		state.Int(s, "node", &r.node)
		state.Int(s, "exchange", &r.exchange)
	})
	state.Ints(s, "awaited", (*[]int)(&p.awaited))
	s.Part("idle", &p.idle)
	s.Bool("news", &p.news)
}
