package gaia

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of a site's server, whose optimizer makes a step with each push of its workers.
func (a Architecture) Pace(c train.Crew) train.Pace {
	return train.Pace{Of: "updates by the server of a site", Batches: float64(c.Servers)}
}
