package session

import "github.com/gradwire/gradwire/actors/state"

// State declares the estimate of the round-trip time.
func (t *Timeout) State(s *state.State) {
	state.Int(s, "smoothed", &t.smoothed)
	state.Int(s, "variation", &t.variation)
	s.Bool("measured", &t.measured)
	state.Int(s, "patience", &t.patience)
}
