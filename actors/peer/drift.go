package peer

import (
	"math"

	"github.com/gradwire/gradwire/protos"
)

// Drift tells when a model has moved so far since the last exchange that another is worth
// its messages (M. Kamp et al., "Communication-Efficient Distributed Online Prediction by
// Dynamic Model Synchronization", ECML PKDD 2014, section 3: the local condition).
type Drift struct {
	bound     float64
	reference *protos.Tensor
}

// NewDrift returns a Drift with a bound ε ≥ 0 on the Euclidean distance; with 0 every
// model has moved far enough.
func NewDrift(bound float64) Drift { return Drift{bound: bound} }

// Far reports whether params are further than the bound from those that were last marked,
// and its cost in FLOPs, which the caller charges. Before the first mark everything is far.
func (d *Drift) Far(params []float32) (far bool, work float64) {
	if d.bound == 0 || d.reference == nil {
		return true, 0
	}
	sum := 0.0
	for i, v := range d.reference.Data {
		x := float64(params[i]) - float64(v)
		sum += float64(x * x)
	}
	return math.Sqrt(sum) > d.bound, 3 * float64(len(params))
}

// Mark notes that params are what the others know now. It takes its own reference.
func (d *Drift) Mark(params *protos.Tensor) {
	if d.bound == 0 {
		return
	}
	if d.reference != nil {
		d.reference.Release()
	}
	d.reference = params.Retain()
}
