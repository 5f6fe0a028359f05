package transport_test

import (
	"errors"
	"testing"

	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/transport"
)

// Two processes with different ranges of versions exchange messages if the ranges overlap.
func TestPeersWithOverlappingVersionsConnect(t *testing.T) {
	speaking := func(name string, oldest, newest byte) *node {
		return start(t, name, 1, func(_ *node, c *transport.Config) {
			c.Protocol = protocol.Range{Oldest: oldest, Newest: newest}
		})
	}
	a, b := speaking("a", 5, 8), speaking("b", 6, 7)
	a.connect(t, "b", b)
	until(t, "a is up", func() bool { return b.stats("a").State == transport.Up })
	for _, err := range []error{a.Send("b", chunk(0)), b.Send("a", chunk(0))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "a message at each", func() bool { return a.handled.Load() == 1 && b.handled.Load() == 1 })
}

// A process that calls a peer without a common version gets an error with both ranges, and counts
// the peer as down.
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
			t.Errorf("b is down because %v, want %s", err, want)
		}
	}
}
