package dpsgd

import (
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages is the model of each step to each neighbour, and what the lead takes.
func (a Architecture) Messages(neighbours, workers int) (messages, models float64) {
	if models = float64(neighbours); a.Track {
		models *= 2
	}
	return float64(neighbours) + peers.LeadMessages(a.Lead, neighbours, workers), models * a.Choco.Compress.Ratio()
}
