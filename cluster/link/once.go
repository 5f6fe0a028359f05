package link

import (
	"math/rand/v2"
	"time"
)

// Once is a delay that is drawn once, and the same for every message from then on: for each edge,
// or with PerNode for each node that sends, over all its edges. What is drawn depends on the seed
// and the names alone, not on when it is first asked for.
type Once struct {
	Of      Delay // what is drawn from
	PerNode bool
}

// Validate reports the first field of what is drawn from that is not accepted, as a *field.Error.
func (d Once) Validate() error { return d.Of.Validate() }

// Start draws, and returns a process that always answers the same.
func (d Once) Start(random *rand.Rand, _ Process) Process {
	return constant{value: bounded(d.Of.Start(random, nil).Next(time.Duration(0)))}
}
