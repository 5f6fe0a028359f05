package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Peer is the process at the other end.
type Peer struct {
	Name string
	// Incarnation tells the lives of a process of this name apart; a later one has a
	// larger number.
	Incarnation uint64
	// Role is the one in its certificate: identity.Node for peers that exchange frames, and for all
	// without TLS.
	Role identity.Role
}

// State is what is known of a peer.
type State uint8

// The states of a peer.
const (
	// Unknown peers have never been connected.
	Unknown State = iota
	// Up means connected, and heard of in time.
	Up
	// Suspended means silent for Limits.Suspend. It is reversible: nothing is given up.
	Suspended
	// Absent means silent for Limits.Absent: users of the transport go on without the peer where
	// they can. It is reversible, too: messages to the peer are kept.
	Absent
	// Down means gone: what waited for this incarnation is lost. A peer that calls again,
	// or that Connect is called for, is no longer down.
	Down
)

var stateNames = [...]string{"unknown", "up", "suspended", "absent", "down"}

// String names the state in a word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "no state"
}

// Gone reports whether the peer is absent or down.
func (s State) Gone() bool { return s >= Absent }

// peer is all that a node knows of another process, whether connected or not.
type peer struct {
	node *Node
	name string
	bad  atomic.Uint64
	// before is closed when a peer of this name that was removed has no connection any longer; nil
	// if there was none.
	before <-chan struct{}

	mu      sync.Mutex
	address string
	removed bool // from the node's list, for good
	about   Peer // the incarnation is 0 before the first connection
	state   State
	conn    *conn
	urgent  queue.Ring[*wire.Packet] // of that class
	bulk    queue.Ring[*wire.Packet] // of the others
	frames  [wire.Classes]int        // that wait
	held    [wire.Classes]int        // bytes of what waits and of what is being written
	room    chan struct{}            // closed when there may be room for a sender that waits; nil if none does

	dialing   bool               // a goroutine sees to it that there will be a connection
	calling   context.CancelFunc // of the call under way; nil if there is none
	accepting int                // calls of the peer that are being decided
	attempt   uint64             // the peer's latest call
	serial    uint64             // counts connections
	heard     time.Time

	// Of this incarnation of the peer: what it may not have, how many frames it is known to have
	// handled or refused, and how many it has refused; and of its own, as of the end of the last
	// connection, how many were taken, and how many of these refused.
	kept           [lane.Lanes]lane.Kept
	acked, refused uint64
	got            lane.Counts
	refusals       uint64

	// sent = delivered + lost + what waits, or is begun and not acked
	sent, delivered, lost uint64
	received, connections uint64
	trip                  time.Duration
}

// follow waits until what has arrived of a removed peer of this name is handled.
func (p *peer) follow() {
	if p.before != nil {
		<-p.before
	}
}

// follows reports whether that is not handled yet.
func (p *peer) follows() bool {
	if p.before == nil {
		return false
	}
	select {
	case <-p.before:
		return false
	default:
		return true
	}
}

// waiting is how many frames wait in the queues.
func (p *peer) waiting() int { return p.urgent.Len() + p.bulk.Len() }

// unsent reports whether frames wait for a connection.
func (p *peer) unsent() bool {
	return p.waiting() > 0 || p.kept[lane.Urgent].Len()+p.kept[lane.Bulk].Len() > 0
}

// send queues a packet and writes it, if nobody writes yet. It waits for room as long as the
// limits say, if it is patient. The packet stays with the caller if there is an error.
func (p *peer) send(packet *wire.Packet, patient bool) error {
	p.mu.Lock()
	if err := p.admit(packet, patient); err != nil {
		p.mu.Unlock()
		return err
	}
	p.sent++
	p.held[packet.Class] += packet.Size()
	p.frames[packet.Class]++
	if packet.Class == wire.Urgent {
		p.urgent.Push(packet)
	} else {
		p.bulk.Push(packet)
	}
	if p.conn != nil {
		p.pump(p.conn)
		return nil
	}
	p.want(false)
	p.mu.Unlock()
	return nil
}

// admit waits for room in the queue, with the lock held but while it waits.
func (p *peer) admit(packet *wire.Packet, patient bool) error {
	var patience *time.Timer
	for {
		switch {
		case p.node.closing.Load():
			return ErrClosed
		case p.state == Down:
			return ErrDown
		case p.conn == nil && p.address == "" && p.state == Unknown:
			return ErrUnknown
		case p.fits(packet):
			return nil
		case !patient:
			return p.full(packet.Class)
		}
		if patience == nil {
			patience = time.NewTimer(p.node.config.Limits.Patience)
			defer patience.Stop()
		}
		if p.room == nil {
			p.room = make(chan struct{})
		}
		room := p.room
		p.mu.Unlock()
		late := false
		select {
		case <-room:
		case <-patience.C:
			late = true
		}
		p.mu.Lock()
		if late {
			return p.full(packet.Class)
		}
	}
}

// fits reports whether there is room for a packet.
func (p *peer) fits(packet *wire.Packet) bool {
	bytes, frames := p.node.config.Limits.room(packet.Class)
	held := p.held[packet.Class]
	return held == 0 || int64(held)+int64(packet.Size()) <= bytes && int64(p.frames[packet.Class]) < frames
}

// full is the error about a class for which there was no room.
func (p *peer) full(c wire.Class) error {
	bytes, frames := p.node.config.Limits.room(c)
	return fmt.Errorf("%w: %d messages wait, with %d bytes; at most %d can, with %d bytes", ErrQueueFull,
		p.frames[c], p.held[c], frames, bytes)
}

