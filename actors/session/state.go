package session

import "github.com/gradwire/gradwire/actors/state"

// State declares the estimate of the round-trip time.
func (t *Timeout) State(s *state.State) {
	state.Int(s, "smoothed", &t.smoothed)
	state.Int(s, "variation", &t.variation)
	s.Bool("measured", &t.measured)
	state.Int(s, "patience", &t.patience)
}

// Declare declares the unacknowledged messages and the retransmission timer. item declares a message.
func (s *Sender[T]) Declare(st *state.State, name string, item func(s *state.State, item *T)) {
	st.Group(name, func(st *state.State) {
		state.Int(st, "first", &s.first)
		state.List(st, "kept", &s.kept, func(st *state.State, e *entry[T]) {
			item(st, &e.item)
			state.Int(st, "tries", &e.tries)
			st.Bool("arrived", &e.arrived)
			state.Int(st, "departed", &e.departed)
			state.Int(st, "again", &e.again)
			st.Bool("passed", &e.passed)
			state.Int(st, "due", &e.due)
		})
		state.Int(st, "begun", &s.begun)
		st.Part("wait", &s.wait)
		state.Int(st, "late", &s.late)
		state.Int(st, "idle", &s.idle)
	})
}

// Declare declares the next number expected, and the messages received out of order. item declares a
// message.
func (r *Receiver[T]) Declare(st *state.State, name string, item func(s *state.State, item *T)) {
	st.Group(name, func(st *state.State) {
		state.Int(st, "next", &r.next)
		state.List(st, "early", &r.early, func(st *state.State, e *early[T]) {
			item(st, &e.item)
			st.Bool("here", &e.here)
		})
		st.Bool("owes", &r.owes)
	})
}
