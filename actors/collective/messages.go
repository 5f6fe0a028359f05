package collective

import (
	"math/bits"

	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages counts what one rank sends in a reduction.
func (a Architecture) Messages(_, workers int) (messages, models float64) {
	n, every := float64(workers), float64(max(a.round(), 1))
	messages, models = 2*(n-1), 2*(n-1)/n
	switch a.Algorithm {
	case AllToAll:
		messages, models = n-1, n-1
	case Butterfly:
		messages = 2 * float64(bits.Len(uint(max(workers-1, 0))))
	case Tree, Hierarchical: // of a few sites
		messages = models
	}
	if a.Sparse > 0 {
		models *= a.Sparse
	}
	return messages / every, models / every / float64(a.parts()) * a.Compress.Ratio()
}
