package gossip

import "github.com/gradwire/gradwire/actors/train"

var _ train.Conserving = Architecture{}

// Conserves is no sum: the sender of a model keeps its own as it is.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: a.Compress == nil && a.Rule == nil}
}
