package transport

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// patient reads from a socket. Before it goes to sleep it looks for up to spin whether something
// comes, as long as that mostly happens: to wake a core that sleeps takes as long as an answer
// does. In between it gives way to the process's other goroutines. It does not yield the core to
// other threads: Linux takes that as giving up the thread's share, and lets it wait when it has
// work to do.
type patient struct {
	raw   syscall.RawConn
	both  *duplex // that writes in turns with this; nil if another goroutine does
	sleep bool    // nothing came, and nothing could be written
	do    func(fd uintptr) bool
	to    []byte
	n     int
	err   error
	looks bool // this read does, once
	score int  // high where looking is worth it
	since int  // reads that did not look
}

const (
	spin = 100 * time.Microsecond
	// bestScore is the score of a connection where looking is worth it. A look in vain costs vain;
	// at 0 only one read of probes looks.
	bestScore = 8
	vain      = 2
	probes    = 16
)

func newPatient(c *conn) *patient {
	p := &patient{raw: c.writer.descriptor(), score: bestScore}
	p.both, _ = c.writer.(*duplex)
	p.do = p.read
	return p
}

// Read implements io.Reader for one goroutine at a time.
func (p *patient) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.to, p.n, p.err = b, 0, nil
	p.since++
	p.looks = p.score > 0 || p.since > probes
	err := p.raw.Read(p.do)
	for err == nil && p.sleep {
		p.sleep = false
		if err = p.both.sleep(); err == nil {
			err = p.raw.Read(p.do)
		}
	}
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
	if p.once(fd) {
		return true
	}
	// What waits for room is written as soon as there is some.
	if p.looks && (p.both == nil || !p.both.holds) {
		p.looks, p.since = false, 0
		for until := time.Now().Add(spin); time.Now().Before(until); {
			runtime.Gosched()
			if p.once(fd) {
				p.score = min(p.score+1, bestScore)
				return true
			}
		}
		p.score = max(p.score-vain, 0)
	}
	p.sleep = p.both != nil
	return p.sleep
}

// once reports whether there was something to read now, or an error.
func (p *patient) once(fd uintptr) bool {
	if p.both == nil {
		return p.try(fd)
	}
	done, err := p.both.exchange(func() bool { return p.try(fd) })
	if err != nil {
		p.err = err
	}
	p.both.ahead = max(p.both.ahead-p.n, 0)
	return done || err != nil
}

// try reports whether there was something to read, or an error.
func (p *patient) try(fd uintptr) bool {
	for {
		n, err := syscall.Read(int(fd), p.to)
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
