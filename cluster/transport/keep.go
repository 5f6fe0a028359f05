package transport

import (
	"fmt"
	"sync"
	"time"
)

// keep sends heartbeats, and notices where none come.
func (n *Node) keep() {
	every := n.config.Limits.Heartbeat
	tick := time.NewTicker(every)
	defer tick.Stop()
	for before := n.began; ; {
		select {
		case <-n.stop.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		// A process that did not run could not hear, which is not its peers' fault.
		deaf := max(0, now.Sub(before)-2*every)
		before = now
		for _, p := range n.all() {
			p.look(now, deaf)
		}
	}
}

// look judges a peer's silence and sends it a heartbeat.
func (p *peer) look(now time.Time, deaf time.Duration) {
	p.mu.Lock()
	c := p.conn
	p.heard = p.heard.Add(deaf)
	if p.follows() {
		p.heard = now
	}
	if c != nil {
		// Bytes of a long frame are signs of life, and so is a handler that keeps them from being
		// read.
		if bytes := c.socket.counted.bytes.Load(); bytes != c.seen || c.busy.Load() {
			c.seen, p.heard = bytes, now
		}
	}
	limits := &p.node.config.Limits
	switch silent := now.Sub(p.heard); {
	case silent >= limits.GiveUp && p.state != Down && (p.state != Unknown || p.dialing):
		p.down(fmt.Errorf("%w for %v", ErrAbsent, limits.GiveUp))
	case silent >= limits.Suspend && p.state == Up:
		p.turn(Suspended, fmt.Errorf("%w for %v", ErrAbsent, limits.Suspend))
	case silent >= limits.Absent && p.state == Suspended:
		p.turn(Absent, fmt.Errorf("%w for %v", ErrAbsent, limits.Absent))
	case silent < limits.Suspend && (p.state == Suspended || p.state == Absent) && c != nil:
		p.turn(Up, nil)
	}
	if c == nil {
		p.mu.Unlock()
		return
	}
	c.beatDue = true
	p.pump(c)
}

// event is a change of a peer's state.
type event struct {
	peer   Peer
	state  State
	reason error
}

// news are changes that nobody has been told of yet. There are few: each but for suspension
// takes a connection, and suspension takes its time.
type news struct {
	mu     sync.Mutex
	ready  *sync.Cond
	events []event
	over   bool
}

func (n *Node) announce(e event) {
	n.news.mu.Lock()
	defer n.news.mu.Unlock()
	if n.config.Changed != nil && !n.news.over {
		n.news.events = append(n.news.events, e)
		n.news.ready.Signal()
	}
}

func (w *news) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.ready.Signal()
}

// tell tells of all changes until the node closes.
func (w *news) tell(changed func(Peer, State, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.events) > 0 {
			e := w.events[0]
			w.events = w.events[1:]
			w.mu.Unlock()
			changed(e.peer, e.state, e.reason)
			w.mu.Lock()
		}
		if w.over {
			return
		}
		w.ready.Wait()
	}
}
