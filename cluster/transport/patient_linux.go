package transport

import (
	"io"
	"net"
	"runtime"
	"syscall"
	"time"
)

// spinner decides how a reader waits. Before it goes to sleep it looks for up to spin whether
// something comes, as long as that mostly happens: to wake a core that sleeps takes as long as an
// answer does. In between it gives way to the process's other goroutines. It does not yield the
// core to other threads: Linux takes that as giving up the thread's share, and lets it wait when it
// has work to do.
type spinner struct {
	score int // high where looking is worth it
	since int // reads that did not look
}

const (
	spin = 100 * time.Microsecond
	// bestScore is the score of a connection where looking is worth it. A look in vain costs vain;
	// at 0 only one read of probes looks.
	bestScore = 8
	vain      = 2
	probes    = 16
)

// found looks whether there is something until there is, or it is not worth it.
func (s *spinner) found(something func() bool) bool {
	if s.since++; s.score <= 0 && s.since <= probes {
		return false
	}
	s.since = 0
	for until := time.Now().Add(spin); time.Now().Before(until); {
		runtime.Gosched()
		if something() {
			s.score = min(s.score+1, bestScore)
			return true
		}
	}
	s.score = max(s.score-vain, 0)
	return false
}

// patient reads from a socket.
type patient struct {
	*net.TCPConn
	raw     syscall.RawConn
	spinner spinner
	do      func(fd uintptr) bool
	again   func() bool
	fd      uintptr
	to      []byte
	n       int
	err     error
	looked  bool // in this read
}

func newPatient(c *net.TCPConn, raw syscall.RawConn) *patient {
	p := &patient{TCPConn: c, raw: raw, spinner: spinner{score: bestScore}}
	p.do, p.again = p.read, p.try
	return p
}

// Read implements io.Reader for one goroutine at a time.
func (p *patient) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.to, p.n, p.err, p.looked = b, 0, nil, false
	err := p.raw.Read(p.do)
	p.to = nil
	switch {
	case err != nil:
		return 0, err
	case p.err != nil:
		return 0, p.err
	case p.n == 0:
		return 0, io.EOF
	}
	return p.n, nil
}

// read reports whether it is done; otherwise it is called again when there is something.
func (p *patient) read(fd uintptr) bool {
	p.fd = fd
	if p.try() {
		return true
	}
	if p.looked {
		return false
	}
	p.looked = true
	return p.spinner.found(p.again)
}

// try reports whether there was something to read, or an error.
func (p *patient) try() bool {
	for {
		n, err := syscall.Read(int(p.fd), p.to)
		switch err {
		case nil:
			p.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			p.err = err
		}
		return true
	}
}
