package noloco

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/gradwire/gradwire/actors"
)

// draw gives the groups of each round: the parts of a permutation that depends on the seed, the
// round and the number of nodes alone.
type draw struct {
	seed  uint64
	nodes []int32 // in the order of the last permutation
}

func newDraw(seed uint64, nodes int) draw {
	return draw{seed: actors.Source(seed, "groups", "permutation").Uint64(), nodes: make([]int32, nodes)}
}

// group is those that a node shares its group with in a round, itself included, ascending. It is
// valid until the next call.
func (d *draw) group(round uint64, node, size int) []int32 {
	random := rand.NewPCG(d.seed, round*0x9e3779b97f4a7c15)
	for i := range d.nodes {
		j, _ := bits.Mul64(random.Uint64(), uint64(i+1))
		d.nodes[i] = d.nodes[j]
		d.nodes[j] = int32(i)
	}
	place := slices.Index(d.nodes, int32(node))
	first := place - place%size
	group := d.nodes[first:min(first+size, len(d.nodes))]
	slices.Sort(group)
	return group
}
