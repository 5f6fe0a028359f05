package gossip

import (
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages is a model to each neighbour that is chosen, or asked for, or both; with a period as if
// that were every step; and what the lead takes.
func (a Architecture) Messages(neighbours, workers int) (messages, models float64) {
	messages = float64(a.Choice.size(neighbours)) / float64(max(a.Every, 1))
	models = messages
	if a.Exchange != Push {
		messages *= 2
	}
	if a.Exchange == PushPull {
		models *= 2
	}
	return messages + peers.LeadMessages(a.Lead, neighbours, workers), models * a.Compress.Ratio()
}
