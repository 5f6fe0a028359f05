package federated

import (
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
)

var (
	_ = state.Register[timeUp]("federated.timeUp")
	_ = state.Register[deadline]("federated.deadline")
)

// State declares the round and the turn that the timer ends.
func (t *timeUp) State(s *state.State) {
	state.Int(s, "round", &t.round)
	state.Int(s, "turn", &t.turn)
}

// State declares the round that the timer ends.
func (d *deadline) State(s *state.State) { state.Int(s, "round", &d.round) }

// State declares the client's work, its model and its control.
func (c *client) State(s *state.State) {
	s.Part("local", c.local)
	s.Group("inner", c.inner.Declare)
	s.Part("idle", &c.idle)
	s.Bool("served", &c.served)
	state.Int(s, "since", &c.since)
	state.Int(s, "last", &c.last)
	state.Optional(s, "next", &c.next, declareWork)
	s.Bool("busy", &c.busy)
	state.Optional(s, "now", &c.now, declareWork)
	state.Int(s, "turn", &c.turn)
	s.Tensor("model", &c.model)
	state.Int(s, "steps", &c.steps)
	state.Int(s, "ends", &c.ends)
	if c.control != nil {
		s.Part("control", c.control)
	}
	if c.attack != nil {
		s.Vector("squares", &c.attack.squares)
		state.Int(s, "sent", &c.attack.sent)
	}
}

func declareWork(s *state.State, w *work) {
	state.Int(s, "round", &w.round)
	state.Int(s, "held", &w.held)
	state.Ints(s, "clients", &w.clients)
	s.Tensor("params", &w.params)
	s.Tensor("control", &w.control)
}

// State declares the client's side of SCAFFOLD.
func (c *control) State(s *state.State) {
	s.Tensor("own", &c.own)
	s.Tensor("found", &c.found)
	state.Int(s, "round", &c.round)
	s.Tensor("correction", &c.correction)
	s.Tensor("sum", &c.sum)
}

// State declares the model, the clients and the round under way.
func (s *server) State(st *state.State) {
	st.Tensor("params", &s.params)
	state.Int(st, "version", &s.version)
	train.OptimizerState(st, "outer", s.outer)
	st.Tensor("control", &s.control)
	state.List(st, "members", &s.members, func(st *state.State, m *member) {
		state.Int(st, "node", &m.node)
		state.Int(st, "client", &m.client)
		state.Int(st, "awaited", &m.awaited)
		state.Optional(st, "update", &m.update, declareUpdate)
		state.Int(st, "held", &m.held)
		st.Bool("void", &m.void)
	})
	if s.edge != nil {
		st.Part("edge", s.edge)
	}
	state.Int(st, "missed", &s.missed)
	state.Int(st, "unanswered", &s.unanswered)
	state.Int(st, "few", &s.few)
	state.Int(st, "round", &s.round)
	st.Bool("open", &s.open)
	state.Int(st, "drawn", &s.drawn)
	state.Int(st, "wants", &s.wants)
	state.Int(st, "missing", &s.missing)
	state.Int(st, "here", &s.here)
	state.Int(st, "began", &s.window.began)
	state.Ints(st, "arrivals", &s.window.arrivals)
	st.Part("timer", &s.window.timer)
}

func declareUpdate(s *state.State, u *update) {
	state.Int(s, "samples", &u.done.Samples)
	state.Float(s, "steps", &u.done.Steps)
	state.Int(s, "stale", &u.stale)
	s.Tensor("delta", &u.delta)
	s.Tensor("control", &u.control)
}

// State declares the aggregator's place in the tree, and the order that waits.
func (e *edge) State(s *state.State) {
	s.Bool("served", &e.served)
	state.Int(s, "since", &e.since)
	state.Optional(s, "next", &e.next, func(s *state.State, o *order) {
		state.Int(s, "view", &o.view)
		state.Int(s, "round", &o.round)
		s.Tensor("params", &o.params)
	})
}
