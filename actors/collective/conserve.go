package collective

import "github.com/gradwire/gradwire/actors/train"

var _ train.Conserving = Architecture{}

// Conserves is both, where each round exchanges what there is as it is and goes on from the mean.
// With random parts a rank that joins has a model of steps that are in no update of its own yet.
func (a Architecture) Conserves() train.Conserved {
	plain := !a.compresses() && a.Moved == 0 && a.outer() == nil
	return train.Conserved{Between: plain && a.Sparse == 0, Sum: plain && !a.streams(), Weighted: true}
}
