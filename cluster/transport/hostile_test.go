package transport_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
)

// dial returns a bare connection on which nothing has been said.
func dial(t *testing.T, n *node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // a test's
	return c
}

// ends waits until the other side has closed a connection.
func ends(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // a test's
	if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("the connection was not ended")
	}
}

func say(t *testing.T, c net.Conn, b []byte) {
	t.Helper()
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
}

// works checks that two nodes can still talk.
func works(t *testing.T, a, b *node) {
	t.Helper()
	a.connectTo(t, "b", b.Address())
	a.send(t, "b", 7, a.pool.Get(100))
	until(t, "b has it", func() bool { return a.stats("b").Delivered > 0 })
}

func withID(t *testing.T, name string) func(*node, *transport.Config) {
	return func(_ *node, c *transport.Config) { c.Identity = id(t, name) }
}

func TestStrangersAreTurnedAwayAndCounted(t *testing.T) {
	b := start(t, "b", 1, withID(t, "b"))
	c := dial(t, b)
	say(t, c, []byte("GET / HTTP/1.1\r\n\r\n"))
	ends(t, c)
	c = dial(t, b)
	say(t, c, make([]byte, 1000))
	ends(t, c)
	for _, config := range []*tls.Config{
		id(t, "foreign/a").ClientTLS(identity.Actors),
		id(t, "c").ClientTLS(identity.Gossip),
		{InsecureSkipVerify: true, NextProtos: []string{identity.Actors}},
	} {
		c := tls.Client(dial(t, b), config)
		c.Handshake() //nolint:errcheck // the node's count is what matters
		ends(t, c)
	}
	until(t, "all are counted", func() bool { return b.Refused().Strangers == 5 })
	works(t, start(t, "a", 1, withID(t, "a")), b)
}

func TestCallerOfAnotherNameThanItsCertificateIsRefused(t *testing.T) {
	b := start(t, "b", 1, withID(t, "b"))
	if _, err := transport.Listen(transport.Config{Name: "x", Identity: id(t, "a"), Incarnation: 1}); err == nil {
		t.Error("a node took a name that its certificate does not say")
	}
	c := tls.Client(dial(t, b), id(t, "a").ClientTLS(identity.Actors))
	say(t, c, hello("zoe", "b", 1, 1))
	ends(t, c)
	c = tls.Client(dial(t, b), id(t, "a").ClientTLS(identity.Actors))
	say(t, c, []byte("nonsense that is no hello of anybody"))
	ends(t, c)
	until(t, "both are counted", func() bool { return b.Refused().Malformed == 2 })
	works(t, start(t, "a", 1, withID(t, "a")), b)
}

// hello writes a greeting independently of the code under test.
func hello(name, target string, incarnation, attempt uint64) []byte {
	body := append([]byte("GWcn"), 5, 5)
	for _, v := range []uint64{incarnation, attempt, 0, 0, 0, 0, 0} {
		body = binary.LittleEndian.AppendUint64(body, v)
	}
	for _, s := range []string{name, target, "", "", ""} {
		body = append(binary.LittleEndian.AppendUint16(body, uint16(len(s))), s...)
	}
	return append(binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(body))), body...)
}

// enter opens a bare connection that b takes for node z's.
func enter(t *testing.T, b *node, attempt uint64) net.Conn {
	t.Helper()
	c := dial(t, b)
	say(t, c, append([]byte("\x0agradwire/1"), hello("z", "b", 5, attempt)...))
	var header [8]byte
	if _, err := io.ReadFull(c, header[:]); err != nil || header[0] != 2 {
		t.Fatalf("%v, %v: no welcome", header, err)
	}
	return c
}

