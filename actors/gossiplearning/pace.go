package gossiplearning

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of a model, of which there are as many as peers.
func (a Architecture) Pace(c train.Crew) train.Pace {
	return train.Pace{Of: "updates of a walking model", Batches: float64(c.Workers)}
}
