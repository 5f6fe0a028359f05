package ps

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of a server, whose optimizer makes a step with each push.
func (a Architecture) Pace(train.Crew) train.Pace {
	return train.Pace{Of: "updates by the server", Batches: float64(max(a.Every, 1))}
}
