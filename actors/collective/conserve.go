package collective

import "github.com/gradwire/gradwire/actors/train"

var _ train.Conserving = Architecture{}

// Conserves is both, where each round exchanges what there is as it is and goes on from the mean.
func (a Architecture) Conserves() train.Conserved {
	plain := !a.compresses() && a.Moved == 0 && a.outer() == nil
	return train.Conserved{Between: plain, Sum: plain && !a.streams(), Weighted: true}
}
