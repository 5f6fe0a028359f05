package link

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

// Line is a directed edge between two nodes that send and receive nothing else. Its random streams
// are those that the edge has in a network of the same seed, since they depend on the names of its
// two nodes alone.
type Line struct {
	From, To string
	Config   Config
	Uplink   rate.Rate // of From; nil is unlimited
	Downlink rate.Rate // of To, likewise
	// Leaving and Reaching are what the accesses of From and To add to the delay; nil adds none.
	Leaving, Reaching Delay
	// Fair says that messages share the rates.
	Fair bool
	// Changes are what happens to the edge during the run, in the order of time.
	Changes []LineChange
}

// LineChange gives an edge another configuration at an instant.
type LineChange struct {
	At     time.Duration
	Config Config
}

// Probe is one message that was sent to see what becomes of it.
type Probe struct {
	Sent  time.Duration
	Delay time.Duration // what was drawn for it
	// Took is the time from sending until the message has passed the downlink, with rates,
	// retransmissions and outages; Forever if lost.
	Took  time.Duration
	Tries int
	Lost  bool
}

// network returns a network of the line alone.
func (l *Line) network(seed uint64) *Network {
	n := New(seed, []string{l.From, l.To})
	if l.Fair {
		n.ShareFairly()
	}
	n.SetAccess(0, l.Leaving)
	n.SetAccess(1, l.Reaching)
	n.Set(0, 1, l.Config)
	n.SetUplink(0, l.Uplink)
	n.SetDownlink(1, l.Downlink)
	return n
}

// Probe sends count messages of size bytes, one every interval from the beginning of the run. The
// k-th one draws what the k-th message of a run with this seed draws. As in the worlds, a change
// takes effect before what is sent at the same instant. Probe panics if a configuration is invalid.
func (l *Line) Probe(seed uint64, size int, every time.Duration, count int) []Probe {
	n := l.network(seed)
	probes := make([]Probe, count)
	arrivals := make([]time.Duration, count)
	of := map[int32]int{} // by ticket
	note := func(i int, t Transit) {
		probes[i].Delay, probes[i].Tries, probes[i].Lost = t.Delay, t.Tries, t.Lost
		arrivals[i] = t.Arrival
	}
	latest := time.Duration(0)
	settle := func(until time.Duration) {
		for n.Due() <= until {
			if t, settled := n.Settle(max(n.Due(), latest)); settled {
				note(of[t.Ticket], t)
			}
		}
		latest = until
	}
	changes := l.Changes
	for i := range probes {
		now := time.Duration(i) * every
		for ; len(changes) > 0 && changes[0].At <= now; changes = changes[1:] {
			settle(changes[0].At)
			n.Set(0, 1, changes[0].Config)
			settle(changes[0].At)
		}
		settle(now)
		probes[i] = Probe{Sent: now, Took: Forever}
		t := n.Edge(0, 1).Send(now, size)
		of[t.Ticket] = i
		note(i, t)
	}
	settle(Horizon)
	order := make([]int, count)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(arrivals[a], arrivals[b]) })
	e := n.Edge(0, 1)
	for _, i := range order {
		if !probes[i].Lost {
			probes[i].Took = e.Receive(arrivals[i], size) - probes[i].Sent
		}
	}
	return probes
}

// Outages yields the times at which the line is down, from the beginning of the run to an instant;
// the last one may end later.
func (l *Line) Outages(seed uint64, until time.Duration) iter.Seq[Outage] {
	return func(yield func(Outage) bool) {
		n := l.network(seed)
		var pending Outage
		from := time.Duration(0)
		for i := 0; i <= len(l.Changes) && from < until; i++ {
			to := until
			if i < len(l.Changes) {
				to = min(to, l.Changes[i].At)
			}
			for o := range n.Edge(0, 1).outages(from, to) {
				if to < until {
					o.To = min(o.To, to) // the next configuration says what follows
				}
				if pending.To == o.From && pending.To > 0 {
					pending.To = o.To
					continue
				}
				if pending.To > 0 && !yield(pending) {
					return
				}
				pending = o
			}
			if from = to; i < len(l.Changes) {
				n.Set(0, 1, l.Changes[i].Config)
			}
		}
		if pending.To > 0 {
			yield(pending)
		}
	}
}

// outages yields the outages of the present configuration between two instants.
func (e *Edge) outages(from, to time.Duration) iter.Seq[Outage] {
	return func(yield func(Outage) bool) {
		for from < to {
			o, ok := e.Outage(from, to)
			if !ok || !yield(o) {
				return
			}
			from = o.To
		}
	}
}
