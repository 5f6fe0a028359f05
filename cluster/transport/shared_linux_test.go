package transport_test

import (
	"os"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/transport"
)

func TestMemoryIsSharedUnlessOneSideWantsSocketsOrSomethingStandsBetween(t *testing.T) {
	sockets := func(_ *node, c *transport.Config) { c.SocketsOnly = true }
	for name, x := range map[string]struct {
		first, second func(*node, *transport.Config)
		between, want bool
	}{
		"plain":               {want: true},
		"TLS":                 {first: withID(t, "a"), second: withID(t, "b"), want: true},
		"the caller does not": {first: sockets},
		"the called does not": {second: sockets},
		"a proxy":             {between: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := start(t, "a", 1, x.first), start(t, "b", 1, x.second)
			address := b.Address()
			if x.between {
				address = newProxy(t, address).address()
			}
			a.connectTo(t, "b", address)
			a.send(t, "b", 0, a.pool.Get(1_000_000))
			until(t, "it has arrived", func() bool { return b.handled.Load() == 1 })
			if near, far := a.stats("b").Shared, b.stats("a").Shared; near != x.want || far != x.want {
				t.Errorf("shared as a says: %v, as b says: %v, want %v", near, far, x.want)
			}
		})
	}
}

func TestConnectionsLeaveNoMemoryAndNoDescriptorsBehind(t *testing.T) {
	held := func() (descriptors, maps int) {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		mapped, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return len(files), strings.Count(string(mapped), "memfd:gradwire")
	}
	once := func() (maps int) {
		a, b := start(t, "a", 1, nil), start(t, "b", 1, nil)
		a.connect(t, "b", b)
		a.send(t, "b", 0)
		until(t, "it has arrived", func() bool { return b.handled.Load() == 1 })
		_, maps = held()
		for _, n := range []*node{a, b} {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		return maps
	}
	once() // Go's poller takes some for good
	descriptors, _ := held()
	for range 3 {
		if maps := once(); maps != 2 {
			t.Errorf("memory is mapped %d times, want once for each side", maps)
		}
	}
	if after, maps := held(); after > descriptors || maps != 0 {
		t.Errorf("%d descriptors, %d before; %d mappings", after, descriptors, maps)
	}
}
