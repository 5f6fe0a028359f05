package membership

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport carries memberlist's packets over its own socket, and its streams over the process's
// connections.
type transport struct {
	packets   net.PacketConn
	gate      *gate
	streams   Streams
	advertise netip.AddrPort

	arrived  chan *memberlist.Packet
	accepted chan net.Conn
	closing  chan struct{}
	running  sync.WaitGroup

	deadline atomic.Int64 // of dials, in Unix nanoseconds; 0 is none
	crowded  atomic.Uint64

	mu       sync.Mutex
	closed   bool
	open     map[*stream]struct{}
	dialling error // of the latest attempt
}

var _ memberlist.Transport = (*transport)(nil)

func newTransport(packets net.PacketConn, gate *gate, streams Streams, advertise netip.AddrPort) *transport {
	return &transport{
		packets: packets, gate: gate, streams: streams, advertise: advertise,
		arrived:  make(chan *memberlist.Packet, waitingPackets),
		accepted: make(chan net.Conn),
		closing:  make(chan struct{}),
		open:     map[*stream]struct{}{},
	}
}

// begin lets packets and streams in. It comes after memberlist has entered this node into its own
// list: if it hears of an earlier life of the node before that, it takes that for its own, lists it
// as dead for good, and nobody ever lets the node in.
func (t *transport) begin() {
	t.running.Go(t.receive)
	t.running.Go(t.accept)
}

// listen opens the UDP side of a port.
func listen(address netip.AddrPort) (net.PacketConn, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, err
	}
	// The system may allow less; gossip survives what is lost.
	_ = c.SetReadBuffer(receiveBuffer)
	return c, nil
}

func (t *transport) receive() {
	b := make([]byte, maxPacket+1) // longer ones are cut off there
	for {
		n, from, err := t.packets.ReadFrom(b)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // of an earlier packet, on some systems
			select {
			case <-t.closing:
				return
			case <-time.After(time.Millisecond):
				continue
			}
		case !t.gate.admits(b[:n]):
			continue
		}
		p := &memberlist.Packet{Buf: append([]byte(nil), b[:n]...), From: from, Timestamp: time.Now()}
		select {
		case t.arrived <- p:
		case <-t.closing:
			return
		}
	}
}

func (t *transport) accept() {
	for {
		select {
		case <-t.closing:
			return
		case c, ok := <-t.streams.Conns():
			if !ok {
				return
			}
			s := t.track(c)
			if s == nil {
				continue
			}
			select {
			case t.accepted <- s:
			case <-t.closing:
				return
			}
		}
	}
}

// track takes over a connection, or closes it and returns nil if there are too many or
// the transport is closed.
func (t *transport) track(c net.Conn) *stream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.open) >= maxStreams {
		if !t.closed {
			t.crowded.Add(1)
		}
		_ = c.Close()
		return nil
	}
	s := &stream{Conn: c, of: t}
	t.open[s] = struct{}{}
	return s
}

// interrupt closes the streams that are open, which ends what waits for them.
func (t *transport) interrupt() {
	t.mu.Lock()
	open := make([]*stream, 0, len(t.open))
	for s := range t.open {
		open = append(open, s)
	}
	t.mu.Unlock()
	for _, s := range open {
		_ = s.Close()
	}
}

func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.advertise.Addr().AsSlice(), int(t.advertise.Port()), nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.arrived }

func (t *transport) StreamCh() <-chan net.Conn { return t.accepted }

func (t *transport) WriteTo(b []byte, address string) (time.Time, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return time.Time{}, err
	}
	// The error is left as it is: memberlist tells by its type whose fault it was.
	_, err = t.packets.WriteTo(b, net.UDPAddrFromAddrPort(to))
	return time.Now(), err
}

func (t *transport) DialTimeout(address string, timeout time.Duration) (net.Conn, error) {
	timeout = min(timeout, dialTimeout)
	if d := t.deadline.Load(); d != 0 {
		timeout = min(timeout, time.Until(time.Unix(0, d)))
	}
	var c net.Conn
	err := errors.New("too late")
	if timeout > 0 {
		c, err = t.streams.Dial(address, timeout)
	}
	t.mu.Lock()
	t.dialling = err
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if s := t.track(c); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%d streams are open already, or membership is shut down: %w", maxStreams, net.ErrClosed)
}

// dialled returns the error of the latest dial.
func (t *transport) dialled() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dialling
}

// Shutdown closes the socket and all streams. It returns when all goroutines have ended.
func (t *transport) Shutdown() error {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.mu.Unlock()
	if !first {
		return nil
	}
	close(t.closing)
	err := t.packets.Close()
	t.interrupt()
	t.running.Wait()
	return err
}

// stream is a connection that the transport closes at its end. A failed write closes it,
// because memberlist forgets a connection whose label it could not write.
type stream struct {
	net.Conn
	of   *transport
	once sync.Once
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil {
		_ = s.Close()
	}
	return n, err
}

func (s *stream) Close() error {
	err := net.ErrClosed
	s.once.Do(func() {
		err = s.Conn.Close()
		s.of.mu.Lock()
		delete(s.of.open, s)
		s.of.mu.Unlock()
	})
	return err
}
