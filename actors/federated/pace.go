package federated

import "github.com/gradwire/gradwire/actors/train"

// Pace is that of a client's optimizer, whose schedule counts rounds: all clients of a round make
// their local steps from one to the next.
func (a Architecture) Pace(c train.Crew) train.Pace {
	steps := float64(a.Local.Steps)
	if a.Local.Epochs > 0 {
		steps = float64(a.Local.Epochs) * c.Pass
	}
	return train.Pace{Of: "rounds", Batches: a.Computing(c) * steps}
}

// Computing is the clients of a round.
func (a Architecture) Computing(c train.Crew) float64 {
	clients := float64(c.Clients)
	switch {
	case a.Buffer > 0:
		clients = float64(a.Buffer)
	case a.Count > 0:
		clients = min(clients, float64(a.Count))
	case a.Share > 0:
		clients *= a.Share
	}
	return clients
}
