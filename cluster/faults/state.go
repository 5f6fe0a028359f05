package faults

import "github.com/gradwire/gradwire/actors/state"

// State declares the pushes that were forwarded.
func (o *Once) State(s *state.State) {
	state.List(s, "workers", &o.nodes, func(s *state.State, t *told) {
		state.List(s, "shards", (*[][2]window)(t), func(s *state.State, lives *[2]window) {
			both := lives[:]
			state.List(s, "lives", &both, func(s *state.State, w *window) {
				state.Int(s, "life", &w.life)
				state.Int(s, "latest", &w.latest)
				state.Int(s, "bits", &w.bits)
			})
		})
	})
}

// State declares the samples that count toward goodput so far.
func (t *Tally) State(s *state.State) {
	state.Int(s, "next", &t.next)
	state.Bools(s, "there", &t.there)
	state.Int(s, "holders", &t.holders)
	state.List(s, "nodes", &t.nodes, func(s *state.State, w *worked) {
		state.List(s, "steps", &w.steps, func(s *state.State, b *batch) {
			state.Int(s, "first", &b.first)
			state.Int(s, "count", &b.count)
			state.Int(s, "samples", &b.samples)
		})
		last := w.last[:]
		state.List(s, "last", &last, func(s *state.State, x *stamped) {
			state.Int(s, "at", &x.at)
			state.Int(s, "samples", &x.samples)
		})
		state.Int(s, "own", &w.own)
		s.Bool("gone", &w.gone)
	})
	s.Bool("foreign", &t.foreign)
	state.Int(s, "shed-foreign", &t.shed.foreign)
	state.Int(s, "shed-own", &t.shed.own)
	state.Int(s, "total", &t.total)
}
