package transport_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
)

// Each end of a connection knows the newest version that both speak.
func TestPeersSpeakTheNewestVersionOfBoth(t *testing.T) {
	agreed := map[string]*atomic.Uint32{"a": {}, "b": {}}
	speaking := func(name string, oldest, newest byte) *node {
		return start(t, name, 1, func(n *node, c *transport.Config) {
			c.Protocol = protocol.Range{Oldest: oldest, Newest: newest}
			c.Receive = func(p transport.Peer, f *wire.Frame) {
				agreed[name].Store(uint32(p.Protocol))
				n.receive(p, f)
			}
		})
	}
	a, b := speaking("a", 5, 8), speaking("b", 6, 7)
	a.connect(t, "b", b)
	until(t, "a is up", func() bool { return b.stats("a").State == transport.Up })
	for from, to := range map[*node]string{a: "b", b: "a"} {
		if err := from.Send(to, chunk(0)); err != nil {
			t.Fatal(err)
		}
		until(t, "a message at "+to, func() bool { return agreed[to].Load() != 0 })
		if got := agreed[to].Load(); got != 7 {
			t.Errorf("%s was told of protocol %d, want 7", to, got)
		}
	}
}

// A process calls another one that speaks other versions: it is told of both, and does not call again.
func TestPeerOfAnotherProtocolIsRefusedByName(t *testing.T) {
	for want, spoken := range map[string]protocol.Range{
		"process a speaks protocol 5, process b 6 to 7: upgrade a":                                            protocol.Of(5),
		"process a speaks protocol 8, process b 6 to 7: first upgrade the others to a build that speaks both": protocol.Of(8),
	} {
		down := make(chan error, 9)
		a := start(t, "a", 1, func(_ *node, c *transport.Config) {
			c.Protocol = spoken
			c.Changed = func(_ transport.Peer, s transport.State, reason error) {
				if s == transport.Down {
					down <- reason
				}
			}
		})
		b := start(t, "b", 1, func(_ *node, c *transport.Config) {
			c.Protocol = protocol.Range{Oldest: 6, Newest: 7}
		})
		a.connect(t, "b", b)
		var other *protocol.Error
		if err := <-down; !errors.As(err, &other) || other.Error() != want {
			t.Errorf("b is down: %v, want %s", err, want)
		}
	}
}
