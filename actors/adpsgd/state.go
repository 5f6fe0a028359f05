package adpsgd

import "github.com/gradwire/gradwire/actors/state"

// State declares the peer's model and steps, and the exchange under way.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Part("replica", p.replica)
	s.Part("lead", p.lead)
	s.Part("drift", &p.drift)
	s.Part("idle", &p.idle)
	s.Part("joining", &p.joining)
	s.Part("codec", p.codec)
	state.Int(s, "phase", &p.phase)
	s.Tensor("gradient", &p.gradient)
	state.Int(s, "partner", &p.partner)
	s.Tensor("sent", &p.sent)
	state.Int(s, "exchange", &p.exchange)
	s.Bool("news", &p.news)
	s.Bool("due", &p.due)
}
