package adpsgd

import (
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages is a model and its answer for each step of every second peer. With a lead the
// messages by which peers hear of each step are added.
func (a Architecture) Messages(neighbours, workers int) (messages, models float64) {
	if a.Lead >= 0 {
		return 1 + peers.LeadMessages(neighbours, workers), 1
	}
	return 1, 1
}
