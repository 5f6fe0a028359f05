package link

import (
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

// Loss says how often a try to send a message fails, and what follows. The zero value loses
// nothing.
type Loss struct {
	// Probability is how likely one try is to fail, independently of all others. It is 0 where
	// there are Bursts.
	Probability float64 `plan:"probability" unit:"fraction" doc:"that one transmission is lost"`
	// Bursts, unless nil, make failures depend on those before.
	Bursts *Bursts `plan:"bursts" doc:"in the place of probability: losses in bursts, by the model of Gilbert and Elliott"`
	// Drop loses the message with its first try. Otherwise it is sent again, Timeout after the
	// failed try departed: every try takes the edge's rate, the wait between them does not.
	Drop bool `plan:"kind" words:"retransmit|drop" doc:"retransmit: it is sent again after a timeout; drop: it never arrives"`
	// Timeout is the wait before a message is sent again. It must be positive where tries can fail
	// and Drop is not set; Drop does not use it.
	Timeout time.Duration `plan:"timeout,omitzero" range:">0s..8760h" doc:"before it is sent again"`
	// Attempts bounds the tries, after which the message is lost as with Drop; 0 does not. Drop
	// does not use it.
	Attempts int `plan:"attempts,omitzero" range:"1..1000" doc:"how often a message is sent at most, before it is lost as by kind: drop, which sessions repair; default: until it arrives"`
}

// SetDefaults fills in what a plan may leave out: a message is sent again after 200 ms, until it
// arrives.
func (l *Loss) SetDefaults() { *l = Loss{Timeout: 200 * time.Millisecond} }

// Validate reports the first field that is not accepted, as a *field.Error.
func (l Loss) Validate() error {
	if err := field.Check(l); err != nil {
		return err
	}
	if l.Probability > 0 && l.Bursts != nil {
		return field.Errorf(l, "Probability", "0 beside bursts, whose p, r, h and k say how often a message is lost")
	}
	if l.possible() && !l.Drop && l.Timeout == 0 {
		return field.Errorf(l, "Timeout", "positive where lost messages are sent again")
	}
	return nil
}

// Bounded reports whether messages are sent again, and lost after a number of tries.
func (l *Loss) Bounded() bool { return !l.Drop && l.Attempts > 0 && l.possible() }

// possible reports whether a try can fail.
func (l *Loss) possible() bool { return l.Probability > 0 || l.Bursts != nil }

// exhausted reports whether a message is lost whose tries have all failed: at the bound, if there
// is one, or because no try can succeed, or none of mostTries did.
func (l *Loss) exhausted(tries int) bool {
	if l.Attempts > 0 {
		return tries >= l.Attempts
	}
	b := l.Bursts
	return l.Probability >= 1 || b != nil && b.H == 0 && b.K == 0 || tries >= mostTries
}

// mostTries bounds the work that one message can make: of a link that loses 99.99 % of what it
// carries, one in 10⁴⁵ messages is lost by it.
const mostTries = 1 << 20

// Bursts make losses come in bursts: the channel of Gilbert 1960 and Elliott 1963, in the letters
// of Hasslinger and Hohlfeld 2008 ("The Gilbert-Elliott model for packet loss in real time services
// on the Internet"). Each try to send is judged in the present state, good or bad, and then the
// state may change. The share of tries in the bad state is P/(P + R), at the first try too. The
// share of lost tries is ((1 − K)·R + (1 − H)·P)/(P + R). A stay in the bad state lasts 1/R tries
// on average.
type Bursts struct {
	P float64 `plan:"p,required" unit:"fraction" range:">0%..100%" doc:"probability to leave the good state"`
	R float64 `plan:"r,required" unit:"fraction" range:">0%..100%" doc:"probability to leave the bad state"`
	H float64 `plan:"h" unit:"fraction" doc:"probability of a transmission to arrive in the bad state"`
	K float64 `plan:"k" unit:"fraction" doc:"probability of a transmission to arrive in the good state"`
}

// SetDefaults makes the simple model of Gilbert: everything arrives in the good state, nothing in
// the bad one.
func (b *Bursts) SetDefaults() { *b = Bursts{K: 1} }

// channel is the state of an edge with Bursts.
type channel uint8

const (
	unset channel = iota // no try yet, or no bursts
	good
	bad
)

// fails draws whether a try fails.
func (e *Edge) fails() bool {
	loss := &e.law.Loss
	b := loss.Bursts
	if b == nil {
		return loss.Probability > 0 && e.network.random.Float64() < loss.Probability
	}
	if e.channel == unset {
		e.channel = good
		if e.network.random.Float64()*(b.P+b.R) < b.P {
			e.channel = bad
		}
	}
	success, change, other := b.K, b.P, bad
	if e.channel == bad {
		success, change, other = b.H, b.R, good
	}
	lost := e.network.random.Float64() >= success
	if e.network.random.Float64() < change {
		e.channel = other
	}
	return lost
}
