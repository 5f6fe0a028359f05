package link

import (
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Loss says how often a try to send a message fails, and what follows. The zero value loses
// nothing.
type Loss struct {
	// Probability is that of one try to fail, from 0 to 1, each independent of all others. It is 0
	// where there are Bursts.
	Probability float64 `plan:"probability" unit:"fraction"`
	// Bursts, unless zero, make failures depend on those before.
	Bursts Bursts `plan:"bursts,omitzero"`
	// Drop loses the message with its first try. Otherwise it is sent again, Timeout after the
	// failed try departed: every try takes the edge's rate, the wait between them does not.
	Drop bool
	// Timeout is the wait before a message is sent again, at most MaxDelay. It must be positive
	// where tries can fail and Drop is not set; Drop does not use it.
	Timeout time.Duration `plan:"timeout"`
	// Attempts bounds the tries, after which the message is lost; 0 is DefaultAttempts. Drop does
	// not use it.
	Attempts int `plan:"attempts"`
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (l Loss) Validate() error {
	if err := field.Check(l); err != nil {
		return err
	}
	if l.Probability > 0 && l.Bursts != (Bursts{}) {
		return field.Errorf(l, "Probability", "0 where there are bursts")
	}
	if err := validateDelay(l, "Timeout", l.Timeout, 0); err != nil {
		return err
	}
	if l.possible() && !l.Drop && l.Timeout == 0 {
		return field.Errorf(l, "Timeout", "positive where lost messages are sent again")
	}
	if l.Attempts < 0 || l.Attempts > MaxAttempts {
		return field.Errorf(l, "Attempts", "from 0 (%d tries) to %d", DefaultAttempts, MaxAttempts)
	}
	return nil
}

// possible reports whether a try can fail.
func (l *Loss) possible() bool { return l.Probability > 0 || l.Bursts != (Bursts{}) }

func (l Loss) attempts() int {
	if l.Attempts == 0 {
		return DefaultAttempts
	}
	return l.Attempts
}

// Bursts make losses come in bursts: the channel of Gilbert 1960 and Elliott 1963, in the letters
// of Hasslinger and Hohlfeld 2008 ("The Gilbert-Elliott model for packet loss in real time services
// on the Internet"). Each try to send is judged in the present state, good or bad, and then the
// state changes. The share of tries in the bad state is P/(P + R), at the first try too, that of
// lost ones ((1 − K)·R + (1 − H)·P)/(P + R), and a stay in the bad state lasts 1/R tries in the
// mean. The zero value has no bursts.
type Bursts struct {
	P float64 `plan:"p" unit:"fraction" range:">0%"` // probability of the good state to turn bad, above 0 to 1
	R float64 `plan:"r" unit:"fraction" range:">0%"` // probability of the bad state to turn good, above 0 to 1
	H float64 `plan:"h" unit:"fraction"`             // probability of a try to succeed in the bad state
	K float64 `plan:"k" unit:"fraction"`             // probability of a try to succeed in the good state
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (b Bursts) Validate() error {
	if b == (Bursts{}) {
		return nil
	}
	return field.Check(b)
}

// channel is the state of an edge with Bursts.
type channel uint8

const (
	unset channel = iota // no try yet, or no bursts
	good
	bad
)

// fails draws whether a try fails.
func (e *Edge) fails() bool {
	loss := &e.config.Loss
	if loss.Bursts == (Bursts{}) {
		return loss.Probability > 0 && e.losses.Float64() < loss.Probability
	}
	b := &loss.Bursts
	if e.channel == unset {
		e.channel = good
		if e.losses.Float64()*(b.P+b.R) < b.P {
			e.channel = bad
		}
	}
	success, change, other := b.K, b.P, bad
	if e.channel == bad {
		success, change, other = b.H, b.R, good
	}
	lost := e.losses.Float64() >= success
	if e.losses.Float64() < change {
		e.channel = other
	}
	return lost
}
