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
	// Suspended means not heard of for a while. It is reversible: nothing is given up.
	Suspended
	// Down means gone: what waited for this incarnation is lost. A peer that calls again,
	// or that Connect is called for, is no longer down.
	Down
)

var stateNames = [...]string{"unknown", "up", "suspended", "down"}

// String names the state in a word.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "no state"
}

// peer is all that a node knows of another process, whether connected or not.
type peer struct {
	node *Node
	name string
	bad  atomic.Uint64

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
	before    ended              // the connection before this one
	heard     time.Time

	// sent = delivered + conn.acked + lost + what waits or is not acknowledged
	sent, delivered, lost uint64
	received, connections uint64
	trip                  time.Duration
}

// ended is what is remembered of a connection.
type ended struct {
	serial  uint64
	acked   uint64 // frames that the peer was known to have handled
	open    uint64 // frames beyond these, which count as lost
	handled uint64 // frames that this side has handled
}

// waiting is how many frames wait in the queues.
func (p *peer) waiting() int { return p.urgent.Len() + p.bulk.Len() }

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

// free makes room for others.
func (p *peer) free(bytes [wire.Classes]int) {
	for i, n := range bytes {
		p.held[i] -= n
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

// drop loses what waits.
func (p *peer) drop() {
	for _, q := range []*queue.Ring[*wire.Packet]{&p.urgent, &p.bulk} {
		for ; q.Len() > 0; p.lost++ {
			packet := p.take(q)
			p.held[packet.Class] -= packet.Size()
			packet.Release()
		}
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
// incarnation is lost. There is no connection. Where the peer says that it can be called
// counts where Connect has not told, or told of an earlier incarnation.
func (p *peer) meet(about Peer, g *greeting, called bool) {
	if g.address != "" && (p.address == "" || called && about.Incarnation > p.about.Incarnation &&
		p.about.Incarnation != 0) {
		p.address = g.address
	}
	if p.about.Incarnation != 0 && about.Incarnation > p.about.Incarnation {
		p.drop()
		p.turn(Down, ErrRestarted)
		p.before, p.attempt = ended{}, 0
	}
	p.about = about
	if b := &p.before; g.serial == b.serial && g.received > b.acked {
		arrived := min(g.received-b.acked, b.open)
		p.delivered, p.lost = p.delivered+arrived, p.lost-arrived
		b.acked, b.open = b.acked+arrived, b.open-arrived
	}
	p.serial = max(p.serial, g.serial) + 1
}

// install makes a socket the connection with the peer.
func (p *peer) install(s *socket, in *bufio.Reader, mine bool) error {
	c, err := newConn(p, s, mine)
	if err != nil {
		return err
	}
	c.from, c.serial = p.about, p.serial
	c.farewellDue = p.node.closing.Load()
	p.conn, p.heard = c, time.Now()
	p.connections++
	p.turn(Up, nil)
	p.node.work.Go(func() { c.run(in) })
	return nil
}

// ended takes note of the end of the connection, once all its goroutines have ended.
func (p *peer) ended(c *conn, freed [wire.Classes]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(freed)
	p.conn = nil
	p.before = ended{serial: c.serial, acked: c.acked, open: c.begun - c.acked, handled: c.handled.Load()}
	p.delivered += c.acked
	p.received += c.handled.Load()
	p.lost += c.begun - c.acked
	switch {
	case p.state == Down, p.node.closing.Load(), p.accepting > 0:
	case errors.Is(c.reason, ErrLeft):
		p.down(ErrLeft)
	default:
		p.want(true)
	}
}

// nextBeat is the heartbeat that is sent now.
func (c *conn) nextBeat() beat {
	b := beat{sent: int64(time.Since(c.peer.node.began)), received: c.handled.Load()}
	if c.last.sent != 0 {
		b.echo, b.held = c.last.sent, int64(time.Since(c.lastAt))
	}
	return b
}

// hear takes a heartbeat in. The round trip is smoothed as RFC 6298 does it.
func (p *peer) hear(c *conn, b beat) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.received < c.acked || b.received > c.begun {
		p.bad.Add(1)
		return bad("heartbeat says that %d frames were handled, %d were before and %d sent", b.received, c.acked,
			c.begun)
	}
	c.acked, c.last, c.lastAt = b.received, b, now
	if trip := now.Sub(p.node.began) - time.Duration(b.echo) - time.Duration(b.held); b.echo > 0 && b.held >= 0 &&
		trip > 0 && trip < now.Sub(p.node.began) {
		if p.trip == 0 {
			p.trip = trip
		}
		p.trip += (trip - p.trip) / 8
	}
	return nil
}
