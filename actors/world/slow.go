package world

import "time"

// Slowdown is a time during which a node computes more slowly than its profile says.
type Slowdown struct {
	// From and To bound the half-open interval [From, To).
	From, To time.Duration
	// Factor is how many times as long a job takes that begins to be computed, or to wait for a
	// core, within it.
	Factor float64
}

// Slowed is how long what the profile gives a cost takes if it begins at an instant: as long as the
// factors of all slowdowns of that instant make it, and at most a century.
func (p *Profile) Slowed(at, cost time.Duration) time.Duration {
	for _, s := range p.Slowdowns {
		if s.From <= at && at < s.To {
			cost = time.Duration(min(float64(cost)*s.Factor, float64(longest)))
		}
	}
	return cost
}