func TestBadFramesEndTheConnectionAndAreCounted(t *testing.T) {
	record := func(kind byte, length uint32, body ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte{kind, 0, 0, 0}, length), body...)
	}
	beat := func(counts ...byte) []byte {
		body := make([]byte, 24)
		for i, n := range counts {
			body[8*i] = n
		}
		return body
	}
	frame, err := wire.AppendHead(nil, chunk(0))
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, "b", 1, nil)
	for i, bytes := range [][]byte{
		record(0, 0), record(99, 1, 1), {6, 1, 0, 0, 1, 0, 0, 0},
		record(6, 4, 1, 2, 3, 4),                                  // values of no frame
		record(6, 1<<31),                                          // longer than any frame
		record(4, 1<<30),                                          // longer than any head
		record(5, 20, make([]byte, 20)...),                        // no prefix
		record(1, 10, make([]byte, 10)...),                        // a second greeting
		record(7, 48, append(make([]byte, 24), 9)...),             // cut below
		record(7, 48, append(make([]byte, 24), beat(9)...)...),    // nine handled, none sent
		record(7, 48, append(make([]byte, 24), beat(0, 9)...)...), // nine urgent ones taken
		record(7, 48, append(make([]byte, 24), beat(0, 0, 9)...)...),
		append([]byte{5, 9, 0, 0, byte(len(frame)), 0, 0, 0}, frame...), // the same with a good frame
		append(record(5, 1<<29), "GW\x01\x01\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...),
	} {
		before := b.stats("z").BadFrames
		c := enter(t, b, uint64(i+1))
		say(t, c, bytes)
		if i == 8 { // a cut is no bad frame
			c.Close() //nolint:errcheck // a test's
			until(t, "the connection is gone", func() bool { return !b.stats("z").Connected })
			if b.stats("z").BadFrames != before {
				t.Error("a connection that was cut counts as a bad frame")
			}
			continue
		}
		ends(t, c)
		until(t, "it is counted", func() bool { return b.stats("z").BadFrames == before+1 })
	}
	if b.handled.Load() > 0 {
		t.Error("a bad frame was handled")
	}
	works(t, start(t, "a", 1, nil), b)
}

func TestReplayedBytesMakeNoConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		edit := func(name string) func(*node, *transport.Config) {
			return func(n *node, c *transport.Config) {
				if secure {
					c.Identity = id(t, name)
				}
				if name == "a" {
					mute(n, c)
				}
			}
		}
		b := start(t, "b", 1, edit("b"))
		p := newProxy(t, b.Address())
		a := start(t, "a", 1, edit("a"))
		a.connectTo(t, "b", p.address())
		a.send(t, "b", 1)
		until(t, "it is handled", func() bool { return b.handled.Load() == 1 })
		var seen []byte
		p.set(func() { seen = append(seen, p.seen...) })
		c := dial(t, b)
		say(t, c, seen)
		ends(t, c)
		until(t, "it is counted", func() bool {
			r := b.Refused()
			return secure && r.Strangers == 1 || !secure && r.Double == 1
		})
		a.send(t, "b", 2)
		until(t, "the true one goes on", func() bool { return a.stats("b").Delivered == 2 })
		same(t, b.got(), []uint64{1, 2})
		if s := a.stats("b"); s.Connections != 1 {
			t.Errorf("%+v", s)
		}
	}
}

func TestClientsReachTheirProtocolAloneAndAreKnownByTheirRole(t *testing.T) {
	b := start(t, "b", 1, func(_ *node, c *transport.Config) {
		c.Identity = id(t, "b")
		answer := func(c net.Conn, from transport.Peer) {
			fmt.Fprintf(c, "%s %s", from.Role, from.Name)
			c.Close() //nolint:errcheck // a test's
		}
		c.Protocols = map[string]func(net.Conn, transport.Peer){identity.Clients: answer, identity.Gossip: answer}
	})
	for _, test := range []struct{ name, protocol, want string }{
		{"c", identity.Clients, "client c"}, {"o", identity.Clients, "operator o"}, {"a", identity.Clients, "node a"},
		{"a", identity.Gossip, "node a"}, {"c", identity.Gossip, ""}, {"o", identity.Gossip, ""},
		{"c", identity.Actors, ""}, {"o", identity.Actors, ""},
	} {
		c, to, err := transport.Open(context.Background(), id(t, test.name), b.Address(), test.protocol)
		if err != nil || to.Name != "b" || to.Role != identity.Node {
			t.Fatalf("%s calls for %s: answered by %+v, %v", test.name, test.protocol, to, err)
		}
		said, err := io.ReadAll(c)
		c.Close() //nolint:errcheck // a test's
		if string(said) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s calls for %s: answer %q, %v", test.name, test.protocol, said, err)
		}
	}
	until(t, "the others are counted", func() bool { return b.Refused().Strangers == 4 })
	if _, _, err := transport.Open(context.Background(), id(t, "foreign/a"), b.Address(),
		identity.Clients); err == nil {
		t.Error("a caller accepted a node of another cluster")
	}
}

