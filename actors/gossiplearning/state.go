package gossiplearning

import "github.com/gradwire/gradwire/actors/state"

var _ = state.Register[tick]("gossiplearning.tick")

// State declares nothing: a tick has no fields.
func (*tick) State(*state.State) {}

// State declares the peer's models, the visits that wait, and the creation under way.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Group("optimizer", p.optimizer.Declare)
	state.Int(s, "steps", &p.steps)
	state.Int(s, "passed", &p.passed)
	state.List(s, "cache", &p.cache, func(s *state.State, m *model) { m.State(s) })
	s.Part("last", &p.last)
	state.List(s, "waiting", &p.waiting, func(s *state.State, v *visit) {
		v.State(s)
		state.Int(s, "from", &v.from)
		state.Int(s, "step", &v.step)
	})
	s.Part("creating", &p.creating)
	state.Int(s, "tokens", &p.account.tokens)
	s.Bool("started", &p.started)
	s.Bool("ticking", &p.ticking)
	state.Int(s, "silence", &p.silence)
}

// State declares a model. Without parameters there is no model.
func (m *model) State(s *state.State) {
	s.Tensor("params", &m.params)
	state.Int(s, "age", &m.age)
}

// State declares the models of the creation under way.
func (c *creation) State(s *state.State) {
	s.Bool("busy", &c.busy)
	s.Bool("useful", &c.useful)
	s.Part("from", &c.from)
	s.Part("next", &c.next)
	s.Part("first", &c.first)
}
