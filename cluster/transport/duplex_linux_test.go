package transport

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// endpoints returns the ends of a connection.
func endpoints(t *testing.T) (*endpoint, *endpoint) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	var ends []*endpoint
	for range 2 {
		var c net.Conn
		if ends == nil {
			c, err = net.Dial("tcp", l.Addr().String())
		} else {
			c, err = l.Accept()
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEndpoint(c.(*net.TCPConn))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() }) //nolint:errcheck // a test's
		ends = append(ends, e)
	}
	return ends[0], ends[1]
}

// read reads what is there.
func (e *endpoint) read(t *testing.T, b []byte) (n int) {
	t.Helper()
	var err error
	if gone := e.raw.Read(func(fd uintptr) bool {
		n, err = unix.Read(int(fd), b)
		return true
	}); gone != nil || err != nil && err != unix.EAGAIN {
		t.Fatal(gone, err)
	}
	return max(n, 0)
}

func TestEndpointWaitsForWhatIsAskedForAndSaysNothingElse(t *testing.T) {
	near, far := endpoints(t)
	waited := make(chan error)
	wait := func(room bool) { go func() { waited <- near.wait(room) }() }
	returns := func(why string) {
		t.Helper()
		if err := <-waited; err != nil {
			t.Fatalf("%s: %v", why, err)
		}
	}
	quiet := func(why string) {
		t.Helper()
		if n, err := unix.EpollWait(int(near.poller.Fd()), near.said[:], 0); n != 0 || err != nil {
			t.Fatalf("%s: %d events, %v", why, n, err)
		}
		if err := unix.SetNonblock(int(near.poller.Fd()), true); err != nil { // which Fd has undone
			t.Fatal(err)
		}
	}
	wait(true)
	returns("there is room")
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	quiet("something came that nobody has asked for")
	wait(false)
	returns("something is there already")
	b := make([]byte, 1<<20)
	if n := near.read(t, b); n != 1 {
		t.Fatalf("%d bytes, want 1", n)
	}
	near.events = unix.EPOLLIN | unix.EPOLLONESHOT
	if err := near.asked.Control(func(poller uintptr) {
		if near.ask(poller) {
			t.Error("nothing is there")
		}
	}); err != nil {
		t.Fatal(err)
	}
	near.wake() // as if wait had asked
	wait(false)
	returns("it was woken")
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	quiet("waking it cancelled what was asked for before")
	near.wake()
	wait(false)
	returns("it was woken before it waited")
	near.read(t, b)
	wait(false)
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	returns("the other end has no more")
	if n := near.read(t, b); n != 0 {
		t.Fatalf("%d bytes after the end", n)
	}
}

func TestEndpointNeitherWaitsNorWritesOnceItIsClosed(t *testing.T) {
	closed, _ := endpoints(t)
	gone := make(chan struct{})
	go func() {
		for closed.wait(false) == nil { // the end of both directions can be seen before the endpoint is closed
		}
		close(gone)
	}()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	<-gone
	if _, err := closed.Write([]byte("x")); err == nil {
		t.Error("a closed endpoint was written to")
	}
}

func TestEndpointWritesMoreThanThereIsRoomFor(t *testing.T) {
	near, far := endpoints(t)
	const size = 50 << 20
	written := make(chan error)
	go func() {
		n, err := near.Write(make([]byte, size))
		if n != size {
			t.Errorf("%d bytes written, want %d", n, size)
		}
		written <- err
	}()
	b := make([]byte, 1<<20)
	for n := 0; n < size; n += far.read(t, b) {
		if err := far.wait(false); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestWriterThatWaitsForRoomEndsWithTheEndpoint(t *testing.T) {
	near, _ := endpoints(t)
	full := false
	for b := make([]byte, 1<<20); !full; {
		if err := near.raw.Write(func(fd uintptr) bool {
			_, err := unix.Write(int(fd), b)
			full = err != nil
			return true
		}); err != nil {
			t.Fatal(err)
		}
	}
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		close(begun)
		_, err := near.Write([]byte("x"))
		ended <- err
	}()
	<-begun
	for range 1000 {
		runtime.Gosched() // so that most often it waits
	}
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("written to a full socket")
	}
}

func TestWakingIsNotLostOnTheWayToSleep(t *testing.T) {
	near, _ := endpoints(t)
	c := &duplex{endpoint: near, relay: make(chan struct{}, 1)}
	c.state.Store(awake)
	c.pass()
	if err := c.sleep(); err != nil || c.state.Load() != awake { // it would sleep for good
		t.Error(err)
	}
}

