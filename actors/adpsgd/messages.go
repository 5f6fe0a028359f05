package adpsgd

import "github.com/gradwire/gradwire/actors/train"

var _ train.Messenger = Architecture{}

// Messages is a model and its answer for each step of every second peer. With a lead each neighbour
// hears of each step.
func (a Architecture) Messages(neighbours, _ int) (messages, models float64) {
	if a.Lead >= 0 {
		return 1 + float64(neighbours), 1
	}
	return 1, 1
}
