package ps

import (
	"slices"

	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/compress"
)

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
	_ train.Summing     = Architecture{}
)

// Sums reports whether the server adds gradients up.
func (a Architecture) Sums() bool { return a.Scale == Sum }

// Conserves is each gradient, where these count in full: but for those that a worker has not pushed
// yet or the server has not answered.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{
		Between: a.Compress.Up == nil && a.Compress.Down == nil,
		Once:    exact(a.Compress.Up) && a.Scale == Sum && a.StalenessRate == None && a.Backup == 0,
		Pending: (2 + min(a.model().Ahead(), 1<<20)) * uint64(max(a.Every, 1)),
	}
}

// exact reports whether a chain leaves small integers as they are.
func exact(c compress.Chain) bool {
	return !slices.ContainsFunc(c, func(o compress.Operator) bool {
		_, half := o.(compress.Float16)
		return !half
	})
}

// SendsBy is empty: messages do not depend on the trained values.
func (Architecture) SendsBy() string { return "" }
