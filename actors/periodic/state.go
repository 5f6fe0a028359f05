package periodic

import "github.com/gradwire/gradwire/actors/state"

// Declare declares the inner optimizer and its round.
func (i *Inner) Declare(s *state.State) {
	state.Int(s, "round", &i.round)
	state.Int(s, "step", &i.state.Step)
	state.Int(s, "updates", &i.state.Updates)
	s.Vectors("slots", state.Pointers(i.state.Slots)...)
}

// Declare declares the memories of the outer optimizer.
func (o *Outer) Declare(s *state.State) { s.Vectors("slots", state.Pointers(o.slots)...) }
