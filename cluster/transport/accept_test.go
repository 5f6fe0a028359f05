package transport

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// listen starts a node named b on this machine, without TLS.
func listen(t testing.TB, limits Limits) *Node {
	t.Helper()
	n, err := Listen(Config{
		Name: "b", Incarnation: 1, Address: "127.0.0.1:0", Tensors: &protos.TensorPool{}, Limits: limits,
		Receive: func(_ Peer, f *wire.Frame) { f.Release() },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() }) //nolint:errcheck // what is lost at the end of a test is no fault
	return n
}

// whole returns what a caller of b says: the protocol, a greeting and records.
func whole(g greeting, records ...[]byte) []byte {
	var b bytes.Buffer
	b.WriteByte(byte(len(identity.Actors)))
	b.WriteString(identity.Actors)
	writeGreeting(&b, helloRecord, g.append(nil)) //nolint:errcheck // a buffer takes everything
	for _, r := range records {
		b.Write(r)
	}
	return b.Bytes()
}

func TestAddressOfAnotherMachineThatAPeerAdvertisesIsNotCalledWithoutTLS(t *testing.T) {
	n := listen(t, Limits{})
	_, _, _, _, err := n.hello(context.Background(), "192.0.2.1:1", &greeting{})
	if err == nil || !strings.Contains(err.Error(), "accepted are loopback addresses") {
		t.Errorf("error %v", err)
	}
}

// A caller may have been met while its name was being removed.
func TestRemovedPeerIsNeverConnected(t *testing.T) {
	n := listen(t, Limits{})
	p := n.enter("z")
	n.Remove("z")
	g := greeting{incarnation: 1, attempt: 1, name: "z", target: "b"}
	if refusal := p.accept(nil, nil, Peer{Name: "z", Incarnation: 1}, &g,
		func() bool { return true }); refusal != refusedDouble {
		t.Errorf("refusal %d, want %d", refusal, refusedDouble)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.address, p.state = n.Address(), Unknown
	p.want(false)
	if p.dialing || !p.settled() {
		t.Error("a peer that was removed is called")
	}
}

// FuzzAccept has a node called by whoever says hostile bytes: each caller hears the end of
// its connection, is counted once, and the node goes on.
func FuzzAccept(f *testing.F) {
	var beat [recordHeader + beatSize]byte
	putRecord(beat[:], beatRecord, beatSize)
	var last [recordHeader]byte
	putRecord(last[:], farewellRecord, 0)
	g := greeting{incarnation: 1, attempt: 1, name: "z", target: "b", spoken: protocol.Spoken()}
	f.Add(whole(g, written(f, example(), example(0, 5, 0)), beat[:], last[:]))
	f.Add(whole(g, written(f, example(3)), last[:], beat[:]))
	f.Add(whole(greeting{incarnation: 1, attempt: 1, name: "b", target: "b", spoken: protocol.Spoken()}))
	f.Add(whole(greeting{incarnation: 1, name: "z", target: "b", spoken: protocol.Spoken()}))
	f.Add([]byte("\x09gradwire1"))
	limits := Limits{Frame: 1 << 16, Handshake: 10 * time.Second, Heartbeat: time.Hour, Backoff: time.Millisecond}
	n := listen(f, limits)
	f.Fuzz(func(t *testing.T, b []byte) {
		before, _ := callers(n)
		c, err := net.Dial("tcp", n.Address())
		if err != nil {
			t.Fatal(err)
		}
		tcp := c.(*net.TCPConn)
		defer tcp.Close()                                //nolint:errcheck // a test's
		tcp.SetLinger(0)                                 //nolint:errcheck // frees the port at once
		tcp.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // a test's
		tcp.Write(b)                                     //nolint:errcheck // the node may have heard enough
		tcp.CloseWrite()                                 //nolint:errcheck // likewise
		if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("the connection was not ended")
		}
		for end := time.Now().Add(2 * time.Minute); ; runtime.Gosched() {
			calls, open := callers(n)
			if calls == before+1 && !open {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d callers were counted instead of 1, connected: %v", calls-before, open)
			}
		}
		for _, p := range n.all() {
			n.Remove(p.name)
		}
	})
}

// callers counts those that were refused and those that were not, and tells whether one of them
// is connected.
func callers(n *Node) (calls uint64, open bool) {
	r := n.Refused()
	calls = r.Strangers + r.Malformed + r.Double + r.Stale + r.Crowded + r.Other + r.Failed
	for _, p := range n.Peers() {
		calls += p.Connections
		open = open || p.Connected
	}
	return calls, open
}
