package ps

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// round has the gradients of a round that are there, until all are.
type round struct {
	gradients []*protos.Tensor // by node
	nodes     []int            // whose gradients the last sum was of, ascending
}

func newRound(nodes int) *round { return &round{gradients: make([]*protos.Tensor, nodes)} }

// take takes a gradient over. It replaces one of the same node, which was another life's.
func (r *round) take(node int, gradient *protos.Tensor) {
	if before := r.gradients[node]; before != nil {
		before.Release()
	}
	r.gradients[node] = gradient
}

// sum adds the gradients in the order of their nodes, whenever each has come, charges for it, hands
// the sum over, and begins another round.
func (r *round) sum(env actors.Env) (sum *protos.Tensor, n int) {
	r.nodes = r.nodes[:0]
	for node, gradient := range r.gradients {
		if gradient == nil {
			continue
		}
		r.gradients[node] = nil
		r.nodes = append(r.nodes, node)
		if sum == nil {
			sum = gradient
			continue
		}
		sum = env.Tensors().Writable(sum)
		nn.AddScaled(sum.Data, 1, gradient.Data)
		gradient.Release()
	}
	if n = len(r.nodes); n > 1 {
		env.Charge(float64((n - 1) * len(sum.Data)))
	}
	return sum, n
}
