package transport

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/transport/lane"
)

// socket is a connection of TCP, with TLS on top or without, or the memory in its place.
type socket struct {
	net.Conn              // TLS, or the same as counted
	tcp      *net.TCPConn // what is closed in the end
	sealed   *sealed      // nil without TLS
	state    tls.ConnectionState
	counted  *counted
	shared   shared // takes its place when frames are exchanged; nil if none does
}

func newSocket(tcp *net.TCPConn) *socket {
	s := &socket{tcp: tcp, counted: &counted{Conn: tcp}}
	s.Conn = s.counted
	return s
}

// counted counts what is received.
type counted struct {
	net.Conn
	bytes atomic.Int64 // so far
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes.Add(int64(n))
	return n, err
}

// medium is what the frames of a connection go over: a socket, or memory.
type medium interface {
	// Write waits for room, Close ends both directions and CloseWrite what is written.
	io.WriteCloser
	CloseWrite() error
	// try writes what there is room for now.
	try(parts [][]byte) (int, error)
	// release gives up what nobody uses: it is closed, or was never used.
	release()
}

// shared is memory that both processes of a connection have mapped.
type shared interface {
	net.Conn
	medium
	// watch returns when the other process is gone.
	watch()
}

// plain is the medium that a socket is.
type plain struct {
	*net.TCPConn
	*gather
}

func (plain) release() {}

// drop ends a socket that is not in use.
func (s *socket) drop() {
	s.tcp.Close() //nolint:errcheck // nothing was agreed on it
	if s.shared != nil {
		s.shared.release()
	}
}

// readAhead is the buffer for heads and small frames; larger reads pass it by.
const readAhead = 16 << 10

// conn is the one established connection with a peer.
//
// The goroutine that holds the token writes. A sender that finds the queue empty and the token free
// writes at once what the socket takes without waiting, and passes the rest with the token to the
// connection's writer. The token is in token, in handover, with the writer, or with one of them.
type conn struct {
	peer     *peer
	from     Peer
	socket   *socket
	mine     bool // called by this side
	medium   medium
	batch    batch
	rest     [][]byte // of the batch, what is not written yet
	cipher   []byte   // of the batch, what TLS has made of it
	one      [1][]byte
	buffers  net.Buffers
	token    chan struct{} // holds one while nobody writes
	handover chan struct{} // holds the token for the writing goroutine
	closed   chan struct{}
	closing  sync.Once
	reason   error // set before closed is closed
	done     chan struct{}

	// Guarded by the peer's lock.
	beatDue, farewellDue, farewellSent bool
	last                               beat      // the last one that has arrived
	lastAt                             time.Time // when
	seen                               int64     // bytes received at the keeper's last look

	bytesOut atomic.Int64
	before   uint64 // frames of the peer's incarnation that were handled on other connections
	handled  atomic.Uint64
	took     [lane.Lanes]atomic.Uint64 // of the peer's incarnation
	refusals uint64                    // frames of this connection that were refused; of the reader
	// The bytes received when the peer was told last, under the peer's lock; those when the reader
	// looked last, and how many frames it has taken since it had that told.
	toldBytes, looked int64
	owed              int
	busy              atomic.Bool // the handler is at work
}

// newConn begins to use a socket, which stays the caller's if there is an error.
func newConn(p *peer, s *socket, mine bool) (*conn, error) {
	c := &conn{
		peer: p, socket: s, mine: mine, batch: batch{chunk: chunk},
		token: make(chan struct{}, 1), handover: make(chan struct{}, 1),
		closed: make(chan struct{}), done: make(chan struct{}),
	}
	if s.shared != nil {
		c.medium = s.shared
		s.counted.Conn, s.Conn, s.sealed = s.shared, s.counted, nil
		return c, nil
	}
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c.medium = plain{s.tcp, newGather(raw)}
	s.counted.Conn = newPatient(s.tcp, raw)
	if s.sealed != nil {
		c.batch.chunk = sealedChunk
		s.sealed.hold()
	}
	return c, nil
}

// close ends the connection; the first to do so says why. It does not wait: done is
// closed when all goroutines of the connection have ended.
func (c *conn) close(reason error) {
	c.closing.Do(func() {
		c.reason = reason
		close(c.closed)
		c.medium.Close() //nolint:errcheck // whatever it says, the connection is over
	})
}

// run reads until the connection ends, and then clears up. The queue is written first.
func (c *conn) run(in *bufio.Reader) {
	if c.socket.shared != nil {
		c.peer.node.work.Go(c.socket.shared.watch)
	}
	c.handover <- struct{}{}
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write()
	}()
	err := c.receive(in)
	c.close(err)
	<-written
	select {
	case <-c.token:
	case <-c.handover:
	}
	// From here on the token is held for good.
	ends := c.batch.written()
	ends.frames = lane.Counts{} // that they were written says nothing any longer
	if p := c.batch.open; p != nil {
		ends.bytes[p.Class] += p.Size()
	}
	c.medium.release()
	c.peer.ended(c, ends)
	close(c.done)
}

// receive hands over what arrives, until the connection ends.
func (c *conn) receive(in *bufio.Reader) error {
	p := c.peer
	s := &stream{in: in, tensors: p.node.config.Tensors, posted: p.node.config.Posted,
		rode: func(taken uint32) error { return p.rode(c, taken) }, limit: p.node.config.Limits.Frame}
	defer s.close()
	for {
		a, err := s.read()
		if err != nil {
			if errors.Is(err, ErrBad) {
				p.bad.Add(1)
			}
			if a.kind == urgentRecord || a.kind == bulkRecord {
				c.took[laneOf(a.kind)].Add(1)
				c.refusals++
			}
			return err
		}
		switch a.kind {
		case beatRecord:
			if err := p.hear(c, a.beat); err != nil {
				return err
			}
		case farewellRecord:
			return c.farewell()
		default:
			c.take(a)
		}
	}
}