func TestGoroutineThatHasNothingToWriteDoesNotWaitForRoom(t *testing.T) {
	near, far := endpoints(t)
	c := &duplex{endpoint: near, relay: make(chan struct{}, 1)}
	for _, holds := range []bool{true, false} {
		c.holds = holds
		if !holds {
			if _, err := far.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.sleep(); err != nil || near.said[0].Events&unix.EPOLLOUT != 0 != holds {
			t.Errorf("with the token %v, events %#x; %v", holds, near.said[0].Events, err)
		}
	}
}

func TestFirstChunkOfALargeFrameIsLeftToTheGoroutineThatReads(t *testing.T) {
	near, _ := endpoints(t)
	for _, large := range []bool{false, true} {
		c := &conn{writer: &duplex{endpoint: near}, gather: newGather(near.raw), socket: &socket{}}
		c.batch.add(make([]byte, 100))
		if large {
			c.batch.open = &wire.Packet{}
		}
		if all, err := c.attempt(); err != nil || all == large || (c.bytesOut.Load() == 0) != large {
			t.Errorf("large %v: all %v, %d bytes written; %v", large, all, c.bytesOut.Load(), err)
		}
	}
}

// writing returns the connection of an endpoint with frames to write, of which each is a batch of
// somewhat less than a chunk.
func writing(t *testing.T, e *endpoint, frames int) (*conn, *duplex) {
	p := &peer{node: &Node{}}
	p.conn = &conn{
		peer: p, socket: &socket{}, gather: newGather(e.raw), batch: batch{chunk: chunk},
		token: make(chan struct{}, 1), handover: make(chan struct{}, 1),
	}
	d := &duplex{endpoint: e, conn: p.conn, relay: make(chan struct{}, 1)}
	p.conn.writer = d
	for range frames {
		packet, err := wire.Pack(&wire.Frame{Kind: wire.User, Head: &protos.Chunk{},
			Tensors: []*protos.Tensor{protos.NewTensor(make([]float32, 200_000))}}, wire.Bulk)
		if err != nil {
			t.Fatal(err)
		}
		p.frames[wire.Bulk]++
		p.bulk.Push(packet)
	}
	return p.conn, d
}

func TestGoroutineThatOnlyWritesGivesTheTokenBackToOneThatIsNotAway(t *testing.T) {
	const frames = 3
	for state, want := range map[int32]int{away: frames, awake: 1, asleep: 1} {
		near, far := endpoints(t)
		go func() {
			for b := make([]byte, 1<<20); ; {
				if _, err := far.socket.Read(b); err != nil && far.wait(false) != nil {
					return
				}
			}
		}()
		c, d := writing(t, near, frames)
		d.state.Store(state)
		if !c.fill() {
			t.Fatal("nothing is due")
		}
		if err := errors.Join(c.seal(), c.drain()); err != nil {
			t.Fatal(err)
		}
		// One more has been put together when it gives the token back.
		if written := frames - c.peer.waiting() - min(len(c.rest), 1); written != want ||
			(len(c.token) == 1) != (state == away) || (len(d.relay) == 1) != (state != away) {
			t.Errorf("in state %d %d frames are written, want %d; token %d, relay %d", state, written, want,
				len(c.token), len(d.relay))
		}
	}
}

func TestWritingIsNotFarAheadOfReading(t *testing.T) {
	near, far := endpoints(t)
	for _, option := range []int{unix.SO_SNDBUF, unix.SO_SNDBUFFORCE} {
		//nolint:errcheck // what counts is what comes of it
		unix.SetsockoptInt(near.fd, unix.SOL_SOCKET, option, 16<<20)
	}
	if room, err := unix.GetsockoptInt(near.fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil || room < 8<<20 {
		t.Skipf("the system buffers no more than %d bytes; %v", room, err)
	}
	c, d := writing(t, near, 8)
	d.holds = true
	first, err := d.share()
	if err != nil || first < chunk/2 || first >= chunk {
		t.Fatalf("%d bytes of a batch written; %v", first, err)
	}
	frame := int64(first)
	d.ahead = first
	for i, want := range []int64{2 * frame, 2 * frame, 2 * frame} {
		if read, err := d.exchange(func() bool { return true }); !read || err != nil || c.bytesOut.Load() != want {
			t.Errorf("after %d reads %d bytes are written, want %d; %v, %v", i+1, c.bytesOut.Load(), want, read, err)
		}
	}
	d.ahead -= first // as many were read
	if _, err := d.exchange(func() bool { return true }); err != nil || c.bytesOut.Load() != 3*frame {
		t.Errorf("%d bytes written, want %d; %v", c.bytesOut.Load(), 3*frame, err)
	}
	// With nothing to read it writes what there is room for.
	if read, err := d.exchange(func() bool { return false }); read || err != nil || c.bytesOut.Load() <= 4*frame {
		t.Errorf("%d bytes written; %v, %v", c.bytesOut.Load(), read, err)
	}
	b, n := make([]byte, 1<<20), int64(0)
	for n < c.bytesOut.Load() {
		if err := far.wait(false); err != nil {
			t.Fatal(err)
		}
		n += int64(far.read(t, b))
	}
}

func TestOneGoroutineReadsAndWritesWhereCoresAreFewerThanTwoForAProcess(t *testing.T) {
	before := SetCores(6)
	t.Cleanup(func() { SetCores(before) })
	n := &Node{}
	for near := range 4 {
		n.near.Store(int32(near))
		if n.crowded() != (near > 2) {
			t.Errorf("with %d connections to processes of this machine, which has 6 cores: crowded %v", near,
				n.crowded())
		}
	}
}
