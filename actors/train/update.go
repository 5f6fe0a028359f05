package train

import (
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Update takes over the caller's reference to parameters and returns what a step of the optimiser
// makes of them: in the same memory if nobody else reads it, otherwise in memory from the pool.
func Update(
	pool *protos.TensorPool, o optim.Optimizer, params *protos.Tensor, gradient []float32,
) *protos.Tensor {
	if params.Sole() {
		o.Step(params.Data, params.Data, gradient)
		return params
	}
	next := pool.Get(len(params.Data))
	o.Step(next.Data, params.Data, gradient)
	params.Release()
	return next
}
