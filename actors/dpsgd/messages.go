package dpsgd

import (
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages is the model of each step to each neighbour. With a lead the messages by which peers
// hear of each step are added.
func (a Architecture) Messages(neighbours, workers int) (messages, models float64) {
	messages, models = float64(neighbours), float64(neighbours)
	if a.Lead >= 0 {
		messages += peers.LeadMessages(neighbours, workers)
	}
	return messages, models
}
