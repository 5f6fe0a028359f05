package dpsgd

import (
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/compress"
)

// State declares the peer's model and steps, and its view of each neighbour.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Part("replica", p.replica)
	s.Part("lead", p.lead)
	s.Part("drift", &p.drift)
	s.Part("idle", &p.idle)
	s.Part("joining", &p.joining)
	s.Part("tracker", &p.tracker)
	state.Int(s, "phase", &p.phase)
	s.Tensor("sent", &p.sent)
	s.Tensor("gradient", &p.gradient)
	s.Bool("news", &p.news)
	state.Int(s, "complete", &p.complete)
	if p.choco != nil {
		s.Part("choco", p.choco)
		if s.Restoring() && p.sent != nil {
			*p.choco.encoder.Memories()[0] = p.sent.Data // one memory for both, as in know
		}
	}
	state.List(s, "neighbours", &p.pairs, func(s *state.State, x *pair) { x.declare(s, p.choco) })
}

// State declares the encoder, and the code of this step.
func (c *choco) State(s *state.State) {
	train.EncoderState(s, "encoder", c.encoder)
	s.Tensor("code", &c.code)
}

// State declares the estimate of the mean gradient.
func (t *tracker) State(s *state.State) {
	state.Int(s, "since", &t.since)
	s.Tensor("value", &t.value)
	s.Tensor("before", &t.before)
}

// declare declares the peer's view of a neighbour. It does not name the neighbour, because neighbours
// are in the order of the plan.
func (p *pair) declare(s *state.State, c *choco) {
	state.Int(s, "stage", &p.stage)
	state.Int(s, "since", &p.since)
	s.Bool("there", &p.there)
	s.Bool("met", &p.met)
	state.Int(s, "mine", &p.mine)
	state.Int(s, "first", &p.first)
	state.Int(s, "greeted", &p.greeted)
	state.Int(s, "wish", &p.wish)
	s.Bool("told", &p.told)
	s.Tensor("known", &p.known)
	decodes := p.decoder != nil
	if s.Bool("decodes", &decodes); s.Restoring() && decodes && c != nil {
		p.decoder = c.chain.NewDecoder(c.params, c.tensors, compress.EF21)
	}
	train.DecoderState(s, "decoder", p.decoder)
	if s.Restoring() && p.decoder != nil && p.known != nil {
		*p.decoder.Memories()[0] = p.known.Data // one memory for both, as in take
	}
	slots := p.slots[:]
	state.List(s, "models", &slots, func(s *state.State, m *slot) {
		s.Bool("here", &m.here)
		s.Bool("code", &m.code)
		s.Tensor("params", &m.params)
		state.Int(s, "tracks", &m.tracks)
		s.Tensor("tracker", &m.tracker)
	})
}
