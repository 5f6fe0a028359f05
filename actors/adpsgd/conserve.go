package adpsgd

import "github.com/gradwire/gradwire/actors/train"

var _ train.Conserving = Architecture{}

// Conserves is both, where models travel as they are.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: a.Compress == nil, Sum: a.Compress == nil}
}
