package periodic

import (
	"cmp"
	"math"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Decay is how the worth of an update falls with its staleness.
type Decay string

// The decays, of a staleness d (C. Xie, S. Koyejo and I. Gupta, "Asynchronous Federated
// Optimization", arXiv 1903.03934, section 5.2).
const (
	// Constant is 1.
	Constant Decay = "constant"
	// Polynomial is (d + 1)^−a.
	Polynomial Decay = "polynomial"
	// Hinge is 1 for d ≤ b, and 1 ÷ (a(d − b) + 1) beyond.
	Hinge Decay = "hinge"
)

// Staleness says how much an update counts by its staleness: the number of steps that the shared
// model has made since the one that the update began with. The zero Staleness is Constant.
type Staleness struct {
	Kind Decay `plan:"kind" words:"constant|polynomial|hinge" doc:"for staleness d: 1, (d + 1)^−power, or 1 up to after and 1 ÷ (slope·(d − after) + 1) beyond"`
	// Power is a of Polynomial; 0 is a half.
	Power float64 `plan:"power,omitzero" range:">0" with:"kind=polynomial" doc:"of the staleness plus 1; default: 0.5"`
	// Slope is a of Hinge, and After b; 0 is 10 and 4.
	Slope float64 `plan:"slope,omitzero" range:">0" with:"kind=hinge" doc:"how steep it falls beyond after; default: 10"`
	After float64 `plan:"after,omitzero" range:">0" with:"kind=hinge" counts:"staleness=updates" doc:"the staleness, in steps of the server, up to which all updates count alike; default: 4"`
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (s Staleness) Validate() error { return field.Check(s) }

// Factor is what an update of a staleness is multiplied by.
func (s Staleness) Factor(staleness uint64) float64 {
	d := float64(staleness)
	switch s.Kind {
	case Polynomial:
		return math.Pow(d+1, -cmp.Or(s.Power, 0.5))
	case Hinge:
		return 1 / (cmp.Or(s.Slope, 10)*max(d-cmp.Or(s.After, 4), 0) + 1)
	}
	return 1
}
