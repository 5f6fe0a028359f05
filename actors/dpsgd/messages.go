package dpsgd

import "github.com/gradwire/gradwire/actors/train"

var _ train.Messenger = Architecture{}

// Messages is the model of each step to each neighbour.
func (Architecture) Messages(neighbours, _ int) (messages, models float64) {
	return float64(neighbours), float64(neighbours)
}
