package federated

import "github.com/asynkron/protoactor-go/actor"

// Sample draws clients of a population.
var Sample = sample

// ServerControl is the server's control, and the round of each node's last change in it.
func ServerControl(a actor.Actor) (control []float32, held []uint64) {
	s := a.(*server)
	for i := range s.members {
		held = append(held, s.members[i].held)
	}
	return s.control.Data, held
}

// ClientControl is a client's control once it knows up to which round its changes were taken in;
// nil for 0.
func ClientControl(a actor.Actor, held uint64) []float32 {
	c := a.(*client).control
	switch {
	case held == 0:
	case c.found != nil && c.round == held:
		return c.found.Data
	case c.own != nil:
		return c.own.Data
	}
	return nil
}

// Who are the names of the clients that attack.
func (a *Attack) Who(seed uint64, clients []string) []string { return a.who(seed, clients) }

// ScaleOf is s for a number of clients, some of whom attack.
func (a *Attack) ScaleOf(clients, attackers int) float64 { return a.scale(clients, attackers) }