func TestOtherProtocolsShareThePort(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		b := start(t, "b", 1, func(n *node, c *transport.Config) {
			if second != nil {
				second(n, c)
			}
			c.Protocols = map[string]func(net.Conn,
				transport.Peer){identity.Gossip: func(c net.Conn, _ transport.Peer) {
				io.Copy(c, io.LimitReader(c, 5)) //nolint:errcheck // a test's
				c.Close()                        //nolint:errcheck // a test's
			}}
		})
		a := start(t, "a", 1, first)
		c, _, err := a.Open(context.Background(), b.Address(), identity.Gossip)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // a test's
		say(t, c, []byte("hello"))
		if echo, err := io.ReadAll(c); string(echo) != "hello" {
			t.Errorf("%q, %v", echo, err)
		}
		works(t, a, b)
	})
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	a := start(t, "a", 1, nil)
	for _, address := range []string{"192.0.2.1:1", "example.org:1", "nowhere"} {
		if err := a.Connect("b", address); err == nil {
			t.Errorf("connects to %s without TLS", address)
		}
		if _, _, err := a.Open(context.Background(), address, "x"); err == nil {
			t.Errorf("opens %s without TLS", address)
		}
		if _, _, err := transport.Open(context.Background(), nil, address, "x"); err == nil {
			t.Errorf("opens %s without a node and TLS", address)
		}
	}
	for _, name := range []string{"", "a", "x y", strings.Repeat("x", 65)} {
		if err := a.Connect(name, a.Address()); err == nil || !strings.Contains(err.Error(), "accepted") {
			t.Errorf("name %q: error %v", name, err)
		}
	}
	if err := a.Send("nobody", chunk(1)); !errors.Is(err, transport.ErrUnknown) {
		t.Errorf("error %v", err)
	}
	good := transport.Config{Name: "x", Incarnation: 1, Address: "127.0.0.1:0", Tensors: a.pool, Receive: a.receive}
	for _, edit := range []func(c *transport.Config){
		func(c *transport.Config) { c.Name = "" },
		func(c *transport.Config) { c.Incarnation = 0 },
		func(c *transport.Config) { c.Address = "0.0.0.0:0" },
		func(c *transport.Config) { c.Receive = nil },
		func(c *transport.Config) { c.Limits.Frame = math.MaxInt },
		func(c *transport.Config) { c.Limits.Drain = -1 },
	} {
		c := good
		edit(&c)
		if n, err := transport.Listen(c); err == nil {
			t.Errorf("%+v was accepted: %v", c, n.Close())
		}
	}
	large := chunk(0)
	large.Target = strings.Repeat("x", 2<<20)
	b := start(t, "b", 1, nil)
	a.connectTo(t, "b", b.Address())
	if err := a.Send("b", large); err == nil || !strings.Contains(err.Error(), "exceeds a limit") {
		t.Errorf("error %v", err)
	}
}

func TestFrameBeyondTheReceiversLimitEndsTheConnection(t *testing.T) {
	b := start(t, "b", 1, func(_ *node, c *transport.Config) { c.Limits.Frame = 1000 })
	a := start(t, "a", 1, nil)
	a.connectTo(t, "b", b.Address())
	a.send(t, "b", 0, a.pool.Get(251))
	until(t, "it is counted", func() bool { return b.stats("a").BadFrames == 1 })
	until(t, "there is another connection", func() bool { s := a.stats("b"); return s.Lost == 1 && s.Connected })
	a.send(t, "b", 1, a.pool.Get(250))
	until(t, "the next is handled", func() bool { return b.handled.Load() == 1 })
	until(t, "both are counted", func() bool { s := a.stats("b"); return s.Delivered == 1 && s.Lost == 1 })
}

func TestStreamAllocatesNoPayload(t *testing.T) {
	const floats, count = 250_000, 100
	a, b := start(t, "a", 1, nil), start(t, "b", 1, nil)
	a.connectTo(t, "b", b.Address())
	v := a.pool.Get(floats)
	send := func(n int) {
		for i := range n {
			a.send(t, "b", i, v.Retain())
		}
		until(t, "all is handled", func() bool { return a.stats("b").Delivered == a.stats("b").Sent })
	}
	send(20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	send(count)
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / count; each > 4*floats/20 {
		t.Errorf("%d bytes allocated for a message of %d", each, 4*floats)
	}
}
