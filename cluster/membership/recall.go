package membership

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
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

// claim is a name that another process than its holder claims, as one does that was killed and has
// been started at another address.
type claim struct{ holder, claimant Member }

// judgeClaims looks into claims, one for each name at a time; those that come meanwhile are
// repeated.
func (m *Members) judgeClaims() {
	judged := map[string]bool{}
	done := make(chan string)
	for {
		select {
		case <-m.closing:
			return
		case name := <-done:
			delete(judged, name)
		case c := <-m.claims:
			if name := c.holder.Name; !judged[name] {
				judged[name] = true
				m.running.Go(func() {
					m.judge(c)
					select {
					case done <- name:
					case <-m.closing:
					}
				})
			}
		}
	}
}

// judge calls the holder of a name. If nobody listens there, that life is over, and need not be
// suspected first; the claimant is met once its name is free.
func (m *Members) judge(c claim) {
	conn, err := m.transport.DialTimeout(c.holder.Gossip.String(), dialTimeout)
	if err == nil {
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return
	}
	m.transport.deliver(death(c.holder.Name, m.config.Name, time.Now()))
	select {
	case <-m.closing:
	case <-time.After(m.paced(reclaimTime + gossipInterval)):
		_ = m.contact(c.claimant.Gossip) // it repeats its claim
	}
}

// deadMessage is the type of memberlist's message that a node is dead.
const deadMessage = 5

// death is memberlist's message that a node is dead, from another one. memberlist does not tell in
// which incarnation it knows a node; the seconds of an instant are above that, and leave room for
// an objection.
func death(node, from string, at time.Time) []byte {
	text := func(b []byte, s string) []byte { // MessagePack's str 16
		return append(binary.BigEndian.AppendUint16(append(b, 0xda), uint16(len(s))), s...)
	}
	b := append(text([]byte{deadMessage, 0x83}, "Incarnation"), 0xce) // a map of three, a uint 32
	b = binary.BigEndian.AppendUint32(b, uint32(at.Unix()))
	b = text(text(b, "Node"), node)
	return text(text(b, "From"), from)
}

// deliver gives memberlist a message as if it had arrived in a packet.
func (t *transport) deliver(message []byte) {
	p := &memberlist.Packet{
		Buf: t.gate.pack(message), From: net.UDPAddrFromAddrPort(t.advertise), Timestamp: time.Now(),
	}
	select {
	case t.arrived <- p:
	case <-t.closing:
	}
}
