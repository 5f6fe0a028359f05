package dpsgd

import "github.com/gradwire/gradwire/actors/train"

var _ train.Conserving = Architecture{}

// Conserves is both, where neighbours know each other's models of a step as they are.
func (a Architecture) Conserves() train.Conserved {
	plain := a.Choco.Compress == nil && a.Moved == 0
	return train.Conserved{Between: plain, Sum: plain}
}
