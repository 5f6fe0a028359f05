package shards

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

// State declares the shards of this server, and the messages that wait for shards under way to it.
// The function shard declares shard k; while restoring, it makes the shard first. The owners follow
// from the view, which may be later than the one that the server was made in.
func (d *Directory[S]) State(s *state.State, shard func(s *state.State, k int, of *S)) {
	if s.Restoring() {
		d.owners = d.servers.Owners(d.env.View(), len(d.shards))
	}
	s.Part("fleet", &d.Fleet)
	state.Each(s, "shards", d.shards, func(s *state.State, k int, of *S) {
		here := d.Has(k)
		if s.Bool("here", &here); here {
			shard(s, k, of)
		}
	})
	state.Each(s, "waiting", d.waiting, func(s *state.State, _ int, of *[]*protos.Message) {
		s.Messages("messages", of)
	})
}

// State declares the members of the previous view, and the farewells.
func (f *Fleet) State(s *state.State) {
	state.Int(s, "view", &f.number)
	state.Ints(s, "since", &f.Since)
	state.Bools(s, "present", &f.present)
	state.Bools(s, "leaving", &f.leaving)
	s.Bool("left", &f.left)
	state.Each(s, "owed", f.owed, func(s *state.State, _ int, d *debt) { d.State(s) })
	state.List(s, "former", &f.former, func(s *state.State, d *debt) { d.State(s) })
	state.Each(s, "said", f.said, func(s *state.State, _ int, views *[]uint64) { state.Ints(s, "views", views) })
	state.Ints(s, "owes", &f.owes)
}

// State declares an outstanding farewell.
func (d *debt) State(s *state.State) {
	state.Int(s, "node", &d.node)
	state.Int(s, "view", &d.view)
	state.Int(s, "until", &d.until)
}

// State declares the changes that replicas have not acknowledged, and the answers that wait for the
// acknowledgements.
func (l *Log) State(s *state.State) {
	state.Int(s, "sequence", &l.sequence)
	state.Int(s, "acked", &l.acked)
	s.Bool("changed", &l.changed)
	s.Tensors("updates", &l.updates)
	state.List(s, "held", &l.held, func(s *state.State, h *held) {
		state.Int(s, "sequence", &h.sequence)
		actors.PIDState(s, "to", &h.to)
		s.Message("message", &h.message)
	})
}

// State declares the copies on this server, and the servers' reports of their own copies. The
// function copied declares the copy of shard k; while restoring, it makes the copy first. The chains
// follow from the view.
func (r *Replicas[S]) State(s *state.State, copied func(s *state.State, k int, of *Copy)) {
	state.Int(s, "view", &r.view)
	if s.Restoring() && r.view > 0 {
		r.chains = r.servers.Chains(r.env.View(), r.shards.Len())
	}
	state.Each(s, "copies", r.copies, func(s *state.State, k int, c **replica) {
		state.Optional(s, "copy", c, func(s *state.State, c *replica) {
			state.Int(s, "view", &c.view)
			state.Int(s, "sequence", &c.sequence)
			copied(s, k, &c.of)
		})
	})
	state.List(s, "reports", &r.reports, func(s *state.State, h **protos.Holdings) { state.Proto(s, "report", h) })
	state.Int(s, "missing", &r.missing)
	state.Bools(s, "linked", &r.linked)
	state.Bools(s, "settled", &r.settled)
	s.Messages("early", &r.early)
	s.Bool("over", &r.over)
}
