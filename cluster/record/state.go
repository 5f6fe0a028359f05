package record

import "github.com/gradwire/gradwire/actors/state"

// State declares all observations. The caller must hold back events meanwhile; see Held.
func (c *Collector) State(s *state.State) {
	state.List(s, "nodes", &c.nodes, func(s *state.State, n *node) { n.declare(s) })
	state.List(s, "marks", &c.marks, func(s *state.State, m *mark) {
		state.Int(s, "evaluation", &m.evaluation)
		state.Int(s, "at", &m.at)
		state.List(s, "nodes", &m.nodes, func(s *state.State, t *tally) { t.declare(s) })
		state.List(s, "links", &m.links, func(s *state.State, l *Link) { state.Exported(s, l) })
		state.Int(s, "bytes", &m.bytes)
		state.Int(s, "unmeasured", &m.unmeasured)
	})
	state.List(s, "curve", &c.curve, func(s *state.State, e *Evaluation) { state.Exported(s, e) })
	state.List(s, "models", &c.models, func(s *state.State, m *ModelVerdict) { state.Exported(s, m) })
	state.List(s, "measured", &c.measured, func(s *state.State, m *measurement) {
		state.Int(s, "at", &m.at)
		state.Int(s, "node", &m.node)
		state.Text(s, "name", &m.name)
		state.Float(s, "value", &m.value)
	})
	state.Int(s, "unmeasured", &c.unmeasured)
}

func (n *node) declare(s *state.State) {
	n.tally.declare(s)
	s.Part("pace", &n.pace)
	state.Int(s, "latest", &n.latest)
	state.Table(s, "places", &n.places, state.IntKey, func(s *state.State, place *int) { state.Int(s, "place", place) })
}

func (t *tally) declare(s *state.State) {
	state.Int(s, "steps", &t.steps)
	state.Int(s, "samples", &t.samples)
	s.Group("staleness", t.ages.declare)
	s.Group("merged", t.merged.declare)
	state.Int(s, "last", &t.last)
	state.Int(s, "update", &t.update)
	s.Bool("learned", &t.learned)
	s.Bool("overtime", &t.overtime)
	state.List(s, "waits", &t.waits, func(s *state.State, w *waits) {
		state.Text(s, "cause", &w.cause)
		state.List(s, "spans", &w.spans, func(s *state.State, x *span) {
			state.Int(s, "bucket", &x.bucket)
			state.Int(s, "count", &x.count)
			state.Int(s, "total", &x.total)
		})
	})
	state.List(s, "chosen", &t.chosen, func(s *state.State, c *choice) {
		state.Int(s, "neighbour", &c.neighbour)
		state.Int(s, "count", &c.count)
	})
}

func (a *ages) declare(s *state.State) {
	state.Int(s, "count", &a.count)
	state.Int(s, "sum", &a.sum)
	state.Int(s, "max", &a.max)
	state.Ints(s, "near", &a.near)
	state.Table(s, "far", &a.far, state.IntKey, func(s *state.State, n *uint64) { state.Int(s, "count", n) })
}
