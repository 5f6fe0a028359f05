package transport

import (
	"cmp"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endpoint is a socket that Go's poller does not know. That one wakes a thread for whatever comes
// to the sockets it knows, also while a goroutine reads from them, and the thread takes the core
// from it for every piece. An endpoint has a poller of its own, which says something only once it
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
			e.events = unix.EPOLLONESHOT // what was asked for is not any more
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
