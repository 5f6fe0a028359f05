package link

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Pareto is a delay that exceeds x ≥ Min with probability (Min/x)^Alpha (type I): the smaller
// Alpha, the heavier the tail. With Max it is that distribution given that it does not exceed Max
// (drawn by its inverse, not cut off at Max). The present delay is the mean: Alpha·Min/(Alpha − 1)
// without Max, where that exists (Alpha above 1), else the median Min·2^(1/Alpha); with Max and ρ =
// Min/Max, Min·Alpha/(Alpha − 1)·(1 − ρ^(Alpha−1))/(1 − ρ^Alpha), by Alpha = 1 its limit.
type Pareto struct {
	// Min is the scale, the least delay.
	Min time.Duration `plan:"min,required" range:"1ns..8760h" doc:"the shortest"`
	// Alpha is the shape.
	Alpha float64 `plan:"alpha,required" range:"0.1..1000" doc:"the shape: the smaller, the heavier the tail; without a mean up to 1"`
	// Max is above Min, at most MaxDelay; 0 = none.
	Max time.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Pareto) Validate() error {
	return cmp.Or(field.Check(d), longest(d, d.Max, d.Min+1))
}

// Memoryless marks the delay.
func (Pareto) Memoryless() {}

// Start returns a process that draws one number a message.
func (d Pareto) Start(random *rand.Rand, _ Process) Process {
	p := &pareto{Pareto: d, mass: 1, rand: random}
	least := float64(d.Min)
	switch {
	case d.Max > 0:
		ratio := portable.Log(least / float64(d.Max))
		p.mass = 1 - portable.Exp(d.Alpha*ratio)
		p.present = capped(least*slope((d.Alpha-1)*ratio)/slope(d.Alpha*ratio), d.Max)
	case d.Alpha > 1:
		p.present = capped(least*d.Alpha/(d.Alpha-1), MaxDelay)
	default:
		p.present = capped(least*portable.Exp(math.Ln2/d.Alpha), MaxDelay)
	}
	return p
}

// slope returns (exp(y) − 1)/y.
func slope(y float64) float64 {
	if math.Abs(y) < 1e-5 {
		return 1 + float64(y/2) + float64(y*y)/6
	}
	return (portable.Exp(y) - 1) / y
}

type pareto struct {
	Pareto
	mass    float64 // probability of the part below Max
	present time.Duration
	rand    *rand.Rand
}

func (p *pareto) Next(time.Duration) time.Duration {
	limit := MaxDelay
	if p.Max > 0 {
		limit = p.Max
	}
	u := p.rand.Float64()
	return capped(float64(p.Min)*portable.Exp(-portable.Log(1-float64(u*p.mass))/p.Alpha), limit)
}

func (p *pareto) Present(time.Duration) time.Duration { return p.present }

// capped rounds a non-negative number of nanoseconds, infinity too, to a time that is no longer
// than a limit.
func capped(ns float64, limit time.Duration) time.Duration {
	if ns >= float64(limit) {
		return limit
	}
	return nearest(ns)
}

// LogNormal is Min plus a time whose logarithm is normally distributed: half of the times exceed
// Median, and Sigma is the standard deviation of the natural logarithm, so that the 99th percentile
// is Median·exp(2.326·Sigma). With Max it is that distribution given that the sum does not exceed
// Max (drawn by its inverse, not cut off at Max). The present delay is the mean, Min +
// Median·exp(Sigma²/2), times Φ(b − Sigma)/Φ(b) behind the plus with Max, where b = log((Max −
// Min)/Median)/Sigma.
type LogNormal struct {
	// Median of the time beyond Min, before truncation.
	Median time.Duration `plan:"median,required" range:"1ns..8760h" doc:"the time beyond min that half of the messages stay below, before it is truncated to max"`
	// Sigma is the standard deviation of the logarithm.
	Sigma float64 `plan:"sigma,required" range:">0..10" doc:"standard deviation of the natural logarithm of that time, before it is truncated"`
	// Min is the offset.
	Min time.Duration `plan:"min" range:"0s..8760h" doc:"added to every delay"`
	// Max is above Min and at least Min + Median·exp(−30·Sigma), at most MaxDelay; 0 = none.
	Max time.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d LogNormal) Validate() error {
	if err := cmp.Or(field.Check(d), longest(d, d.Max, d.Min+1)); err != nil {
		return err
	}
	if d.bound() < -maxTail {
		reach := d.Min + capped(float64(d.Median)*portable.Exp(-maxTail*d.Sigma), MaxDelay)
		return field.Errorf(d, "Max", "above %v: no more than %d times sigma below the logarithm of the median", reach,
			maxTail)
	}
	return nil
}

// bound returns how many times Sigma the logarithm of the longest time exceeds the logarithm of
// Median.
func (d LogNormal) bound() float64 {
	if d.Max == 0 {
		return math.Inf(1)
	}
	return portable.Log(float64(d.Max-d.Min)/float64(d.Median)) / d.Sigma
}

// Memoryless marks the delay.
func (LogNormal) Memoryless() {}

// Start returns a process that draws one number a message.
func (d LogNormal) Start(random *rand.Rand, _ Process) Process {
	p := &logNormal{LogNormal: d, mass: 1, rand: random, limit: MaxDelay - d.Min}
	mean := float64(d.Median) * portable.Exp(d.Sigma*d.Sigma/2)
	if d.Max > 0 {
		p.limit = d.Max - d.Min
		p.mass = portable.NormalCDF(d.bound())
		mean *= portable.NormalCDF(d.bound()-d.Sigma) / p.mass
	}
	p.present = d.Min + capped(mean, p.limit)
	return p
}

type logNormal struct {
	LogNormal
	mass           float64       // probability of the part below Max
	limit, present time.Duration // the former without Min
	rand           *rand.Rand
}

func (l *logNormal) Next(time.Duration) time.Duration {
	// The middle of one of 2⁵² cells: never 0, never 1.
	u := (float64(l.rand.Uint64()>>12) + 0.5) * 0x1p-52
	z := portable.NormalQuantile(float64(u * l.mass))
	return l.Min + capped(float64(l.Median)*portable.Exp(float64(z*l.Sigma)), l.limit)
}

func (l *logNormal) Present(time.Duration) time.Duration { return l.present }
