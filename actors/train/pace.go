package train

import "github.com/gradwire/gradwire/nn/optim"

// Paced is an Architecture that says what its optimizers count. One that is not has each worker make
// steps with an optimizer of its own.
type Paced interface {
	// Pace is that of task.Method.
	Pace(c Crew) Pace
}

// Crew is what a pace depends on.
type Crew struct {
	// Workers and Servers are how many nodes train, and hold a model without training. Clients are
	// those of a population, or the workers.
	Workers, Servers, Clients int
	// Pass is how many steps a client, or a worker, has in its share of the samples.
	Pass float64
}

// Pace says what one step of an optimizer is, of which the schedule of its rate counts.
type Pace struct {
	// Of names the steps in the plural, such as "rounds".
	Of string
	// Batches are those that all workers together have computed from one step to the next, if all
	// are equally fast.
	Batches float64
}

// Drawing is an Architecture in which not all workers compute at a time.
type Drawing interface {
	// Computing returns the number of nodes, or clients of a round, that compute at the same time.
	Computing(c Crew) float64
}

// Computing returns the number of nodes, or clients of a round, of an architecture that compute at
// the same time.
func Computing(a Architecture, c Crew) float64 {
	if d, draws := a.(Drawing); draws {
		return d.Computing(c)
	}
	return float64(c.Workers)
}

// Outer is an Architecture with an outer optimizer, which steps once a round.
type Outer interface {
	// OuterOptimizer returns the outer optimizer, or nil if the architecture has none. steps is the
	// number of steps by which a worker's rate schedule advances in a round.
	OuterOptimizer() (m optim.Method, steps int)
}

// PaceOf is the pace of an architecture.
func PaceOf(a Architecture, c Crew) Pace {
	if p, paced := a.(Paced); paced {
		return p.Pace(c)
	}
	return Pace{Of: "steps of each worker", Batches: float64(c.Workers)}
}
