package federated

import "github.com/asynkron/protoactor-go/actor"

// ServerControl is the server's control, and the round of each node's last update in it.
func ServerControl(a actor.Actor) (control []float32, taken []uint64) {
	s := a.(*server)
	for i := range s.members {
		taken = append(taken, s.members[i].taken)
	}
	return s.control.Data, taken
}

// ClientControl is a client's control once it knows up to which round its changes were taken in;
// nil for 0.
func ClientControl(a actor.Actor, taken uint64) []float32 {
	c := a.(*client).control
	switch {
	case c.found != nil && c.round == taken:
		return c.found.Data
	case c.own != nil:
		return c.own.Data
	}
	return nil
}
