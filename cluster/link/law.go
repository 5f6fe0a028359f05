package link

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

// law is what a configuration makes of messages, on all edges that have it.
type law struct {
	Config
	constant  time.Duration // the delay where there is no process
	process   Process       // of all edges, nil where the delay is constant or remembers
	remembers bool          // each edge has its own process
	perNode   bool          // edges of one source have equal processes
	hazardous bool          // messages can be lost or meet an outage
	loses     bool          // messages can be lost for good
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
	case Once:
		l.remembers, l.perNode = true, model.PerNode
	default:
		l.remembers = true
	}
	intermittent := c.Intermittent != (Intermittent{})
	l.hazardous = c.Loss.possible() || len(c.Outages) > 0 || intermittent
	l.loses = c.Loses()
	_, steady := c.Rate.(rate.Constant)
	_, once := c.Delay.(Once) // it is drawn again as it was
	l.memoryless = (once || !l.remembers) && c.Loss.Bursts == nil && !intermittent && (steady || c.Rate == nil)
	return l
}

// stream is what a rate draws for an edge, an uplink or a downlink.
func (n *Network) stream(key uint64, p purpose) rate.Draws {
	return func(place uint64) *rand.Rand {
		n.tides.seek(key, place, p)
		return n.tidal
	}
}

// present is the delay at an instant of an edge with a process.
func (l *law) present(p Process, now time.Duration) time.Duration {
	if p == nil {
		return l.constant
	}
	return bounded(p.Present(now))
}

// begin starts the process of the edge from one node to another. What it draws at its beginning is
// always the same.
func (n *Network) begin(l *law, from, to *node, previous Process) Process {
	key := from.key
	if !l.perNode {
		key = edgeKey(from.key, to.key)
	}
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
	e.line.set(l.Rate, n, e.key, rates)
	e.outage = 0
	e.flapper = nil
	if l.Intermittent != (Intermittent{}) {
		e.flapper = newFlapper(l.Intermittent, e.key)
	}
	if l.remembers {
		e.process = n.begin(l, e.from, e.to, previous)
	}
}
