package transport

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
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
	wait(false)
	select {
	case err := <-waited:
		t.Fatalf("nothing is there; %v", err)
	default:
	}
	near.wake()
	returns("it was woken")
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	quiet("what was asked for before it was woken is not any more")
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
	other, _ := endpoints(t)
	go func() { waited <- other.wait(false) }()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err == nil {
		t.Error("a closed endpoint waits no more, without an error")
	}
	if _, err := other.Write([]byte("x")); err == nil {
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

func TestOneGoroutineReadsAndWritesWhereCoresAreFewerThanTwoForAProcess(t *testing.T) {
	before := SetCores(6)
	t.Cleanup(func() { SetCores(before) })
	n := &Node{}
	for near := range 4 {
		n.near.Store(int32(near))
		if n.crowded() != (near > 2) {
			t.Errorf("with %d connections to processes of this machine, which has 6 cores: crowded %v", near, n.crowded())
		}
	}
}
