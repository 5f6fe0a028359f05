package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/transport/lane"
	"github.com/gradwire/gradwire/cluster/transport/lobby"
)

// serve takes calls until the node closes.
func (n *Node) serve() {
	waiting := lobby.New(maxHandshakes)
	for {
		raw, err := n.listener.AcceptTCP()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // too many open files, or a caller that is gone again
			n.refused.accept.Add(1)
			n.pause(firstWait)
			continue
		}
		s := newSocket(raw)
		g := s.guest()
		if out := waiting.Enter(g); out != nil {
			n.refused.crowd.Add(1)
			out.Drop()
			if out == g {
				continue
			}
		}
		n.work.Go(func() {
			defer waiting.Leave(g)
			n.greet(s, func() bool { return waiting.Leave(g) })
		})
	}
}

// guest is the caller at the other end of a socket.
func (s *socket) guest() *lobby.Guest {
	at, _ := netip.ParseAddrPort(s.tcp.RemoteAddr().String())
	return &lobby.Guest{From: at.Addr(), Since: time.Now(),
		Silent: func() bool { return s.counted.bytes.Load() == 0 },
		Drop:   func() { s.tcp.Close() }} //nolint:errcheck // nothing was agreed on it
}

// greet finds out what a caller wants, and closes the connection unless somebody takes it, for
// which may must report true.
func (n *Node) greet(s *socket, may func() bool) {
	ctx, cancel := context.WithTimeout(n.stop, n.config.Limits.Handshake)
	defer cancel()
	interrupt := s.endWith(ctx)
	protocol, err := n.protocol(ctx, s)
	if err != nil {
		n.refused.stranger.Add(1)
	} else if take := n.config.Protocols[protocol]; take != nil {
		if from, err := s.other(); err == nil && interrupt() && may() {
			take(s, from)
			return
		}
	} else if n.meet(s, func() bool { return interrupt() && may() }) {
		return
	}
	interrupt()
	s.drop()
}

// protocol makes the connection secure and returns what is spoken on it.
func (n *Node) protocol(ctx context.Context, s *socket) (string, error) {
	if id := n.identity.Load(); id != nil {
		err := s.secure(ctx, tls.Server(s.sealing(), id.ServerTLS(n.protocols()...)))
		return s.state.NegotiatedProtocol, err
	}
	protocol, err := readProtocol(s)
	if err == nil && !slices.Contains(n.protocols(), protocol) {
		err = bad("protocol %.40q", protocol)
	}
	return protocol, err
}

// protocols are those that can be called for.
func (n *Node) protocols() []string {
	names := []string{identity.Actors}
	for name := range n.config.Protocols {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// meet reads a greeting and decides about it. It reports whether the socket is now a
// connection; ready must report true for that.
func (n *Node) meet(s *socket, ready func() bool) bool {
	in := bufio.NewReaderSize(s, readAhead)
	hello, about, err := s.hear(in, helloRecord, n.config.Protocol)
	if err != nil {
		n.refused.malformed.Add(1)
		if errors.As(err, new(*protocol.Error)) {
			writeGreeting(s, refusalRecord, refuseProtocol(n.config.Protocol)) //nolint:errcheck // it is a courtesy
		}
		return false
	}
	refusal := byte(refusedTarget)
	if hello.target == n.config.Name && hello.name != n.config.Name {
		refusal = refusedFull
		if p := n.enter(hello.name); p != nil {
			n.join(s, &hello)
			refusal = p.accept(s, in, about, &hello, ready)
		}
	}
	switch refusal {
	case 0:
		return true
	case refusedDouble:
		n.refused.double.Add(1)
	case refusedStale:
		n.refused.stale.Add(1)
	default:
		n.refused.other.Add(1)
	}
	writeGreeting(s, refusalRecord, []byte{refusal}) //nolint:errcheck // a caller that does not hear it calls again
	return false
}

// accept makes the socket the connection with its caller, or says why not.
func (p *peer) accept(s *socket, in *bufio.Reader, about Peer, hello *greeting, ready func() bool) (refusal byte) {
	p.follow()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepting++
	defer func() {
		p.accepting--
		if p.conn == nil && p.about.Incarnation != 0 && p.state != Down {
			p.want(false)
		}
	}()
	for {
		if refusal := p.judge(hello); refusal != 0 {
			return refusal
		}
		c := p.conn
		if c == nil {
			break
		}
		// The caller has given this one up. What has arrived on it is handled first.
		c.close(errReplaced)
		p.mu.Unlock()
		<-c.done
		p.mu.Lock()
	}
	if p.removed || p.node.closing.Load() {
		return refusedDouble
	}
	welcome := p.node.greeting(p)
	if hello.incarnation > p.about.Incarnation {
		welcome.taken, welcome.refused = lane.Counts{}, 0
	}
	if s.shared != nil {
		welcome.memory = hello.memory
	}
	p.meet(about, hello, true)
	p.attempt = hello.attempt
	// Under the lock, so that welcomes have the order of connections; the few bytes
	// find room in a socket to which nothing has been written.
	if err := writeGreeting(s, welcomeRecord, welcome.append(nil)); err != nil || !ready() {
		return refusedDouble
	}
	if p.calling != nil {
		p.calling()
	}
	if err := p.install(s, in, false); err != nil {
		return refusedDouble
	}
	return 0
}

var errReplaced = errors.New("the peer has called again")

// judge decides about a call.
func (p *peer) judge(hello *greeting) (refusal byte) {
	known := p.about.Incarnation
	switch {
	case hello.incarnation < known:
		return refusedStale
	case hello.incarnation > known:
		if known == 0 && p.calling != nil && p.node.config.Name < p.name {
			return refusedDouble
		}
		return 0
	case hello.attempt <= p.attempt:
		return refusedDouble // an older call, overtaken by a newer one
	case p.conn != nil && p.conn.mine && hello.serial < p.serial:
		return refusedDouble // it was made before its caller knew of this connection
	case p.conn == nil && p.calling != nil && p.node.config.Name < p.name:
		return refusedDouble // this side's own call goes before
	}
	return 0
}
