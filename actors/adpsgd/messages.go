package adpsgd

import (
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
)

var _ train.Messenger = Architecture{}

// Messages is a model and its answer for each step of every second peer, and what the lead takes.
func (a Architecture) Messages(neighbours, workers int) (messages, models float64) {
	return 1 + peers.LeadMessages(a.Lead, neighbours, workers), a.Compress.Ratio()
}
