package link

import (
	"slices"
	"time"
)

// law is what a configuration makes of messages, on all edges that have it.
type law struct {
	Config
	constant  time.Duration // the delay where there is no process
	process   Process       // of all edges, nil where the delay is constant or remembers
	remembers bool          // each edge has its own process
	hazardous bool          // messages can be lost or meet an outage
	// memoryless says that nothing outlasts the messages under way.
	memoryless bool
}

// newLaw returns the law of a configuration, which a later change of the caller's slice does not
// reach.
func (n *Network) newLaw(c Config) *law {
	if c.Validate() != nil {
		panic(invalidSetup)
	}
	c.Outages = slices.Clone(c.Outages)
	l := &law{Config: c}
	switch model := c.Delay.(type) {
	case nil:
	case Constant:
		l.constant = model.Delay
	case Memoryless:
		l.process = model.Start(n.random, nil)
	default:
		l.remembers = true
	}
	intermittent := c.Intermittent != (Intermittent{})
	l.hazardous = c.Loss.possible() || len(c.Outages) > 0 || intermittent
	l.memoryless = !l.remembers && c.Loss.Bursts == nil && !intermittent
	return l
}

// present is the delay at an instant of an edge with a process.
func (l *law) present(p Process, now time.Duration) time.Duration {
	if p == nil {
		return l.constant
	}
	return bounded(p.Present(now))
}

// begin starts the process of one edge. What it draws at its beginning is always the same.
func (n *Network) begin(l *law, key uint64, previous Process) Process {
	n.draws.seek(key, 0, firstDelays)
	return l.Delay.Start(n.random, previous)
}

// configure puts an edge under a law. An edge that has carried nothing starts over, so that when it
// was first asked for makes no difference.
func (n *Network) configure(e *Edge, l *law) {
	if !e.used {
		e.process = nil
	}
	if !e.used || l.Loss.Bursts == nil {
		e.channel = unset
	}
	previous := e.process
	e.law, e.process = l, l.process
	e.line.rate = l.Rate
	e.outage = 0
	e.flapper = nil
	if l.Intermittent != (Intermittent{}) {
		e.flapper = newFlapper(l.Intermittent, e.key)
	}
	if l.remembers {
		e.process = n.begin(l, e.key, previous)
	}
}
