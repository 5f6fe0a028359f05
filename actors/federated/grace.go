package federated

import (
	"math"
	"slices"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Grace ends a round by the arrival of its updates: once a quorum of those that it wants is in,
// their times since it began say how long it waits for the others, and each one that comes says so
// again.
type Grace struct {
	// Quorum is which share of the updates that a round wants is waited for in any case.
	Quorum float64 `plan:"quorum" unit:"fraction" range:">0%..100%" doc:"share of the updates that a round wants, after which mads says when it ends"`
	// MADs is k where the round ends at median + k·MAD; MAD is the median of the distances of the
	// times from their median.
	MADs float64 `plan:"mads" range:"0..1000" doc:"by how many times the median distance of arrivals from their median the round ends after this median"`
}

// SetDefaults sets half of the updates and three distances.
func (g *Grace) SetDefaults() { *g = Grace{Quorum: 0.5, MADs: 3} }

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (g Grace) Validate() error { return field.Check(g) }

// window is what is known of the arrivals of a round.
type window struct {
	began    time.Duration
	arrivals []time.Duration // since then, ascending
	scratch  []time.Duration
	timer    actors.Timer
}

// open begins a round at an instant.
func (w *window) open(now time.Duration) { w.began, w.arrivals = now, w.arrivals[:0] }

// end is when a round is over, since it began.
func (w *window) end(mads float64) time.Duration {
	mid := median(w.arrivals)
	w.scratch = w.scratch[:0]
	for _, at := range w.arrivals {
		w.scratch = append(w.scratch, max(at-mid, mid-at))
	}
	slices.Sort(w.scratch)
	return mid + time.Duration(mads*float64(median(w.scratch)))
}

// median is that of times in ascending order, of which there is one at least.
func median(times []time.Duration) time.Duration {
	n := len(times)
	return (times[(n-1)/2] + times[n/2]) / 2
}

// arrived counts an update in, and has the round end when its time has passed. What comes at this
// very instant is in time.
func (s *server) arrived() {
	g, w := s.arch.Grace, &s.window
	if g == nil {
		return
	}
	since := s.env.Now() - w.began
	w.arrivals = append(w.arrivals, since)
	if float64(len(w.arrivals)) < math.Ceil(g.Quorum*float64(s.wants)-1e-9) {
		return
	}
	w.timer.Cancel()
	w.timer = s.env.After(max(w.end(g.MADs)-since, 0)+1, deadline{s.round})
}
