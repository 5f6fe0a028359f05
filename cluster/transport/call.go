package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/protocol"
)

// Two processes may call each other at the same time. Which of the calls becomes the
// connection is decided by who is called, before any frame is sent: who itself calls, and
// has the smaller name, refuses. What is refused was nobody's connection, so
// nothing is lost.

// want sees to it that there will be a connection. broken says that there was one until
// now: then a peer at whose address nobody listens is down at once.
func (p *peer) want(broken bool) {
	if p.dialing || p.removed || p.conn != nil || p.address == "" || p.node.stop.Err() != nil {
		return
	}
	p.dialing = true
	if !broken {
		p.heard = time.Now()
	}
	p.node.work.Go(func() { p.dial(broken) })
}

// firstWait is the pause after the first call in vain; it doubles up to Limits.Backoff.
const firstWait = 10 * time.Millisecond

// dial calls until there is a connection or the peer is down.
func (p *peer) dial(broken bool) {
	p.follow()
	for wait := firstWait; ; wait = min(2*wait, p.node.config.Limits.Backoff) {
		if p.call(broken) {
			return
		}
		// Half of it by chance, so that two processes do not refuse each other in step.
		p.node.pause(wait/2 + rand.N(wait/2+1))
	}
}

// pause waits, until the node closes at most.
func (n *Node) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.stop.Done():
	}
}

// call calls once. It reports true if no other call is to follow.
func (p *peer) call(broken bool) (over bool) {
	p.mu.Lock()
	if over := p.settled(); over || p.accepting > 0 {
		p.mu.Unlock()
		return over
	}
	ctx, cancel := context.WithTimeout(p.node.stop, p.node.config.Limits.Handshake)
	defer cancel()
	p.calling = cancel
	hello := p.node.greeting(p)
	hello.attempt = p.node.attempts.Add(1)
	address := p.address
	p.mu.Unlock()

	s, in, about, welcome, err := p.node.hello(ctx, address, &hello)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.calling = nil
	if err == nil && !p.settled() && p.accepting == 0 {
		switch {
		case about.Incarnation < p.about.Incarnation:
			err = errors.New("an earlier incarnation answers")
		case hello.known != p.about.Incarnation || hello.taken != p.got:
			err = errors.New("another connection came and went meanwhile")
		default:
			p.meet(about, &welcome, false)
			err = p.install(s, in, true)
			if err == nil {
				p.dialing = false
				return true
			}
		}
	}
	if s != nil {
		s.drop()
	}
	switch {
	case errors.Is(err, refusals[refusedStale]), errors.As(err, new(*protocol.Error)):
		p.down(fmt.Errorf("%w: %w", ErrRefused, err))
	case broken && errors.Is(err, syscall.ECONNREFUSED) && p.conn == nil && p.accepting == 0:
		p.down(fmt.Errorf("%w: %w", ErrRefused, err))
	}
	return p.settled()
}

// settled reports whether calling is over, and takes note if it is.
func (p *peer) settled() bool {
	over := p.conn != nil || p.removed || p.state == Down || p.node.stop.Err() != nil || p.node.closing.Load() &&
		!p.unsent()
	if over {
		p.dialing = false
	}
	return over
}

// greeting is what this node says to a peer.
func (n *Node) greeting(p *peer) greeting {
	return greeting{
		incarnation: n.config.Incarnation, serial: p.serial, known: p.about.Incarnation, taken: p.got,
		refused: p.refusals, name: n.config.Name, target: p.name, address: n.config.Advertise,
		spoken: n.config.Protocol,
	}
}

// hello calls an address, and returns the connection, what reads from it and who welcomes.
func (n *Node) hello(
	ctx context.Context, address string, g *greeting,
) (s *socket, in *bufio.Reader, about Peer, welcome greeting, err error) {
	id := n.identity.Load()
	if err = mayBePlain(id, address); err != nil { // the peer itself may have said it
		return nil, nil, about, welcome, err
	}
	s, err = connect(ctx, id, address, identity.Actors)
	if err != nil {
		return nil, nil, about, welcome, err
	}
	interrupt := s.endWith(ctx)
	defer func() {
		if !interrupt() && err == nil {
			err = context.Cause(ctx)
		}
	}()
	in = bufio.NewReaderSize(s, readAhead)
	o := n.offer(s, g)
	if err = writeGreeting(s, helloRecord, g.append(nil)); err == nil {
		welcome, about, err = s.hear(in, welcomeRecord, g.spoken)
	}
	if o != nil {
		s.shared = o.end(err == nil && welcome.memory == g.memory)
	}
	var other *protocol.Error
	switch {
	case errors.As(err, &other):
		err = &protocol.Error{Name: g.name, Range: g.spoken, Others: other.Range, Whom: "process " + g.target}
	case err == nil && about.Name != g.target:
		err = refusals[refusedTarget]
	}
	return s, in, about, welcome, err
}

// inside reports whether both ends of a connection are on this machine.
func inside(c *net.TCPConn) bool {
	near, ok := c.LocalAddr().(*net.TCPAddr)
	far, known := c.RemoteAddr().(*net.TCPAddr)
	return ok && known && (near.IP.Equal(far.IP) || far.IP.IsLoopback())
}