// take has a frame handled that has been read to its end.
func (c *conn) take(a arrival) {
	c.took[laneOf(a.kind)].Add(1)
	c.busy.Store(true)
	c.peer.node.config.Receive(c.from, a.frame)
	c.handled.Add(1)
	c.busy.Store(false)
	c.owe()
}

// farewell answers a peer that has sent its last frame: with a last heartbeat, which
// says that all has arrived, and the end of what is written.
func (c *conn) farewell() error {
	p := c.peer
	p.mu.Lock()
	c.beatDue, c.farewellDue = true, true
	p.drop()
	p.pump(c)
	deadline := time.NewTimer(p.node.config.Limits.Suspend)
	defer deadline.Stop()
	select {
	case <-c.token: // everything has been written
		c.token <- struct{}{}
	case <-c.closed:
	case <-deadline.C:
	}
	c.medium.CloseWrite() //nolint:errcheck // the connection is over in any case
	return ErrLeft
}

// pump writes what is due, unless somebody is writing already. It is called with the peer's lock,
// and gives it up.
func (p *peer) pump(c *conn) {
	select {
	case <-c.token:
	default:
		p.mu.Unlock()
		return
	}
	for range inlineBatches {
		if !c.fill() {
			c.token <- struct{}{}
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		all, err := c.attempt()
		if err != nil {
			c.close(err)
		}
		if !all {
			c.handover <- struct{}{}
			return
		}
		ends := c.finish()
		p.mu.Lock()
		p.free(ends)
	}
	p.mu.Unlock()
	c.handover <- struct{}{}
}

// inlineBatches is how many batches a sender writes before it leaves the rest to the
// connection's own goroutines, lest it works for all other senders.
const inlineBatches = 4

// fill puts together the next batch. It reports false if nothing is due. The caller holds
// the peer's lock and the token.
func (c *conn) fill() bool {
	p, b := c.peer, &c.batch
	if p.conn != c || c.farewellSent {
		return false
	}
	if c.beatDue {
		c.beatDue = false
		putRecord(b.beat[:], beatRecord, beatSize)
		h := c.nextBeat()
		h.put(b.beat[recordHeader:])
		b.add(b.beat[:])
		c.toldBytes = c.socket.counted.bytes.Load()
	}
	for p.urgent.Len() > 0 && !b.full() {
		packet := p.take(&p.urgent)
		p.kept[lane.Urgent].Push(packet)
		b.whole(packet)
	}
	if b.open != nil && !b.full() {
		b.goOn()
	}
	most := maxKept * p.node.config.Limits.QueueBytes
	for b.open == nil && p.bulk.Len() > 0 && !b.full() && b.fits(p.bulk.Front()) &&
		p.kept[lane.Bulk].Fits(p.bulk.Front(), most) {
		packet := p.take(&p.bulk)
		p.kept[lane.Bulk].Push(packet)
		b.begin(packet, c.took[lane.Bulk].Load())
		c.toldBytes = c.socket.counted.bytes.Load()
	}
	if c.farewellDue && b.open == nil && p.waiting() == 0 {
		c.farewellSent = true
		putRecord(b.last[:], farewellRecord, 0)
		b.add(b.last[:])
	}
	return b.size > 0
}

// attempt writes as much of a fresh batch as there is room for now.
func (c *conn) attempt() (all bool, err error) {
	if err := c.seal(); err != nil {
		return false, err
	}
	n, err := c.medium.try(c.rest)
	c.advance(n)
	return len(c.rest) == 0, err
}

// advance takes note of n bytes that were written.
func (c *conn) advance(n int) {
	c.bytesOut.Add(int64(n))
	for n > 0 && n >= len(c.rest[0]) {
		n -= len(c.rest[0])
		c.rest = c.rest[1:]
	}
	if n > 0 {
		c.rest[0] = c.rest[0][n:]
	}
}

// seal makes the batch what goes to the socket.
func (c *conn) seal() error {
	if c.socket.sealed == nil {
		c.rest = c.batch.parts
		return nil
	}
	for _, part := range c.batch.parts {
		if _, err := c.socket.Write(part); err != nil {
			return err
		}
	}
	c.cipher = c.socket.sealed.take()
	c.one[0] = c.cipher
	c.rest = c.one[:]
	return nil
}

// finish gives back what a batch that is written has held, and tells what came to its end.
func (c *conn) finish() finished {
	c.rest = nil
	if c.cipher != nil {
		c.socket.sealed.put(c.cipher)
		c.cipher, c.one[0] = nil, nil
	}
	return c.batch.written()
}

// write is the goroutine that writes what senders could not.
func (c *conn) write() {
	for {
		select {
		case <-c.closed:
			return
		case <-c.handover:
		}
		err := c.drain()
		if err != nil {
			c.close(err)
			c.token <- struct{}{}
			return
		}
	}
}

// drain writes the rest of a batch and all that is due.
func (c *conn) drain() error {
	for {
		if len(c.rest) > 0 {
			c.buffers = c.rest
			n, err := c.buffers.WriteTo(c.medium)
			c.bytesOut.Add(n)
			if err != nil {
				return err
			}
		}
		if more, err := c.next(); err != nil || !more {
			return err
		}
	}
}

// next finishes a batch that is written and puts together another. If nothing is due it puts the
// token back, and reports false.
func (c *conn) next() (bool, error) {
	p := c.peer
	ends := c.finish()
	p.mu.Lock()
	p.free(ends)
	if !c.fill() {
		c.token <- struct{}{}
		p.mu.Unlock()
		return false, nil
	}
	p.mu.Unlock()
	return true, c.seal()
}
