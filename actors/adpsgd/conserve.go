package adpsgd

import "github.com/gradwire/gradwire/actors/train"

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves is both, where models travel as they are.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: a.Compress == nil, Sum: a.Compress == nil}
}

// SendsBy is the meaning of moved; empty if moved is 0.
func (a Architecture) SendsBy() string {
	if a.Moved > 0 {
		return "moved: a model is sent when it has moved far enough"
	}
	return ""
}
