package lines

import "time"

// LongestRun is more than any run: a file whose first time is later has times of another clock, such
// as Unix time.
const LongestRun = 365 * 24 * time.Hour

// LatestClock is the last time of another clock, in 2116 by Unix time.
const LatestClock = float64(1 << 62)

// Clock turns the times of a file, in nanoseconds and in the order of the file, into times since the
// run began. If the first one is later than [LongestRun], it is the beginning of the run.
type Clock struct {
	// Origin is what was subtracted from each time; 0 for times that count from the run's beginning.
	Origin time.Duration
	begun  bool
}

// Since is the time since the run began.
func (c *Clock) Since(at time.Duration) time.Duration {
	if !c.begun {
		c.begun = true
		if at > LongestRun {
			c.Origin = at
		}
	}
	return at - c.Origin
}

// time reads a time that another clock may have, and bounds what it is since the run began.
func (c *Clock) time(h Heading, text []byte, latest time.Duration) (time.Duration, error) {
	most := float64(latest)
	if !c.begun || c.Origin > 0 {
		most = LatestClock
	}
	at, err := h.Figure(text, most)
	if err != nil {
		_, err = h.Figure(text, float64(latest)) // names the bound of a run
		return 0, err
	}
	if since := c.Since(time.Duration(at + 0.5)); since <= latest {
		return since, nil
	}
	_, err = h.Figure(text, float64(latest+c.Origin))
	return 0, err
}
