package innetwork

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of the joint model, which all workers update with each sum.
func (a Architecture) Pace(c train.Crew) train.Pace {
	return train.Pace{Of: "reductions", Batches: float64(c.Workers)}
}
