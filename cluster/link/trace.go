package link

import (
	"io"
	"math"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// TraceHeader is the first line of a trace file whose columns are in seconds.
const TraceHeader = "time_s,delay_s"

// Point is a measured delay.
type Point struct {
	At    time.Duration // since the run began, or since the trace did where it repeats
	Delay time.Duration
}

// Trace replays measured delays. A message takes the delay that the trace has when the message
// departs onto the edge: the delay of the last point at or before this instant, or with Interpolate
// a point on the straight line to the next one. The first point's delay holds before it, the last
// point's after it. With Repeat the trace from its first to its last point starts over when it
// ends, and the first point takes the place of the last.
type Trace struct {
	Points      []Point `key:"file"` // at least one, in strictly increasing order of At; not to be changed after use
	Interpolate bool    `plan:"interpolate" doc:"whether delays change linearly from line to line"`
	Repeat      bool    `plan:"repeat" doc:"whether the trace starts over after its end"` // needs two points
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Trace) Validate() error {
	if len(d.Points) == 0 {
		return field.Errorf(d, "Points", "one point at least")
	}
	if d.Repeat && len(d.Points) < 2 {
		return field.Errorf(d, "Repeat", "false for a trace of one point")
	}
	for i, p := range d.Points {
		if p.At < 0 || p.At > Horizon {
			return field.At(field.Within(d, "Points", field.Errorf(p, "At", "from 0s to %v", Horizon)), i)
		}
		if i > 0 && p.At <= d.Points[i-1].At {
			return field.At(field.Within(d, "Points", field.Errorf(p, "At", "after the previous point's (%v)",
				d.Points[i-1].At)), i)
		}
		if err := within(p, "Delay", p.Delay, 0); err != nil {
			return field.At(field.Within(d, "Points", err), i)
		}
	}
	return nil
}

// Memoryless marks the delay.
func (Trace) Memoryless() {}

// Start returns a process that draws nothing.
func (d Trace) Start(*rand.Rand, Process) Process { return &replay{Trace: d} }

type replay struct {
	Trace
	near int // where the last look-up ended: a hint, no state
}

func (r *replay) Next(departure time.Duration) time.Duration { return r.Present(departure) }

func (r *replay) Present(now time.Duration) time.Duration {
	points := r.Points
	first, last := points[0], points[len(points)-1]
	if now <= first.At {
		return first.Delay
	}
	if r.Repeat {
		now = first.At + (now-first.At)%(last.At-first.At)
	}
	if now >= last.At {
		return last.Delay
	}
	i := r.locate(now)
	from, to := points[i], points[i+1]
	if !r.Interpolate {
		return from.Delay
	}
	rise := float64(now-from.At) * float64(to.Delay-from.Delay) / float64(to.At-from.At)
	return from.Delay + time.Duration(math.Floor(rise+0.5))
}

// locate returns the i with Points[i].At ≤ now < Points[i+1].At. Messages follow each other
// closely, so that it is mostly the same as before, or the next.
func (r *replay) locate(now time.Duration) int {
	for i := r.near; i < min(r.near+2, len(r.Points)-1); i++ {
		if r.Points[i].At <= now && now < r.Points[i+1].At {
			r.near = i
			return i
		}
	}
	r.near = sort.Search(len(r.Points), func(i int) bool { return r.Points[i].At > now }) - 1
	return r.near
}

// ReadTrace reads the points of a trace, a [lines.Series] of delays:
//
//	# half of round trips to the site in Lyon, 3 May
//	time_s,delay_ms
//	0,50
//	0.5,62.5
//
// Units are s, ms and us. Errors begin with name and line ("delays.csv:17: …") and quote what was
// found; an error of r is wrapped. Times of another clock are since the first one, the origin.
func ReadTrace(r io.Reader, name string) (points []Point, origin time.Duration, err error) {
	format := lines.Series{
		Value:  lines.Column{Quantity: "delay", Units: lines.Times, Most: float64(MaxDelay)},
		Latest: Horizon, Example: "0.5,0.0625",
	}
	origin, err = format.Read(r, name, func(at time.Duration, delay float64) {
		points = append(points, Point{At: at, Delay: nearest(delay)})
	})
	if err != nil {
		return nil, 0, err
	}
	return points, origin, nil
}
