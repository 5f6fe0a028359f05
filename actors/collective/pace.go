package collective

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of the joint model with [Gradients], and with [Models] that of each worker's own.
func (a Architecture) Pace(c train.Crew) train.Pace {
	if a.Reduce == Models {
		return train.Pace{Of: "steps of each worker", Batches: float64(c.Workers)}
	}
	return train.Pace{Of: "reductions", Batches: float64(c.Workers * a.Every)}
}
