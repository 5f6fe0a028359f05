package world

import (
	"math"
	"time"

	"github.com/gradwire/gradwire/actors/state"
)

// Cores books the emulated cores of a node, first in first out.
type Cores struct {
	free  []time.Duration // when each core is free, ascending
	start time.Duration   // of the last job: no later job starts before it
}

// NewCores returns n idle cores; n below 1 counts as 1.
func NewCores(n int) *Cores { return &Cores{free: make([]time.Duration, max(n, 1))} }

// Book reserves n of the cores for d, from now or from when they are free, and
// returns the end. More cores than there are count as all of them. An end that a
// time.Duration cannot hold is the last one that it can.
func (c *Cores) Book(now time.Duration, n int, d time.Duration) time.Duration {
	n = min(max(n, 1), len(c.free))
	c.start = max(now, c.start, c.free[n-1])
	end := c.start + min(d, math.MaxInt64-c.start)
	k := copy(c.free, c.free[n:])
	for k > 0 && c.free[k-1] > end {
		c.free[k-1+n] = c.free[k-1]
		k--
	}
	for i := range n {
		c.free[k+i] = end
	}
	return end
}

// State declares the bookings.
func (c *Cores) State(s *state.State) {
	state.Ints(s, "free", &c.free)
	state.Int(s, "start", &c.start)
}
