package membership

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// eager is a socket at which a packet waits from the beginning.
type eager struct {
	net.PacketConn
	reads  atomic.Int32
	closed chan struct{}
}

func (e *eager) ReadFrom(b []byte) (int, net.Addr, error) {
	if e.reads.Add(1) > 1 {
		<-e.closed
		return 0, nil, net.ErrClosed
	}
	return copy(b, "news of an earlier life"), &net.UDPAddr{}, nil
}

func (e *eager) Close() error { close(e.closed); return nil }

// quiet has no streams.
type quiet struct{ Streams }

func (quiet) Conns() <-chan net.Conn { return nil }

// A node that hears of its earlier life before it is in its own list is never let in: memberlist
// lists it as dead.
func TestNothingIsTakenInBeforeTheNodeIsInItsOwnList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		socket := &eager{closed: make(chan struct{})}
		g, err := newGate(nil, "")
		if err != nil {
			t.Fatal(err)
		}
		tr := newTransport(socket, g, quiet{}, netip.AddrPort{})
		synctest.Wait() // until all goroutines wait, should it have started any
		if n := socket.reads.Load(); n > 0 {
			t.Errorf("%d packets were read before the transport has begun", n)
		}
		tr.begin()
		synctest.Wait()
		if n := len(tr.PacketCh()); n != 1 {
			t.Errorf("%d packets have arrived", n)
		}
		if err := tr.Shutdown(); err != nil {
			t.Error(err)
		}
	})
}
