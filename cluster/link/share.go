package link

import (
	"time"

	"github.com/gradwire/gradwire/cluster/link/fluid"
	"github.com/gradwire/gradwire/cluster/link/rate"
	"github.com/gradwire/gradwire/cluster/queue"
)

// shared is what is under way in a network whose rates are shared fairly.
type shared struct {
	flows    fluid.Flows
	messages []message // by ticket, from 1
	vacant   []int32
	ready    queue.Ring[Transit]
}

// message is one that takes its share of rates, or waits for one before it.
type message struct {
	edge    *Edge
	number  uint64 // for what it draws
	size    int
	tries   int
	at      time.Duration // when it was through
	after   int32         // the message that was sent next on its edge
	ordered bool          // it must not overtake
	through bool
	lost    bool
}

// ShareFairly has the messages under way share uplinks, edges and downlinks so that the rates are
// max–min fair, rather than one wait for the other: each message crosses the three at once, at its
// one rate. It is called before all else.
func (n *Network) ShareFairly() { n.shared = &shared{messages: make([]message, 1)} }

// Due returns the instant at which Settle has something to do if nothing happens before; Forever if
// there is none. After a change of a rate it is one that has passed, which stands for the present
// one: Settle is then to be called with that of the change.
func (n *Network) Due() time.Duration {
	if n.shared == nil {
		return Forever
	}
	if n.shared.ready.Len() > 0 {
		return n.shared.flows.Now()
	}
	return n.shared.flows.Due()
}

// Settle says what became of a message that Send gave a ticket, if there is one of which it is
// known at an instant. The ticket is not good any longer. Settle is called again until there is
// none.
func (n *Network) Settle(now time.Duration) (t Transit, settled bool) {
	s := n.shared
	for s.ready.Len() == 0 {
		ended, ok := s.flows.Next(now)
		if !ok {
			return Transit{}, false
		}
		s.judge(ended.Owner, ended.At)
	}
	t = s.ready.Pop()
	s.messages[t.Ticket] = message{}
	s.vacant = append(s.vacant, t.Ticket)
	return t, true
}

// set gives a resource a rate, and makes it when it is limited first.
func (s *shared) set(resource *int32, r rate.Process) {
	switch {
	case *resource > 0:
		s.flows.Set(*resource-1, r)
	case r != nil:
		*resource = s.flows.Add(r) + 1
	}
}

// crossed appends the resources that an edge takes its share of.
func (e *Edge) crossed(all []int32) []int32 {
	for _, r := range [...]int32{e.from.uplink.resource, e.line.resource, e.to.downlink.resource} {
		if r > 0 {
			all = append(all, r-1)
		}
	}
	return all
}

// share puts a message under way that takes its share of rates.
func (e *Edge) share(now time.Duration, size int, number uint64, over []int32) Transit {
	s := e.network.shared
	var ticket int32
	if last := len(s.vacant) - 1; last >= 0 {
		ticket, s.vacant = s.vacant[last], s.vacant[:last]
	} else {
		ticket = int32(len(s.messages))
		s.messages = append(s.messages, message{})
	}
	s.messages[ticket] = message{edge: e, number: number, size: size, tries: 1, ordered: !e.law.Reorder}
	if !e.law.Reorder {
		if e.newest == 0 {
			e.oldest = ticket
		} else {
			s.messages[e.newest].after = ticket
		}
		e.newest = ticket
	}
	e.underway++
	s.flows.Start(now, float64(size)+float64(e.law.Overhead), ticket, over...)
	return Transit{Arrival: Forever, Ticket: ticket, Tries: 1}
}

// judge says what loss and outages do to a message that is through. One that is sent again takes
// its share of rates anew.
func (s *shared) judge(ticket int32, at time.Duration) {
	m := &s.messages[ticket]
	e, loss, again := m.edge, &m.edge.law.Loss, at
	end, down := e.outageAt(at)
	switch {
	case loss.Drop:
		m.lost = e.failsNow(m) || down
	case down:
		again, m.lost = end, end == Forever
	case e.failsNow(m):
		if m.lost = loss.exhausted(m.tries); !m.lost {
			again = at + loss.Timeout
			m.tries++
		}
	}
	if again > at && !m.lost {
		var over [fluid.MaxCrossed]int32
		s.flows.StartLater(again, float64(m.size)+float64(e.law.Overhead), ticket, e.crossed(over[:0])...)
		return
	}
	m.at, m.through = at, true
	if !m.ordered {
		s.settle(ticket)
		return
	}
	for e.oldest != 0 && s.messages[e.oldest].through {
		first := e.oldest
		if e.oldest = s.messages[first].after; e.oldest == 0 {
			e.newest = 0
		}
		s.settle(first)
	}
}

// failsNow draws whether the present try of a message fails.
func (e *Edge) failsNow(m *message) bool {
	if !e.law.hazardous {
		return false
	}
	if m.tries == 1 {
		e.network.draws.seek(e.key, m.number, losses)
	} else {
		e.network.draws.seek(e.key, m.number<<10+uint64(m.tries), repeats)
	}
	return e.fails()
}

// settle says what became of a message, now that those before it are settled.
func (s *shared) settle(ticket int32) {
	m := &s.messages[ticket]
	m.edge.underway--
	t := m.edge.depart(m.at, m.number, m.size, m.tries, m.lost)
	t.Ticket = ticket
	s.ready.Push(t)
}
