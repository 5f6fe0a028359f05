package gossip

import "github.com/gradwire/gradwire/actors/train"

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves is no sum: the sender of a model keeps its own as it is.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: a.Compress == nil && a.Rule == nil}
}

// SendsBy is the meaning of moved; empty if moved is 0.
func (a Architecture) SendsBy() string {
	if a.Moved > 0 {
		return "moved: a model is sent when it has moved far enough"
	}
	return ""
}