// room is how much of a class may wait for one peer.
func (l *Limits) room(c wire.Class) (bytes, frames int64) {
	bytes, frames = int64(l.QueueBytes), queueFrames
	if c != wire.Bulk {
		bytes, frames = bytes*int64(l.Backlog), frames*int64(l.Backlog)
	}
	return bytes, frames
}

// take takes the first packet of a queue.
func (p *peer) take(q *queue.Ring[*wire.Packet]) *wire.Packet {
	packet := q.Pop()
	p.frames[packet.Class]--
	return packet
}

// free makes room for others: something has been written.
func (p *peer) free(ends finished) {
	for i, n := range ends.bytes {
		p.held[i] -= n
	}
	for i, n := range ends.frames {
		if k := &p.kept[i]; n > 0 {
			k.Wrote(n)
		}
	}
	p.wake()
}

// wake lets senders that wait look again.
func (p *peer) wake() {
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
}

// drop loses what waits, and what was under way if there is no connection any longer.
func (p *peer) drop() {
	for _, q := range []*queue.Ring[*wire.Packet]{&p.urgent, &p.bulk} {
		for ; q.Len() > 0; p.lost++ {
			packet := p.take(q)
			p.held[packet.Class] -= packet.Size()
			packet.Release()
		}
	}
	if p.conn == nil {
		p.loseKept()
	}
	p.wake()
}

// turn changes the state.
func (p *peer) turn(to State, reason error) {
	if p.state != to {
		p.state = to
		p.node.announce(event{p.about, to, reason})
	}
}

// down gives the peer up.
func (p *peer) down(reason error) {
	p.drop()
	p.turn(Down, reason)
	if p.conn != nil {
		p.conn.close(reason)
	}
	if p.calling != nil {
		p.calling()
	}
}

// meet takes note of what a peer has said of itself. What waited for an earlier
// incarnation is lost; to the same one goes what it has not taken. There is no connection. Where
// the peer says that it can be called counts where Connect has not told, or told of an earlier
// incarnation.
func (p *peer) meet(about Peer, g *greeting, called bool) {
	if g.address != "" && (p.address == "" || called && about.Incarnation > p.about.Incarnation &&
		p.about.Incarnation != 0) {
		p.address = g.address
	}
	if p.about.Incarnation != 0 && about.Incarnation > p.about.Incarnation {
		p.drop()
		p.turn(Down, ErrRestarted)
		p.kept, p.acked, p.refused = [lane.Lanes]lane.Kept{}, 0, 0
		p.got, p.refusals, p.attempt = lane.Counts{}, 0, 0
	}
	p.about = about
	if g.known == p.node.config.Incarnation {
		p.resume(g.taken, g.refused)
	} else {
		p.restart(lane.Counts{}, 0)
	}
	p.serial = max(p.serial, g.serial) + 1
}

// install makes a socket the connection with the peer.
func (p *peer) install(s *socket, in *bufio.Reader, mine bool) error {
	c, err := newConn(p, s, mine)
	if err != nil {
		return err
	}
	c.from, c.before = p.about, p.got.Sum()
	for i, n := range p.got {
		c.took[i].Store(n)
	}
	c.farewellDue = p.node.closing.Load()
	p.conn, p.heard = c, time.Now()
	p.connections++
	p.turn(Up, nil)
	p.node.work.Go(func() { c.run(in) })
	return nil
}

// ended takes note of the end of the connection, once all its goroutines have ended.
func (p *peer) ended(c *conn, ends finished) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(ends)
	p.conn = nil
	p.got, p.refusals = c.taken(), p.refusals+c.refusals
	p.received += c.handled.Load()
	switch {
	case p.state == Down, p.node.closing.Load():
		p.loseKept()
	case p.accepting > 0:
	case errors.Is(c.reason, ErrLeft):
		p.down(ErrLeft)
	default:
		p.want(true)
	}
}

// nextBeat is the heartbeat that is sent now.
func (c *conn) nextBeat() beat {
	b := beat{sent: int64(time.Since(c.peer.node.began)), handled: c.before + c.handled.Load(), taken: c.taken()}
	if c.last.sent != 0 {
		b.echo, b.held = c.last.sent, int64(time.Since(c.lastAt))
	}
	return b
}

// hear takes a heartbeat in. The round trip is smoothed as RFC 6298 does it.
func (p *peer) hear(c *conn, b beat) error {
	now := time.Now()
	p.mu.Lock()
	err := p.acknowledge(b.taken)
	if err == nil && (b.handled < p.acked || b.handled > b.taken.Sum()) {
		err = bad("heartbeat says that %d frames were handled, %d were before and %d taken", b.handled, p.acked,
			b.taken.Sum())
	}
	if err != nil {
		p.bad.Add(1)
		p.mu.Unlock()
		return err
	}
	p.delivered += b.handled - p.acked
	p.acked, c.last, c.lastAt = b.handled, b, now
	if trip := now.Sub(p.node.began) - time.Duration(b.echo) - time.Duration(b.held); b.echo > 0 && b.held >= 0 &&
		trip > 0 && trip < now.Sub(p.node.began) {
		if p.trip == 0 {
			p.trip = trip
		}
		p.trip += (trip - p.trip) / 8
	}
	p.goOn(c)
	return nil
}
