package transport

import (
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/wire"
)

// A connection may break at any time, and what the system has taken of it may not have arrived. So
// each frame is kept from when its writing begins until the peer has taken it, which means read it
// to its end. Frames to an incarnation of a peer are numbered, and in a greeting either side says
// how many it has taken of the other: the connection begins with the next one. What has been taken
// is told meanwhile by heartbeats, and by the bulk frames that go the other way.

// laneOf is the lane of a frame that begins with a record of a kind.
func laneOf(record byte) int {
	if record == urgentRecord {
		return lane.Urgent
	}
	return lane.Bulk
}

// maxKept is how many times Limits.QueueBytes of bulk frames are kept at most. More wait.
const maxKept = 4

// begun is how many frames to this incarnation were begun.
func (p *peer) begun() (n uint64) {
	for i := range p.kept {
		n += p.kept[i].Begun()
	}
	return n
}

// rideMask is the part of the count of bulk frames taken that a record has room for.
const rideMask = 1<<24 - 1

// rode takes in what came with a bulk frame: the lower bits of how many of this side's the peer has
// taken.
func (p *peer) rode(c *conn, taken uint32) error {
	p.mu.Lock()
	k := &p.kept[lane.Bulk]
	now := k.Taken() + uint64((taken-uint32(k.Taken()))&rideMask)
	if now > k.Begun() {
		p.mu.Unlock()
		return bad("a frame says that %d were taken, %d were sent", now, k.Begun())
	}
	k.Take(now)
	p.goOn(c)
	return nil
}

// acknowledge takes in how many frames the peer has taken.
func (p *peer) acknowledge(taken lane.Counts) error {
	for i, n := range taken {
		k := &p.kept[i]
		if n < k.Taken() || n > k.Begun() {
			return bad("heartbeat says that %d frames were taken, %d were before and %d sent", n, k.Taken(), k.Begun())
		}
		k.Take(n)
	}
	return nil
}

// goOn writes what could not be begun because too much was kept. It is called with the peer's lock,
// and gives it up.
func (p *peer) goOn(c *conn) {
	if p.bulk.Len() > 0 {
		p.pump(c)
		return
	}
	p.mu.Unlock()
}

// restart has the next connection begin with what waits, since the peer has forgotten what it had,
// and counts from here. There is no connection.
func (p *peer) restart(taken lane.Counts, refused uint64) {
	p.loseKept()
	for i, n := range taken {
		p.kept[i] = lane.From(n)
	}
	p.acked, p.refused = taken.Sum(), refused
}

// resume has the next connection begin with what the peer has not taken. What it has refused is
// lost, as it would refuse it again. There is no connection.
func (p *peer) resume(taken lane.Counts, refused uint64) {
	known := taken.Sum() >= p.acked && refused >= p.refused && refused-p.refused <= taken.Sum()-p.acked
	for i, n := range taken {
		known = known && n >= p.kept[i].Taken() && n <= p.kept[i].Begun()
	}
	if !known { // this node has forgotten what it had sent
		p.restart(taken, refused)
		return
	}
	p.lost += refused - p.refused
	p.delivered += taken.Sum() - p.acked - (refused - p.refused)
	p.acked, p.refused = taken.Sum(), refused
	for i, q := range [lane.Lanes]*queue.Ring[*wire.Packet]{&p.urgent, &p.bulk} {
		p.kept[i].Requeue(taken[i], q, func(packet *wire.Packet) {
			p.frames[packet.Class]++
			p.held[packet.Class] += packet.Size()
		})
	}
}

// loseKept gives up what the peer is not known to have handled. There is no connection.
func (p *peer) loseKept() {
	p.lost += p.begun() - p.acked
	for i := range p.kept {
		p.kept[i].Lose()
	}
	p.acked = p.begun()
}

// After how many frames or bytes that the peer has not been told of a heartbeat tells it.
const (
	tellFrames = 1 << 10
	tellBytes  = 1 << 20
)

// taken is how many frames of the peer's incarnation this side has taken.
func (c *conn) taken() (n lane.Counts) {
	for i := range n {
		n[i] = c.took[i].Load()
	}
	return n
}

// owe tells the peer what was taken, when that is much. It is the reader's.
func (c *conn) owe() {
	bytes := c.socket.counted.bytes.Load()
	if c.owed++; c.owed < tellFrames && bytes-c.looked < tellBytes {
		return
	}
	p := c.peer
	p.mu.Lock()
	if c.owed < tellFrames && bytes-c.toldBytes < tellBytes {
		c.looked = c.toldBytes // something that went the other way has told it
		p.mu.Unlock()
		return
	}
	c.owed, c.looked, c.beatDue = 0, bytes, true
	p.pump(c)
}
