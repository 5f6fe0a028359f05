package transport_test

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between a caller and a node, and does to their connections what networks do.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	moving   *sync.Cond
	to       string // empty turns callers away
	stalled  bool
	budget   int // bytes from the callers until their connection is cut; 0 for no end
	seen     []byte
	conns    []net.Conn
	work     sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	p.moving = sync.NewCond(&p.mu)
	p.work.Go(p.serve)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// set changes what the proxy does, under its lock.
func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.moving.Broadcast()
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.(*net.TCPConn).SetLinger(0) //nolint:errcheck // a test's
		c.Close()                     //nolint:errcheck // a test's
	}
	p.conns = nil
	p.moving.Broadcast()
}

// close ends all connections, takes no others and waits for what it has started.
func (p *proxy) close() {
	p.listener.Close() //nolint:errcheck // a test's
	p.set(func() { p.stalled = false })
	p.cut()
	p.work.Wait()
}

func (p *proxy) serve() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to, err := net.Conn(nil), error(nil)
		if p.to != "" {
			to, err = net.Dial("tcp", p.to)
		}
		if to == nil || err != nil {
			from.Close() //nolint:errcheck // a test's
			p.mu.Unlock()
			continue
		}
		p.conns = append(p.conns, from, to)
		budget := p.budget
		p.mu.Unlock()
		p.work.Go(func() { p.move(to, from, budget, true) })
		p.work.Go(func() { p.move(from, to, 0, false) })
	}
}

func (p *proxy) move(to, from net.Conn, budget int, forth bool) {
	defer to.Close()   //nolint:errcheck // a test's
	defer from.Close() //nolint:errcheck // a test's
	b := make([]byte, 64<<10)
	for moved := 0; ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		for p.stalled {
			p.moving.Wait()
		}
		if forth && len(p.seen) < 1<<20 {
			p.seen = append(p.seen, b[:n]...)
		}
		p.mu.Unlock()
		last := budget > 0 && moved+n >= budget
		if last {
			n = budget - moved
		}
		if _, err := to.Write(b[:n]); err != nil || last {
			return
		}
		moved += n
	}
}
