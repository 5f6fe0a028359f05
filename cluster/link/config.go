package link

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	// Forever is the end of an outage that never ends, and the arrival of a message that is lost.
	Forever = time.Duration(math.MaxInt64)
	// Horizon is the last instant that a link computes with, a hundred years into the run. A message that could not
	// arrive before it is lost.
	Horizon = 100 * year
	// MaxDelay bounds every configured and every drawn delay, and every timeout.
	MaxDelay = year
	// DefaultAttempts is the bound on tries when Loss.Attempts is 0.
	DefaultAttempts = 15
	// MaxAttempts bounds Loss.Attempts.
	MaxAttempts = 10_000

	year = 365 * 24 * time.Hour
)

// Config describes one directed edge. The zero value is a perfect one: no delay, no limit, no loss, no outage.
type Config struct {
	// Delay is the model that delays are drawn from, one for each message; nil is none.
	Delay Delay
	// Rate is what the edge carries, in bytes per second; 0 is unlimited.
	Rate float64
	// Loss says how often a message is lost and what follows.
	Loss Loss
	// Reorder lets a message overtake an earlier one that drew a longer delay.
	Reorder bool
	// Outages are the times at which nothing departs, sorted and disjoint.
	Outages []Outage
	// Intermittent are outages at random, beside those.
	Intermittent Intermittent
}

// FieldError is what Validate returns: a field of a description whose value is not accepted.
type FieldError struct {
	Field    string // path of the field, such as "Loss.Probability"
	Value    string // the offending value as text
	Accepted string // what is accepted, such as "from 0 to 1"
}

// Error returns "Loss.Probability is 1.5: must be from 0 to 1".
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s is %s: must be %s", e.Field, e.Value, e.Accepted)
}

func fieldError(field string, value any, accepted string, args ...any) error {
	return &FieldError{Field: field, Value: fmt.Sprint(value), Accepted: fmt.Sprintf(accepted, args...)}
}

// Validate reports the first field that is not accepted, as a *FieldError where the fault is not a user's own model's.
func (c Config) Validate() error {
	if c.Delay != nil {
		if err := c.Delay.Validate(); err != nil {
			return within("Delay", err)
		}
	}
	if err := validateRate("Rate", c.Rate); err != nil {
		return err
	}
	if err := c.Loss.Validate(); err != nil {
		return within("Loss", err)
	}
	for i, o := range c.Outages {
		if err := o.Validate(); err != nil {
			return within(fmt.Sprintf("Outages[%d]", i), err)
		}
		if i > 0 && o.From < c.Outages[i-1].To {
			return fieldError(fmt.Sprintf("Outages[%d].From", i), o.From,
				"no earlier than the end of the outage before it (%v)", c.Outages[i-1].To)
		}
	}
	if err := c.Intermittent.Validate(); err != nil {
		return within("Intermittent", err)
	}
	return nil
}

func validateRate(field string, rate float64) error {
	if !(rate >= 0) || math.IsInf(rate, 0) {
		return fieldError(field, rate, "a number of bytes per second, or 0 for unlimited")
	}
	return nil
}

// validateDelay accepts least ≤ d ≤ MaxDelay.
func validateDelay(field string, d, least time.Duration) error {
	if d < least || d > MaxDelay {
		return fieldError(field, d, "from %v to %v", least, MaxDelay)
	}
	return nil
}

// within prefixes the path of a field error with that of the field it stands in.
func within(field string, err error) error {
	var inner *FieldError
	if errors.As(err, &inner) {
		return &FieldError{Field: field + "." + inner.Field, Value: inner.Value, Accepted: inner.Accepted}
	}
	return fmt.Errorf("%s: %w", field, err)
}

// Change is something that happens to a network at an instant of a run.
type Change struct {
	At    time.Duration
	Apply func()
}
