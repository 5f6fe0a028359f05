package link

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/cluster/link/portable"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Delay describes a delay model. A description is plain data, never changed by its use, and may be
// shared by any number of edges; what one edge remembers is in the Process that Start returns for
// it. Programs can add their own models, and mark them as Memoryless where they are.
type Delay interface {
	// Validate reports a field that is not accepted, as a *field.Error.
	Validate() error
	// Start returns the process of one edge. It draws from the generator that it is given, in Start
	// and in Next: there the generator stands at the beginning of what is the edge's own, and the
	// message's. previous is the process that this one replaces during a run, nil at first; a
	// process of the same kind goes on from its state.
	Start(random *rand.Rand, previous Process) Process
}

// Memoryless marks a Delay whose processes remember nothing of earlier messages: their delays are
// drawn independently of each other, or are a function of time. Start draws nothing and does not
// look at previous, so that one process serves all edges of a configuration, and an edge that has
// nothing in flight takes no memory.
type Memoryless interface {
	Delay
	Memoryless()
}

// Process is a delay model at work on one edge.
type Process interface {
	// Next returns the delay of the next message, which departs at the given instant. Departures
	// need not be in order. Delays outside 0..MaxDelay are taken as the nearest bound. Must not
	// allocate.
	Next(departure time.Duration) time.Duration
	// Present returns the delay that is to be expected at an instant. It must not draw.
	Present(now time.Duration) time.Duration
}

// Constant is a delay that is always the same.
type Constant struct {
	Delay time.Duration `plan:"delay,required" range:"0s..8760h" doc:"of every message"`
}

// Uniform is a delay of which every nanosecond from Min to Max is equally likely. Its present delay
// is (Min + Max)/2.
type Uniform struct {
	Min, Max time.Duration `key:"range"` // 0 ≤ Min ≤ Max ≤ MaxDelay
}

// Exponential is Min plus an exponentially distributed time of mean Mean; with Max, that
// distribution given that the sum does not exceed Max (drawn by its inverse, not cut off at Max).
// The present delay is the mean: with w = Max − Min, Min + Mean − w/(exp(w/Mean) − 1), without Max
// Min + Mean.
type Exponential struct {
	// Mean of the time beyond Min, before truncation.
	Mean time.Duration `plan:"mean,required" range:"1ns..8760h" doc:"of the time that is added to min, before it is truncated to max"`
	// Min is the offset.
	Min time.Duration `plan:"min" range:"0s..8760h" doc:"the shortest"`
	// Max is above Min, at most MaxDelay; 0 = none.
	Max time.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
}

// RandomWalk is a delay whose first value is uniform in [FirstMin, FirstMax]. After each use it
// shifts by a uniform amount in [−Step, +Step] and then moves to the nearest value within [Min,
// Max]. Both draws are whole numbers of nanoseconds. The present delay applies to the next message.
type RandomWalk struct {
	// FirstMin and FirstMax: Min ≤ FirstMin ≤ FirstMax ≤ Max.
	FirstMin, FirstMax time.Duration `key:"first"`
	// Step is the greatest shift.
	Step time.Duration `plan:"step,required" range:"0s..8760h" doc:"the most by which the delay changes from one message to the next"`
	// Min is the least delay.
	Min time.Duration `plan:"min" range:"0s..8760h" doc:"the shortest; the walk goes no lower"`
	// Max is at least Min, at most MaxDelay; 0 = MaxDelay.
	Max time.Duration `plan:"max,omitzero" doc:"the longest; default: no bound"`
}

var (
	_ Memoryless = Constant{}
	_ Memoryless = Uniform{}
	_ Memoryless = Normal{}
	_ Memoryless = Exponential{}
	_ Memoryless = Pareto{}
	_ Memoryless = LogNormal{}
	_ Memoryless = Trace{}
	_ Delay      = RandomWalk{}
)

// Memoryless marks the delay.
func (Constant) Memoryless() {}

// Memoryless marks the delay.
func (Uniform) Memoryless() {}

// Memoryless marks the delay.
func (Exponential) Memoryless() {}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Constant) Validate() error { return field.Check(d) }

// Start returns a process that always answers d.Delay.
func (d Constant) Start(*rand.Rand, Process) Process { return constant{value: d.Delay} }

type constant struct {
	value time.Duration
}

func (c constant) Next(time.Duration) time.Duration    { return c.value }
func (c constant) Present(time.Duration) time.Duration { return c.value }

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Uniform) Validate() error {
	return cmp.Or(within(d, "Min", d.Min, 0), within(d, "Max", d.Max, d.Min))
}

