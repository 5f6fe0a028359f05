package innetwork

import (
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
)

var _ = state.Register[overdue]("innetwork.overdue")

// State declares the number of the timer.
func (o *overdue) State(s *state.State) { state.Int(s, "number", &o.number) }

// State declares the model, the view, and the step under way.
func (w *worker) State(s *state.State) {
	s.Part("local", w.local)
	s.Part("replica", w.replica)
	s.Part("idle", &w.idle)
	s.Part("membership", &w.membership)
	s.Part("repeats", &w.repeats)
	s.Part("window", &w.window)
	state.Int(s, "finished", &w.finished)
	state.Optional(s, "last", &w.last, func(s *state.State, g *train.Gradient) { g.Facts(s) })
	s.Tensor("gradient", &w.gradient)
	if s.Restoring() && w.gradient != nil {
		w.measure()
	}
	state.Int(s, "opening", &w.opening)
	state.Ints(s, "peaks", &w.peaks)
	state.Float(s, "samples", &w.samples)
	s.Tensor("mean", &w.mean)
}

// State declares the view. Checkpoints hold the stage as a number: never renumber the stages.
func (m *membership) State(s *state.State) {
	state.Int(s, "view", &m.view)
	state.Int(s, "stage", &m.stage)
	s.Bool("joins", &m.joins)
	state.Int(s, "workers", &m.workers)
	state.Int(s, "parent", &m.parent)
	state.Int(s, "source", &m.source)
}

// State declares the packets in flight with their times, and the timer for retransmission.
func (r *repeats) State(s *state.State) {
	s.Part("timeout", &r.timeout)
	state.List(s, "flights", &r.flights, func(s *state.State, f *flight) {
		s.Bool("late", &f.late)
		state.Int(s, "tries", &f.tries)
		state.Int(s, "first", &f.first)
		state.Int(s, "last", &f.last)
	})
	state.Int(s, "early", &r.early)
	state.Int(s, "waits", &r.waits)
	s.Part("timer", &r.timer)
	state.Int(s, "timers", &r.timers)
	state.Int(s, "next", &r.next)
	s.Bool("armed", &r.armed)
}

// State declares the packets in flight.
func (w *window) State(s *state.State) {
	state.Int(s, "limit", &w.limit)
	state.Int(s, "left", &w.left)
	state.Ints(s, "at", &w.at)
	state.Bools(s, "sent", &w.sent)
}

// State declares the view, the node's place in the tree, and the sums.
func (a *aggregator) State(s *state.State) {
	s.Bool("started", &a.started)
	state.Int(s, "view", &a.view)
	state.Int(s, "parent", &a.parent)
	state.Ints(s, "children", &a.children)
	if s.Restoring() && a.view > 0 {
		a.arrange()
	}
	if a.slots != nil {
		s.Part("slots", a.slots)
	}
}

// State declares the occupied pools; the place of a pool follows from its number.
// Checkpoints hold the progress as a number: never renumber its values.
func (s *slots) State(st *state.State) {
	var taken []pool
	for _, q := range s.pools {
		if q.progress != vacant {
			taken = append(taken, q)
		}
	}
	state.List(st, "sums", &taken, func(st *state.State, q *pool) {
		state.Int(st, "number", &q.number)
		state.Int(st, "progress", &q.progress)
		state.Bools(st, "seen", &q.seen)
		state.Int(st, "count", &q.count)
		state.Int(st, "peak", &q.peak)
		state.Int(st, "samples", &q.samples)
		state.Ints(st, "sum", &q.sum)
		st.Bool("late", &q.late)
	})
	if st.Restoring() {
		for _, q := range taken {
			*s.pool(q.number) = q
		}
	}
}
