package ps

import (
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// round has the gradients of a round that are there, until all are.
type round struct {
	gradients []*protos.Tensor // by node
	pushes    []pushID         // by node: which the gradient is, or the last sum had
	nodes     []int            // whose gradients the last sum was of, ascending
	missing   []bool           // by node: its gradient was here, and was lost with another server
}

func newRound(nodes int) *round {
	return &round{gradients: make([]*protos.Tensor, nodes), pushes: make([]pushID, nodes),
		missing: make([]bool, nodes)}
}

// pushID names a push of a worker to a shard.
type pushID struct {
	life, number uint64 // of the worker, and among the pushes of that life
}

// has reports whether a node has pushed a gradient of this round.
func (r *round) has(node int) bool { return r.gradients[node] != nil || r.missing[node] }

// miss has the round wait for a gradient to come once more.
func (r *round) miss(node int) { r.missing[node] = true }

// short reports whether the round waits for a gradient to come once more.
func (r *round) short() bool { return slices.Contains(r.missing, true) }

// drop gives the gradients up.
func (r *round) drop() {
	for _, gradient := range r.gradients {
		if gradient != nil {
			gradient.Release()
		}
	}
}

// take takes a gradient over. It replaces one of the same node, which was another life's.
func (r *round) take(node int, gradient *protos.Tensor, is pushID) {
	if before := r.gradients[node]; before != nil {
		before.Release()
	}
	r.gradients[node], r.pushes[node], r.missing[node] = gradient, is, false
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
