package train

import (
	"fmt"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
)

var (
	_ = state.RegisterPointer[Gradient]("train.Gradient")
	_ = state.RegisterPointer[Round]("train.Round")
)

// State declares the result of a step.
func (g *Gradient) State(s *state.State) {
	s.Tensor("values", &g.Values)
	g.Facts(s)
}

// Facts declares the result of a step without the values of the gradient, for an actor that declares
// the values elsewhere.
func (g *Gradient) Facts(s *state.State) {
	state.Float(s, "loss", &g.Loss)
	state.Int(s, "samples", &g.Samples)
	state.Int(s, "step", &g.Step)
}

// State declares the steps of a round.
func (r *Round) State(s *state.State) {
	state.Int(s, "samples", &r.Samples)
	state.List(s, "steps", &r.Steps, func(s *state.State, t *TeamStep) {
		t.State(s)
		state.Int(s, "staleness", &t.Staleness)
	})
}

// State declares the worker's position in its shard, and its last step. No step may be under way. The
// result of the step declares the values of the gradient.
func (l *Local) State(s *state.State) {
	state.Int(s, "step", &l.step)
	state.Int(s, "walked", &l.walked)
	state.Int(s, "seed", &l.seed)
	s.Bool("mislabels", &l.mislabels)
	s.Tensor("params", &l.params)
	s.Group("gradient", l.gradient.Facts)
	state.Int(s, "client", &l.client)
	if s.Restoring() && l.client > 0 {
		var err error
		l.sampler, err = l.task.clientSampler(l.client - 1)
		s.Fail(err)
	}
}

// clientSampler returns the sampler of one client of the population.
func (t *Task) clientSampler(client int) (*datasets.Sampler, error) {
	return datasets.NewSampler(t.Train, t.Clients.Rows(client), t.Batch, t.Seed, clientName(client))
}

func clientName(client int) string { return fmt.Sprintf("client%d", client+1) }

// State declares the last round and the shared model. No round may be under way.
func (t *Team) State(s *state.State) {
	s.Bool("busy", &t.busy)
	state.Int(s, "step", &t.step)
	state.Int(s, "walked", &t.walked)
	s.Part("round", &t.round)
	model := make([]float32, t.shared.Len())
	if !s.Restoring() {
		t.shared.Load(model)
	}
	if s.Vector("shared", &model); s.Restoring() && len(model) == t.shared.Len() {
		t.shared.Store(model)
	}
	s.Vectors("sums", state.Pointers(t.sums)...)
}

// State declares the codec's memories.
func (c *Codec) State(s *state.State) {
	if c != nil {
		EncoderState(s, "encoder", c.encoder)
		DecoderState(s, "decoder", c.decoder)
	}
}

// EncoderState declares the memories of an encoder; a nil encoder has none.
func EncoderState(s *state.State, name string, e *compress.Encoder) {
	if e != nil {
		s.Vectors(name, e.Memories()...)
	}
}

// DecoderState declares the memories of a decoder; a nil decoder has none.
func DecoderState(s *state.State, name string, d *compress.Decoder) {
	if d != nil {
		s.Vectors(name, d.Memories()...)
	}
}

// OptimizerState declares an optimizer; a nil optimizer has no state.
func OptimizerState(s *state.State, name string, o optim.Optimizer) {
	if o == nil {
		return
	}
	s.Group(name, func(s *state.State) {
		now := o.State()
		state.Int(s, "step", &now.Step)
		state.Int(s, "updates", &now.Updates)
		if s.Vectors("slots", state.Pointers(now.Slots)...); s.Restoring() {
			s.Fail(o.Restore(now))
		}
	})
}
