package gaia

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

var (
	_ state.Declared = (*server)(nil)
	_ state.Declared = (*worker)(nil)

	_ = state.Register[lineFree]("gaia.lineFree")
)

// State declares nothing: a lineFree has no fields.
func (*lineFree) State(*state.State) {}

// State implements [state.Declared].
func (s *server) State(st *state.State) {
	st.Tensor("params", &s.params)
	state.Int(st, "version", &s.version)
	train.OptimizerState(st, "optimizer", s.optimizer)
	st.Part("clocks", s.clocks)
	state.Each(st, "workers", s.workers, func(st *state.State, node int, w *known) {
		actors.MemberState(st, "present", s.env, node, &w.pid)
		state.Int(st, "life", &w.life)
		state.Int(st, "pushes", &w.pushes)
	})
	state.Each(st, "round", s.round, func(st *state.State, _ int, t **protos.Tensor) { st.Tensor("gradient", t) })
	state.Int(st, "rounds", &s.rounds)
	state.Ints(st, "ready", &s.ready)
	st.Part("between", s.between)
}

// State declares the exchange with the servers of other sites.
func (b *between) State(s *state.State) {
	state.Each(s, "mirrors", b.mirrors, func(s *state.State, _ int, m *mirror) { m.State(s) })
	s.Part("filter", b.filter)
	state.Int(s, "seen", &b.seen)
	state.Int(s, "told", &b.told)
	state.Int(s, "skipped", &b.skipped)
	s.Bool("trains", &b.trains)
	state.Int(s, "lists", &b.lists)
	state.Int(s, "free", &b.free)
	s.Bool("armed", &b.armed)
	s.Bool("over", &b.over)
	state.Proto(s, "asked", &b.asked)
}

// State declares the server's view of another site. The node of that site's server follows from the
// view.
func (m *mirror) State(s *state.State) {
	state.Int(s, "clock", &m.clock)
	s.Bool("trains", &m.trains)
	state.Int(s, "listed", &m.listed)
	state.Int(s, "taken", &m.taken)
	s.Bool("over", &m.over)
}

// State declares the changes that were not sent to other sites yet. The last choice of changes is
// scratch memory: it is of no use once they are sent.
func (f *filter) State(s *state.State) {
	s.Vector("held", &f.held)
	var listed []int
	for i, is := range f.listed {
		if is {
			listed = append(listed, i)
		}
	}
	if state.Ints(s, "listed", &listed); !s.Restoring() {
		return
	}
	for _, i := range listed {
		if i < 0 || i >= len(f.listed) {
			s.Fail(state.ErrForeign)
			return
		}
		f.listed[i] = true
	}
}

// State implements [state.Declared].
func (w *worker) State(s *state.State) {
	s.Part("local", w.local)
	s.Part("idle", &w.idle)
	state.Int(s, "since", &w.since)
	state.Int(s, "life", &w.life)
	state.Int(s, "version", &w.version)
	s.Tensor("params", &w.params)
	s.Bool("busy", &w.busy)
	s.Bool("over", &w.over)
}
