package link

import (
	"math"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

const (
	// Forever is the end of an outage that never ends, and the arrival of a message that is lost.
	Forever = time.Duration(math.MaxInt64)
	// Horizon is the last instant that a link computes with, a hundred years into the run. A
	// message that could not arrive before it is lost.
	Horizon = 100 * year
	// MaxDelay bounds every configured and every drawn delay, and every timeout.
	MaxDelay = year

	year = 365 * 24 * time.Hour
)

// Config describes one directed edge. The zero value is a perfect edge: no delay, no limit, no
// loss, no outage. A plan can set a field as it is if the field's tag has a doc; it writes delays,
// losses and outages in other forms.
type Config struct {
	// Delay is the model that delays are drawn from, one for each message; nil is none.
	Delay Delay `plan:"delay"`
	// Rate is what the edge carries; nil is unlimited.
	Rate rate.Rate `plan:"rate"`
	// Overhead is how many bytes every try to send a message takes of the rates, its downlink's
	// too, beside the message's own: headers, which Stats do not count.
	Overhead int64 `plan:"overhead,omitzero" unit:"size" doc:"bytes that a message takes of the rates beside its own, such as its headers"`
	// Loss says how often a message is lost and what follows.
	Loss Loss `plan:"loss,omitzero"`
	// Reorder lets a message overtake an earlier one that drew a longer delay.
	Reorder bool `plan:"reorder" doc:"whether a message may overtake one that was sent before it"`
	// Repeat is how likely a message that arrives does so twice: the second copy draws its own
	// delay and loss is not asked again.
	Repeat float64 `plan:"repeat,omitzero" unit:"fraction" doc:"share of the messages that arrive twice"`
	// Outages are the times at which nothing departs, sorted and disjoint.
	Outages []Outage `plan:"outages"`
	// Intermittent are outages at random, beside those.
	Intermittent Intermittent `key:"outages"`
}

// Validate reports the first field that is not accepted, as a *field.Error where the fault is not a
// user's own model's.
func (c Config) Validate() error {
	if c.Delay != nil {
		if err := c.Delay.Validate(); err != nil {
			return field.Within(c, "Delay", err)
		}
	}
	if c.Rate != nil {
		err := c.Rate.Validate()
		if _, constant := c.Rate.(rate.Constant); constant && err != nil {
			return field.Errorf(c, "Rate", "a finite number of bytes a second, or 0 for no bound")
		} else if err != nil {
			return field.Within(c, "Rate", err)
		}
	}
	if err := field.Check(c); err != nil {
		return err
	}
	if err := c.Loss.Validate(); err != nil {
		return field.Within(c, "Loss", err)
	}
	for i, o := range c.Outages {
		if err := o.Validate(); err != nil {
			return field.At(field.Within(c, "Outages", err), i)
		}
		if i > 0 && o.From < c.Outages[i-1].To {
			err := field.Errorf(o, "From", "no earlier than the end of the outage before it (%v)", c.Outages[i-1].To)
			return field.At(field.Within(c, "Outages", err), i)
		}
	}
	if err := c.Intermittent.Validate(); err != nil {
		return field.Within(c, "Intermittent", err)
	}
	return nil
}

// Loses reports whether messages may be lost for good, to be sent again by somebody else: dropped
// by Loss or in an outage, or after a bounded number of tries.
func (c *Config) Loses() bool {
	outages := len(c.Outages) > 0 || c.Intermittent != (Intermittent{})
	return c.Loss.Bounded() || c.Loss.Drop && (c.Loss.possible() || outages)
}

// within accepts least ≤ d ≤ MaxDelay for the field of that name of v.
func within(v any, name string, d, least time.Duration) error {
	if d < least || d > MaxDelay {
		return field.Errorf(v, name, "from %v to %v", least, MaxDelay)
	}
	return nil
}

// longest accepts a Max of the delay v that is least or more, or 0 for none.
func longest(v any, d, least time.Duration) error {
	if d == 0 {
		return nil
	}
	return within(v, "Max", d, least)
}

// Change is something that happens to a network at an instant of a run.
type Change struct {
	At    time.Duration
	Apply func()
	// Edges is how many it is about, used or not. The digest of a run counts one event for each.
	Edges int
}
