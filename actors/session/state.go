package session

import "github.com/gradwire/gradwire/actors/state"

// State declares what is known of round trips.
func (t *Timeout) State(s *state.State) {
	state.Int(s, "smoothed", &t.smoothed)
	state.Int(s, "variation", &t.variation)
	s.Bool("measured", &t.measured)
	state.Int(s, "patience", &t.patience)
}
