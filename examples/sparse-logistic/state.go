package main

import (
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

var _ = state.RegisterPointer[computed]("sparse-logistic.computed")

// State declares the loss. The gradient is in the state of the worker.
func (c *computed) State(s *state.State) { state.Float(s, "loss", &c.loss) }

// State declares the current batch, with its weights and its gradient. The batches and their lists of
// keys follow from the data.
func (w *worker) State(s *state.State) {
	s.Part("client", w.client)
	s.Part("filter", &w.filter)
	state.Int(s, "next", &w.next)
	state.Int(s, "pull", &w.pull)
	s.Received("weights", &w.weights)
	s.Vector("gradient", &w.gradient)
	state.Int(s, "step", &w.step)
}

// State declares the withheld entries of gradients, and the bytes saved.
func (f *filter) State(s *state.State) {
	s.Vector("kept", &f.kept)
	state.Int(s, "kkt", &f.saved.kkt)
	state.Int(s, "significance", &f.saved.significance)
	state.Int(s, "skip", &f.saved.skip)
}

// State declares the requests that wait for their weights.
func (j *judge) State(s *state.State) {
	s.Part("client", j.client)
	state.Table(s, "asked", &j.asked, state.IntKey, func(s *state.State, r **protos.TakeSnapshot) {
		state.Proto(s, "request", r)
	})
}
