package local

import "github.com/gradwire/gradwire/actors/train"

var (
	_ train.Conserving  = Architecture{}
	_ train.Predictable = Architecture{}
)

// Conserves is all: nothing is exchanged.
func (Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: true, Sum: true, Alone: true}
}

// SendsBy is empty: messages do not depend on the trained values.
func (Architecture) SendsBy() string { return "" }
