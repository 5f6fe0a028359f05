package transport

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// duplex is the writer of a connection without TLS whose reading goroutine writes as well, in
// turns, where the processes of this machine have fewer than two cores each: a second goroutine
// would take the core from another process's, and find what it copies in the other core's cache.
//
// The token goes to the goroutine that reads, unless a handler keeps that busy.
type duplex struct {
	*endpoint
	conn  *conn
	relay chan struct{} // holds the token for the goroutine that reads
	state atomic.Int32  // of that goroutine
	holds bool          // it has the token, which only itself knows
	ahead int           // bytes that it has written since it read as many
	late  *time.Timer   // relieves it
	due   atomic.Bool   // and is about to
}

var _ writer = (*duplex)(nil)

// newDuplex takes a connection over, which is left as it is if there is an error: it takes more
// descriptors.
func newDuplex(c *conn) (writer, error) {
	end, err := newEndpoint(c.socket.tcp)
	if err != nil {
		return nil, err
	}
	d := &duplex{endpoint: end, conn: c, relay: make(chan struct{}, 1)}
	d.state.Store(awake)
	return d, nil
}

func (d *duplex) descriptor() syscall.RawConn { return d.raw }

// takesLarge says that the first chunk of a large packet is written where the others are.
func (d *duplex) takesLarge() bool { return true }

// back reports whether the goroutine that reads writes again.
func (d *duplex) back() bool { return d.state.Load() != away }

// The states of the goroutine that reads.
const (
	away   int32 = iota // it does not write
	awake               // it looks whether there is something to write
	asleep              // it can be woken to do so
)

// lead is how far that goroutine's writing can be ahead of its reading before it begins another
// batch, as long as there is something to read. If both sides wrote first, what has arrived would
// wait until it has left every cache.
const lead = chunk

// handling is how long handlers can keep what that goroutine has begun from being written.
const handling = time.Millisecond

// pass gives the token to the goroutine that is to write what is left.
func (d *duplex) pass() {
	d.relay <- struct{}{}
	switch d.state.Load() {
	case awake:
	case asleep:
		d.wake()
	default:
		d.relieve()
	}
}

// relieve gives a token that waits for the goroutine that reads to the one that only writes.
func (d *duplex) relieve() {
	select {
	case <-d.relay:
		d.conn.handover <- struct{}{}
	default:
	}
}

// The other methods are for the goroutine that reads.

// sleep waits until there is something to read, or to write.
func (d *duplex) sleep() error {
	defer d.state.Store(awake)
	d.state.Store(asleep) // before the look at the relay: whoever passes the token on afterwards wakes this goroutine
	if len(d.relay) > 0 {
		return nil
	}
	return d.wait(d.holds)
}

// depart precedes a handler, which can take its time, or wait for what is to be written.
func (d *duplex) depart() {
	d.leave()
	if len(d.relay) == 0 || d.due.Swap(true) { // the timer runs since an earlier handler
		return
	}
	if d.late == nil {
		d.late = time.AfterFunc(handling, func() {
			d.due.Store(false)
			d.relieve()
		})
	} else {
		d.late.Reset(handling)
	}
}

// comeBack follows a handler.
func (d *duplex) comeBack() {
	d.state.Store(awake)
}

// leave puts the token, if it has it, where it can be taken from.
func (d *duplex) leave() {
	d.state.Store(away)
	if d.holds {
		d.holds = false
		d.relay <- struct{}{}
	}
}

// retire leaves all writing to the other goroutine for good.
func (d *duplex) retire() {
	d.leave()
	d.relieve()
}

// share writes what the socket takes of a batch of what is due, if the token is here or is passed
// on to here, and returns its bytes: none if nothing is due, or there is no room.
func (d *duplex) share() (n int, err error) {
	if !d.holds {
		select {
		case <-d.relay:
			d.holds = true
		default:
			return 0, nil
		}
		if d.due.Swap(false) {
			d.late.Stop()
		}
	}
	for wrote := false; ; wrote = true {
		if len(d.conn.rest) == 0 {
			more, err := d.conn.next()
			if d.holds = more || err != nil; !more || err != nil {
				return n, err
			}
		}
		if wrote {
			return n, nil
		}
		n, err = d.conn.gather.write(d.conn.rest)
		if d.conn.advance(n); err != nil {
			return n, err
		}
	}
}

// exchange reads with try, and writes what is due, until something was read; it reports false if
// there is nothing to do.
func (d *duplex) exchange(try func() bool) (bool, error) {
	for {
		wrote := 0
		if d.ahead < lead {
			var err error
			if wrote, err = d.share(); err != nil {
				return false, err
			}
			d.ahead += wrote
		}
		if try() {
			return true, nil
		}
		if wrote == 0 && d.ahead < lead {
			return false, nil
		}
		d.ahead = 0 // nothing waits to be read
	}
}

