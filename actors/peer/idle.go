package peer

import (
	"time"

	"github.com/gradwire/gradwire/actors"
)

// Idle times how long a peer stands still because of another node, and records it.
type Idle struct {
	env   actors.Env
	since time.Duration
	cause string
}

// NewIdle returns the idle clock of the peer that lives in env.
func NewIdle(env actors.Env) Idle { return Idle{env: env} }

// Wait notes that the peer stands still from now on, if it did not before. A wait has the cause
// that was named last: for peers that need several messages, whose message came last.
func (i *Idle) Wait(cause string) {
	if i.cause == "" {
		i.since = i.env.Now()
	}
	i.cause = cause
}

// Cause is what the peer waits for, and empty while it does not wait.
func (i *Idle) Cause() string { return i.cause }

// Resume records the wait that is over, if there was one and it took time.
func (i *Idle) Resume() {
	if i.cause == "" {
		return
	}
	if d := i.env.Now() - i.since; d > 0 {
		i.env.Record(actors.Event{Kind: actors.Waited, Duration: d, Cause: i.cause})
	}
	i.cause = ""
}
