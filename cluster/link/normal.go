package link

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// maxTail is how many standard deviations beyond Mean the nearer bound of a Normal may lie.
const maxTail = 30

// Normal is a normally distributed delay given that it lies within [Min, Max], drawn by the inverse
// of the truncated distribution: one random number a message, no rejection. With a = (Min −
// Mean)/Std, b = (Max − Mean)/Std, φ the normal density and Z the probability of [a, b], the
// present delay is the mean, Mean + Std·(φ(a) − φ(b))/Z.
type Normal struct {
	// Mean before truncation.
	Mean time.Duration `plan:"mean,required" range:"0s..8760h" doc:"before it is truncated"`
	// Std before truncation; 0 is a constant.
	Std time.Duration `plan:"std,required" range:"0s..8760h" doc:"standard deviation, before it is truncated"`
	// Min is at most 30 Std above Mean.
	Min time.Duration `plan:"min" range:"0s..8760h" doc:"the shortest"`
	// Max is at least Min, at most 30 Std below Mean; 0 = none.
	Max time.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Normal) Validate() error {
	if err := cmp.Or(field.Check(d), longest(d, d.Max, d.Min)); err != nil {
		return err
	}
	reach := d.Mean + maxTail*d.Std
	if d.Min > reach {
		return field.Errorf(d, "Min", "at most %d standard deviations above the mean (%v)", maxTail, reach)
	}
	reach = d.Mean - maxTail*d.Std
	if d.Max != 0 && d.Max < reach {
		return field.Errorf(d, "Max", "at most %d standard deviations below the mean (%v)", maxTail, reach)
	}
	return nil
}

// Memoryless marks the delay.
func (Normal) Memoryless() {}

// Start returns a process that draws one number a message, or a constant one where Std is 0.
func (d Normal) Start(random *rand.Rand, _ Process) Process {
	if d.Std == 0 {
		return constant{value: d.Mean}
	}
	p := &normal{mean: float64(d.Mean), std: float64(d.Std), min: d.Min, max: MaxDelay, rand: random}
	low, high := (float64(d.Min)-p.mean)/p.std, math.Inf(1)
	if d.Max != 0 {
		p.max = d.Max
		high = (float64(d.Max) - p.mean) / p.std
	}
	// The probabilities of an interval above the mean are all close to 1; the probabilities of its
	// mirror image keep their digits.
	if low > 0 {
		p.std = -p.std
		low, high = -high, -low
	}
	p.base = portable.NormalCDF(low)
	p.mass = portable.NormalCDF(high) - p.base
	p.present = p.at(truncatedNormalMean(low, high))
	return p
}

// truncatedNormalMean returns the mean of a unit normal given that it lies within [a, b].
func truncatedNormalMean(a, b float64) float64 {
	middle := a + float64((b-a)/2)
	if width := b - a; width*(1+math.Abs(middle)) < 1e-3 {
		// The density is nearly a straight line, and the formula below would subtract equal
		// numbers.
		return middle - middle*float64(width*width)/12
	}
	mass := portable.NormalCDF(b) - portable.NormalCDF(a)
	return (portable.NormalDensity(a) - portable.NormalDensity(b)) / mass
}

type normal struct {
	mean, std  float64 // std is negative where the distribution is mirrored
	base, mass float64 // probability below the interval, and of it
	min, max   time.Duration
	present    time.Duration
	rand       *rand.Rand
}

func (n *normal) Next(time.Duration) time.Duration {
	// The middle of one of 2⁵² cells: never 0, never 1.
	u := (float64(n.rand.Uint64()>>12) + 0.5) * 0x1p-52
	return n.at(portable.NormalQuantile(n.base + float64(u*n.mass)))
}

// at returns the delay at z standard deviations from the mean, within the bounds.
func (n *normal) at(z float64) time.Duration {
	v := math.Floor(n.mean + float64(z*n.std) + 0.5)
	switch {
	case v <= float64(n.min):
		return n.min
	case v >= float64(n.max):
		return n.max
	}
	return time.Duration(v)
}

func (n *normal) Present(time.Duration) time.Duration { return n.present }