// endpoint is a socket that Go's poller does not know. That one wakes a thread for whatever comes
// to the sockets it knows, also while a goroutine reads from them, and the thread takes the core
// from it for every piece. An endpoint has its own poller, which says something only once it
// is asked, and which Go's poller knows.
type endpoint struct {
	socket *os.File
	raw    syscall.RawConn // of the socket, whose functions always report that they are done
	poller *os.File        // of epoll(7)
	asked  syscall.RawConn // of the poller
	do     func(poller uintptr) bool
	fd     int
	events uint32 // to ask for; 0 if it has been done
	said   [1]unix.EpollEvent
	err    error
}

// newEndpoint takes a connection over, which is left as it is if there is an error.
func newEndpoint(c *net.TCPConn) (*endpoint, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := &endpoint{}
	e.do = e.ask
	if gone := raw.Control(func(fd uintptr) { err = e.open(fd) }); gone != nil {
		return nil, gone
	}
	if err != nil {
		e.socket.Close() //nolint:errcheck // there is another error, and perhaps nothing to close
		e.poller.Close() //nolint:errcheck // as well
		return nil, err
	}
	c.Close() //nolint:errcheck // the socket has another descriptor
	return e, nil
}

func (e *endpoint) open(connection uintptr) (err error) {
	if e.fd, err = unix.FcntlInt(connection, unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	// NewFile tells Go's poller of files that do not block.
	blocks := unix.SetNonblock(e.fd, false)
	e.socket = os.NewFile(uintptr(e.fd), "tcp")
	if err = errors.Join(blocks, unix.SetNonblock(e.fd, true)); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	poller, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	err = unix.SetNonblock(poller, true)
	e.poller = os.NewFile(uintptr(poller), "epoll")
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	if err = unix.EpollCtl(poller, unix.EPOLL_CTL_ADD, e.fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	if err = e.poller.SetReadDeadline(time.Time{}); err != nil { // it fails if Go's poller does not know it
		return err
	}
	if e.raw, err = e.socket.SyscallConn(); err != nil {
		return err
	}
	e.asked, err = e.poller.SyscallConn()
	return err
}

// wait returns when there is something to read, or room to write if that is asked for; when wake
// was called; or, with an error, when the endpoint is closed.
func (e *endpoint) wait(room bool) error {
	e.events = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT
	if room {
		e.events |= unix.EPOLLOUT
	}
	err := e.asked.Read(e.do)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if err = e.poller.SetReadDeadline(time.Time{}); err == nil {
			e.events = unix.EPOLLONESHOT // what was asked for before is withdrawn
			err = e.asked.Control(func(poller uintptr) { e.ask(poller) })
		}
	}
	return cmp.Or(err, e.err)
}

// ask reports whether the poller says something.
func (e *endpoint) ask(poller uintptr) bool {
	if e.events != 0 {
		e.err = os.NewSyscallError("epoll_ctl",
			unix.EpollCtl(int(poller), unix.EPOLL_CTL_MOD, e.fd, &unix.EpollEvent{Events: e.events}))
		e.events = 0
	}
	n, err := unix.EpollWait(int(poller), e.said[:], 0)
	if err != nil && !errors.Is(err, unix.EINTR) {
		e.err = os.NewSyscallError("epoll_wait", err)
	}
	return n > 0 || e.err != nil
}

// wake lets wait return, the next time if nobody waits now. Any goroutine may call it.
func (e *endpoint) wake() {
	e.poller.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // where it is closed nobody waits
}

// Write waits for room, until the endpoint is closed.
func (e *endpoint) Write(b []byte) (written int, err error) {
	for written < len(b) {
		n, failed := 0, error(nil)
		err = e.raw.Write(func(fd uintptr) bool {
			if n, failed = unix.Write(int(fd), b[written:]); errors.Is(failed, unix.EAGAIN) {
				n = 0
				_, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
			}
			return true
		})
		written += max(n, 0)
		if err == nil && !errors.Is(failed, unix.EINTR) {
			err = os.NewSyscallError("write", failed)
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// CloseWrite ends what is written.
func (e *endpoint) CloseWrite() error { return e.shutdown(unix.SHUT_WR) }

// Close ends both directions, and what waits for them.
func (e *endpoint) Close() error {
	return errors.Join(e.shutdown(unix.SHUT_RDWR), e.socket.Close(), e.poller.Close())
}

func (e *endpoint) shutdown(how int) error {
	var err error
	gone := e.raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), how) })
	return cmp.Or(gone, os.NewSyscallError("shutdown", err))
}
