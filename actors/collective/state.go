package collective

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// State declares the model, the ranks, and the round under way. A restored worker does not post the
// memory for that round's chunks again, so they are copied on arrival.
func (w *worker) State(s *state.State) {
	s.Part("local", w.local)
	if w.team != nil {
		s.Part("team", w.team)
	}
	s.Part("learner", w.learner)
	s.Part("drift", &w.drift)
	s.Group("compressors", func(s *state.State) {
		for i, c := range w.compressors {
			s.Part(strconv.Itoa(i), c)
		}
	})
	state.Int(s, "finished", &w.finished)
	state.Int(s, "steps", &w.steps)
	state.Optional(s, "last", &w.last, func(s *state.State, g *train.Gradient) { g.Facts(s) })
	s.Bool("skipped", &w.skipped)
	s.Bool("idle", &w.waiting)
	state.Int(s, "since", &w.since)
	s.Part("membership", &w.membership)
	if s.Restoring() && w.view > 0 {
		w.members = w.env.View().Members
		s.Fail(w.arrange())
	}
	w.declareRound(s)
}

// declareRound declares the exchange that is under way.
func (w *worker) declareRound(s *state.State) {
	s.Tensor("input", &w.input)
	s.Tensor("sum", &w.mean)
	s.Tensor("mean", &w.found)
	for _, x := range []struct {
		name string
		of   *reduction
	}{{"votes", w.votes}, {"models", w.models}} {
		if x.of == nil {
			continue
		}
		s.Group(x.name, func(s *state.State) {
			current := w.current == x.of
			s.Bool("current", &current)
			x.of.State(s)
			if s.Restoring() && current {
				w.current, x.of.input, x.of.output = x.of, w.input, w.mean
			}
		})
	}
}

// State declares the view and this rank's stage of entering it. Members and batches follow from the
// plan and the nodes. Checkpoints hold the stage as a number: never renumber the stages.
func (m *membership) State(s *state.State) {
	state.Int(s, "view", &m.view)
	state.Ints(s, "nodes", &m.nodes)
	state.Int(s, "rank", &m.rank)
	state.Int(s, "stage", &m.stage)
	s.Bool("joins", &m.joins)
	state.Int(s, "agreed", &m.agreed)
	state.Optional(s, "reports", &m.reports, func(s *state.State, g *actors.Gather[standing]) {
		actors.GatherState(s, "gather", g, func(s *state.State, r *standing) {
			s.Bool("joins", &r.joins)
			state.Int(s, "finished", &r.finished)
		})
	})
	state.List(s, "kept", &m.kept, func(s *state.State, m **protos.Message) { s.Message("message", m) })
}

// State declares the position in the schedule and the chunks that arrived early. The worker declares
// the vectors. A worker is saved between two messages: then no chunk waits to be forwarded, and all
// work is charged.
func (r *reduction) State(s *state.State) {
	state.Int(s, "round", &r.round)
	state.Int(s, "position", &r.at)
	state.Float(s, "weight", &r.weight)
	s.Part("arrivals", &r.chunks)
	if s.Restoring() {
		r.factor = reciprocal(r.weight)
		r.stand(r.at)
	}
}

// State declares the chunks, sorted by number.
func (a *arrivals) State(s *state.State) {
	var all []arrival
	for _, p := range a.places {
		if p.chunk != nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.number, b.number) })
	state.List(s, "chunks", &all, func(s *state.State, p *arrival) {
		state.Int(s, "number", &p.number)
		s.Received("values", &p.chunk)
	})
	if s.Restoring() {
		for _, p := range all {
			a.put(p.number, p.chunk)
		}
	}
}

// State declares the model and the mean of the last round.
func (l *local) State(s *state.State) {
	s.Part("replica", l.replica)
	s.Tensor("outcome", &l.mean)
}

// State declares the sum of this round's gradients.
func (a *accumulator) State(s *state.State) {
	a.local.State(s)
	s.Tensor("sum", &a.sum)
}

// State declares the shared model, the outer optimizer, and the round's counts.
func (a *averager) State(s *state.State) {
	a.local.State(s)
	state.Int(s, "samples", &a.samples)
	state.Int(s, "steps", &a.steps)
	state.Int(s, "rounds", &a.rounds)
	s.Tensor("joint", &a.shared)
	if a.outer != nil {
		s.Group("outer", a.outer.Declare)
	}
}

// State declares the contribution. The round determines which random part of the model it covers.
func (s *streamer) State(st *state.State) {
	s.averager.State(st)
	if st.Tensor("fixed", &s.fixed); st.Restoring() && s.fixed != nil {
		s.draw()
	}
}

// State declares the memories of both ends, and the code of the round.
func (c *compressor) State(s *state.State) {
	train.EncoderState(s, "encoder", c.encoder)
	train.DecoderState(s, "decoder", c.decoder)
	s.Tensor("code", &c.code)
}