// Start returns a process that draws one number a message.
func (d Uniform) Start(random *rand.Rand, _ Process) Process {
	return &uniform{Uniform: d, rand: random}
}

type uniform struct {
	Uniform
	rand *rand.Rand
}

func (u *uniform) Next(time.Duration) time.Duration    { return between(u.rand, u.Min, u.Max) }
func (u *uniform) Present(time.Duration) time.Duration { return u.Min + (u.Max-u.Min)/2 }

// between draws a whole number of nanoseconds from low to high, both included.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Exponential) Validate() error {
	return cmp.Or(field.Check(d), longest(d, d.Max, d.Min+1))
}

// Start returns a process that draws one number a message.
func (d Exponential) Start(random *rand.Rand, _ Process) Process {
	p := &exponential{Exponential: d, mass: 1, rand: random, present: d.Min + d.Mean}
	if d.Max > 0 {
		width := float64(d.Max - d.Min)
		x := width / float64(d.Mean)
		p.mass = 1 - portable.Exp(-x)
		p.present = d.Min + nearest(truncatedExponentialMean(x)*float64(d.Mean))
	}
	return p
}

// truncatedExponentialMean returns the mean of a unit exponential given that it does not exceed x.
func truncatedExponentialMean(x float64) float64 {
	if x < 1e-4 {
		return x * (0.5 - x/12)
	}
	decay := portable.Exp(-x)
	return 1 - x*decay/(1-decay)
}

type exponential struct {
	Exponential
	mass    float64 // probability of the part below Max
	present time.Duration
	rand    *rand.Rand
}

func (e *exponential) Next(time.Duration) time.Duration {
	u := e.rand.Float64()
	delay := e.Min + nearest(-float64(e.Mean)*portable.Log(1-float64(u*e.mass)))
	if e.Max > 0 && delay > e.Max {
		return e.Max
	}
	return delay
}

func (e *exponential) Present(time.Duration) time.Duration { return e.present }

// nearest rounds a non-negative number of nanoseconds, halves up.
func nearest(ns float64) time.Duration { return time.Duration(float64(ns) + 0.5) }

// Validate reports the first field that is not accepted, as a *field.Error.
func (d RandomWalk) Validate() error {
	err := cmp.Or(field.Check(d), longest(d, d.Max, d.Min), within(d, "FirstMin", d.FirstMin, d.Min))
	if err == nil && (d.FirstMax < d.FirstMin || d.FirstMax > d.max()) {
		return field.Errorf(d, "FirstMax", "from the least first delay (%v) to %v", d.FirstMin, d.max())
	}
	return err
}

// MedianAfter approximates the walk's median after a number of messages if only Min bounds it: the
// shifts add up to a normal deviation, which Min reflects.
func (d RandomWalk) MedianAfter(messages int) time.Duration {
	from := float64(d.FirstMin+d.FirstMax)/2 - float64(d.Min)
	deviation := float64(d.Step) * math.Sqrt(float64(messages)/3)
	if deviation == 0 {
		return (d.FirstMin + d.FirstMax) / 2
	}
	low, high := 0.0, from+8*deviation
	for range 60 {
		middle := (low + high) / 2
		scale := deviation * math.Sqrt2
		if below := (math.Erf((middle-from)/scale) + math.Erf((middle+from)/scale)) / 2; below < 0.5 {
			low = middle
		} else {
			high = middle
		}
	}
	return d.Min + time.Duration(min(low, float64(MaxDelay-d.Min)))
}

// Bounded reports whether the walk stays below the longest delay that there is.
func (d RandomWalk) Bounded() bool { return d.Step == 0 || d.max() < MaxDelay }

func (d RandomWalk) max() time.Duration {
	if d.Max == 0 {
		return MaxDelay
	}
	return d.Max
}

// Start returns a process that draws its first value, unless it goes on from another walk, and one
// number a message.
func (d RandomWalk) Start(random *rand.Rand, previous Process) Process {
	w := &walk{RandomWalk: d, rand: random}
	if p, ok := previous.(*walk); ok {
		w.move(p.value)
	} else {
		w.value = between(w.rand, d.FirstMin, d.FirstMax)
	}
	return w
}

type walk struct {
	RandomWalk
	value time.Duration // of the next message
	rand  *rand.Rand
}

func (w *walk) move(to time.Duration) { w.value = min(max(to, w.Min), w.max()) }

func (w *walk) Next(time.Duration) time.Duration {
	delay := w.value
	w.move(delay + between(w.rand, -w.Step, w.Step))
	return delay
}

func (w *walk) Present(time.Duration) time.Duration { return w.value }
