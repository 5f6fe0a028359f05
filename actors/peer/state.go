package peer

import (
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
)

var _ = state.Register[AskAgain]("peer.AskAgain")

// State declares nothing: an AskAgain has no fields.
func (*AskAgain) State(*state.State) {}

// State declares the model, its optimizer and their counts.
func (r *Replica) State(s *state.State) {
	s.Tensor("params", &r.Params)
	train.OptimizerState(s, "optimizer", r.Optimizer)
	state.Int(s, "version", &r.Version)
	state.Int(s, "steps", &r.Steps)
}

// State declares the reference model, which the other peers hold.
func (d *Drift) State(s *state.State) { s.Tensor("reference", &d.reference) }

// State declares the wait under way.
func (i *Idle) State(s *state.State) {
	state.Int(s, "since", &i.since)
	state.Text(s, "cause", &i.cause)
}

// State declares the clocks, and the last announcement.
func (l *Lead) State(s *state.State) {
	state.Ints(s, "clock", &l.clock)
	state.Int(s, "told", &l.told)
	state.Int(s, "since", &l.since)
	state.Int(s, "slowest", &l.slowest)
	state.Int(s, "looked", &l.looked)
	state.Int(s, "least", &l.least)
}

// State declares the request for the first model, and the requests of others that wait.
func (j *Joining) State(s *state.State) {
	state.Int(s, "life", &j.life)
	s.Bool("ready", &j.ready)
	state.Int(s, "source", &j.source)
	state.Table(s, "unready", &j.unready, state.IntKey, func(s *state.State, v *bool) { s.Bool("unready", v) })
	state.List(s, "waiting", &j.waiting, func(s *state.State, x *join) {
		state.Int(s, "node", &x.node)
		state.Int(s, "life", &x.life)
	})
	state.Int(s, "patience", &j.patience)
	s.Part("again", &j.again)
}
