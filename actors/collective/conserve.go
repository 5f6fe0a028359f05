package collective

import "github.com/gradwire/gradwire/actors/train"

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves is both, where each round exchanges what there is as it is and goes on from the mean.
func (a Architecture) Conserves() train.Conserved {
	plain := !a.compresses() && a.Moved == 0 && a.outer() == nil
	return train.Conserved{Between: plain, Sum: plain && !a.streams(), Weighted: true}
}

// SendsBy is the meaning of moved; empty if moved is 0.
func (a Architecture) SendsBy() string {
	if a.Moved > 0 {
		return "moved: a model is sent when it has moved far enough"
	}
	return ""
}
