package membership

import (
	"errors"
	"syscall"
	"time"
)

// How a node that memberlist has given up is asked whether that is so.
const (
	recallPatience = 10 * time.Second
	firstRecall    = 50 * time.Millisecond
	lastRecall     = time.Second
)

// doubt is about a node that memberlist has given up.
type doubt struct {
	Member
	number uint64
}

// examine looks into doubts, all at the same time, so that many failures take no longer than one.
func (m *Members) examine() {
	for {
		select {
		case <-m.closing:
			return
		case <-m.roll.doubted:
		}
		for _, d := range m.roll.doubts() {
			m.running.Go(func() { m.recall(d) })
		}
	}
}

// recall calls a node that memberlist has given up. One that was only slow learns so what is said
// of it, and objects. It has failed if nobody listens at its address, or if it has not objected in
// recallPatience.
func (m *Members) recall(d doubt) {
	over := time.After(m.paced(recallPatience))
	for wait := m.paced(firstRecall); m.roll.pending(d); wait = min(2*wait, m.paced(lastRecall)) {
		c, err := m.transport.DialTimeout(d.Gossip.String(), dialTimeout)
		switch {
		case err == nil:
			_ = c.Close()
			// Whether it helped is seen in the roll.
			_ = m.contact(d.Gossip)
		case errors.Is(err, syscall.ECONNREFUSED):
			m.roll.confirm(d)
			return
		}
		select {
		case <-m.closing:
			return
		case <-over:
			m.roll.confirm(d)
			return
		case <-time.After(wait):
		}
	}
}