// offer offers memory to who is called; nil if that is not on this machine, or there is none.
func (n *Node) offer(s *socket, g *greeting) *offer {
	if n.config.SocketsOnly || !inside(s.tcp) {
		return nil
	}
	o, err := newOffer(s)
	if err != nil {
		return nil
	}
	g.ends, g.memory = ends(s.tcp.LocalAddr(), s.tcp.RemoteAddr()), o.name
	return o
}

// join takes the memory that a caller offers. The connection must be direct: what stands between
// two processes of a machine, as a proxy does, is there for a reason.
func (n *Node) join(s *socket, hello *greeting) {
	if n.config.SocketsOnly || hello.memory == "" || !inside(s.tcp) ||
		hello.ends != ends(s.tcp.RemoteAddr(), s.tcp.LocalAddr()) {
		return
	}
	// The caller waits for as long as a handshake may take: it can still have a socket.
	ctx, cancel := context.WithTimeout(n.stop, n.config.Limits.Handshake/4)
	defer cancel()
	if m, err := take(ctx, hello.memory, s); err == nil {
		s.shared = m
	}
}

// ends are both ends of a connection, that of its caller first.
func ends(caller, called net.Addr) string { return caller.String() + " " + called.String() }

// endWith ends what waits for the socket when ctx ends. The function that it returns prevents that,
// and reports whether it could.
func (s *socket) endWith(ctx context.Context) (prevent func() bool) {
	return context.AfterFunc(ctx, func() {
		s.tcp.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // the call fails in any case
	})
}

// hear reads a greeting of a kind for a node that speaks the versions own, and returns it with the
// peer that sent it. The greeting must agree with the peer's certificate.
func (s *socket) hear(in *bufio.Reader, kind byte, own protocol.Range) (g greeting, about Peer, err error) {
	got, body, err := readGreeting(in)
	switch {
	case err != nil:
	case got == refusalRecord:
		err = refusal(body, own)
	case got != kind:
		err = bad("record of kind %d instead of kind %d", got, kind)
	default:
		g, err = getGreeting(body, own)
	}
	if err == nil {
		about, err = s.other()
	}
	if err == nil && s.sealed != nil && about.Name != g.name {
		err = bad("the certificate of %s says %s", g.name, about.Name)
	}
	about.Name, about.Incarnation = g.name, g.incarnation
	return g, about, err
}

// other is whom the certificate of the other side names; without TLS some node.
func (s *socket) other() (Peer, error) {
	if s.sealed == nil {
		return Peer{Role: identity.Node}, nil
	}
	name, role, err := identity.Peer(s.state)
	return Peer{Name: name, Role: role}, err
}

// maxProtocol is the length of the longest name of a protocol, as in ALPN.
const maxProtocol = 255

// connect makes a connection for a protocol.
func connect(ctx context.Context, id *identity.Identity, address, protocol string) (*socket, error) {
	if len(protocol) > maxProtocol {
		return nil, fmt.Errorf("protocol of %d bytes, accepted are %d", len(protocol), maxProtocol)
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := newSocket(raw.(*net.TCPConn))
	if id == nil {
		_, err = s.Write(append([]byte{byte(len(protocol))}, protocol...))
	} else {
		err = s.secure(ctx, tls.Client(s.sealing(), id.ClientTLS(protocol)))
	}
	if err != nil {
		s.tcp.Close() //nolint:errcheck // it is of no use
		return nil, err
	}
	return s, nil
}

// sealing is what TLS goes on top of.
func (s *socket) sealing() *sealed {
	s.sealed = &sealed{Conn: s.Conn, in: bufio.NewReaderSize(s.Conn, sealedAhead)}
	return s.sealed
}

func (s *socket) secure(ctx context.Context, c *tls.Conn) error {
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	s.Conn, s.state = c, c.ConnectionState()
	return nil
}

func writeGreeting(w io.Writer, kind byte, body []byte) error {
	b := make([]byte, recordHeader, recordHeader+len(body))
	putRecord(b, kind, len(body))
	_, err := w.Write(append(b, body...))
	return err
}

func readGreeting(in *bufio.Reader) (kind byte, body []byte, err error) {
	header, err := in.Peek(recordHeader)
	if err != nil {
		return 0, nil, cut(err, len(header) > 0)
	}
	kind, length, err := record(header)
	if err != nil {
		return 0, nil, err
	}
	if kind > refusalRecord {
		return 0, nil, bad("record of kind %d before the greeting", kind)
	}
	in.Discard(recordHeader) //nolint:errcheck // these bytes are in the buffer
	body = make([]byte, length)
	_, err = io.ReadFull(in, body)
	return kind, body, cut(err, true)
}

// readProtocol reads what takes the place of ALPN where there is no TLS.
func readProtocol(in io.Reader) (string, error) {
	var length [1]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return "", err
	}
	name := make([]byte, length[0])
	_, err := io.ReadFull(in, name)
	return string(name), err
}
