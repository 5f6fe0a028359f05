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

// releaseNames calls those whose name another process claims, as one does that was killed and has
// been started at another address. If nobody listens at the former address, the earlier life is
// over, and need not be suspected first. Claims that come during a call are repeated.
func (m *Members) releaseNames() {
	for {
		select {
		case <-m.closing:
			return
		case former := <-m.claimed:
			c, err := m.transport.DialTimeout(former.Gossip.String(), dialTimeout)
			switch {
			case err == nil:
				_ = c.Close()
			case errors.Is(err, syscall.ECONNREFUSED):
				m.transport.deliver(death(former.Name, m.config.Name, time.Now()))
			}
		}
	}
}

// deadMessage is the type of memberlist's message that a node is dead.
const deadMessage = 5

// death is memberlist's message that a node is dead, from another one. memberlist does not tell in
// which incarnation it knows a node; the seconds of an instant are above that, and leave room for an
// objection.
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
	p := &memberlist.Packet{Buf: t.gate.pack(message), From: net.UDPAddrFromAddrPort(t.advertise), Timestamp: time.Now()}
	select {
	case t.arrived <- p:
	case <-t.closing:
	}
}
