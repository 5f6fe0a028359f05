package dpsgd

import "github.com/gradwire/gradwire/actors/train"

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves is both, where neighbours know each other's models of a step as they are.
func (a Architecture) Conserves() train.Conserved {
	plain := a.Choco.Compress == nil && a.Moved == 0
	return train.Conserved{Between: plain, Sum: plain}
}

// SendsBy is the meaning of moved; empty if moved is 0.
func (a Architecture) SendsBy() string {
	if a.Moved > 0 {
		return "moved: a model is sent when it has moved far enough"
	}
	return ""
}
