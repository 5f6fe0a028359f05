package federated

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// control is a client's side of SCAFFOLD.
type control struct {
	env        actors.Env
	own        *protos.Tensor // c_i; nil before the first round
	found      *protos.Tensor // what c_i becomes if the server takes in the round it was found in
	round      uint64         // that round
	correction *protos.Tensor // of this round's gradients; nil while idle
	sum        *protos.Tensor // of this round's gradients; nil while idle
}

// begin begins a round. c_i is 0 as long as the server's control has nothing of it.
func (c *control) begin(w *work) {
	pool, n := c.env.Tensors(), len(w.params.Data)
	if c.found != nil && w.held == c.round {
		c.own, c.found = c.found, c.own
	}
	if w.held == 0 {
		c.own = c.release(c.own)
	}
	if c.found = c.release(c.found); c.own == nil {
		c.own = c.zero(n)
	}
	c.correction, c.sum = pool.Get(n), c.zero(n)
	periodic.Correction(c.correction.Data, w.control.Data, c.own.Data)
	c.round = w.round
	c.env.Charge(float64(n))
}

// release gives up a vector, if there is one.
func (c *control) release(t *protos.Tensor) *protos.Tensor {
	if t != nil {
		t.Release()
	}
	return nil
}

func (c *control) zero(n int) *protos.Tensor {
	t := c.env.Tensors().Get(n)
	clear(t.Data)
	return t
}

// correct corrects a gradient, after it has counted it.
func (c *control) correct(gradient []float32) {
	nn.AddScaled(c.sum.Data, 1, gradient)
	nn.AddScaled(gradient, 1, c.correction.Data)
}

// change returns by how much c_i changes with a round of a number of steps.
func (c *control) change(steps int) *protos.Tensor {
	c.found, c.sum = c.sum, nil
	nn.Scale(c.found.Data, 1/float32(steps))
	change := c.env.Tensors().Get(len(c.found.Data))
	nn.WeightedSum(change.Data, 1, c.found.Data, -1, c.own.Data)
	c.env.Charge(2 * float64(len(change.Data)))
	return change
}

// end ends a round, whether its change was asked for or not.
func (c *control) end() {
	c.correction.Release()
	c.correction = nil
	c.sum = c.release(c.sum)
}
