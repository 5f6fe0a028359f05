package dpsgd

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// tracker estimates the mean gradient of all peers that have tracked it since the same view: the
// sum of their trackers is that of their last gradients. Two neighbours average trackers in a step
// in which both say the same view, so that both do or neither.
type tracker struct {
	env    actors.Env
	since  uint64         // number of the view; 0 for not at all
	value  *protos.Tensor // y of the step before; nil for 0
	before *protos.Tensor // gradient of the step before; nil for 0
}

// restart begins anew with a view, if gradients are tracked.
func (t *tracker) restart(view uint64) {
	t.since = view
	for _, v := range []**protos.Tensor{&t.value, &t.before} {
		if *v != nil {
			(*v).Release()
			*v = nil
		}
	}
}

// mix makes of the neighbours' trackers of a step, and of a gradient, which it takes over, the next
// value. The row is that by which models are averaged.
func (t *tracker) mix(pairs []pair, step uint64, gradient *protos.Tensor) *protos.Tensor {
	out := t.env.Tensors().Copy(gradient.Data)
	if t.before != nil {
		nn.AddScaled(out.Data, -1, t.before.Data)
		t.before.Release()
	}
	self, n := float32(1), 2
	for i := range pairs {
		x := &pairs[i]
		if s := &x.slots[step&1]; x.counts(step) && s.tracks == t.since {
			self -= x.weight
			if s.tracker != nil {
				nn.AddScaled(out.Data, x.weight, s.tracker.Data)
				n++
			}
		}
	}
	if t.value != nil {
		nn.AddScaled(out.Data, self, t.value.Data)
		t.value.Release()
	}
	t.env.Charge(2 * float64(n*len(out.Data)))
	t.value, t.before = out, gradient
	return out
}

// attach adds the tracker to a message with a model.
func (t *tracker) attach(m *protos.Message, head *protos.Model) {
	if head.Tracks = t.since; t.value != nil && t.since > 0 {
		m.Tensors = append(m.Tensors, t.value.Retain())
	}
}
