package noloco

import "github.com/gradwire/gradwire/actors/state"

// State declares both models, their optimizers and the round under way. The groups of a round follow
// from the seed and the round, not from the previous permutation.
func (p *peer) State(s *state.State) {
	s.Part("local", p.local)
	s.Part("own", p.own)
	s.Part("shared", p.shared)
	s.Part("joining", &p.joining)
	s.Part("idle", &p.idle)
	s.Bool("stepping", &p.stepping)
	s.Bool("meeting", &p.meeting)
	state.Ints(s, "group", &p.group)
	state.List(s, "arrived", &p.arrived, func(s *state.State, a *arrival) {
		state.Int(s, "node", &a.node)
		state.Int(s, "steps", &a.steps)
		state.Int(s, "age", &a.age)
		state.Int(s, "life", &a.life)
		s.Tensor("params", &a.params)
	})
}
