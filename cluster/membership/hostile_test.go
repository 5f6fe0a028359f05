package membership

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// recorder is a socket that keeps what it has received.
type recorder struct {
	net.PacketConn
	mu       sync.Mutex
	received [][]byte
}

func (r *recorder) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := r.PacketConn.ReadFrom(b)
	if err == nil {
		r.mu.Lock()
		r.received = append(r.received, bytes.Clone(b[:n]))
		r.mu.Unlock()
	}
	return n, from, err
}

func (r *recorder) packets() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.received
}

// deadly is memberlist's message that a node is dead, in plain text.
func deadly(label, node string) []byte {
	const deadMessage = 5
	b := append([]byte{labelMark, byte(len(label))}, label...)
	b = append(b, deadMessage, 0x83) // a map of three
	for _, s := range []string{"Incarnation", "Node", node, "From", "z"} {
		b = append(append(b, 0xa0|byte(len(s))), s...)
		if s == "Incarnation" {
			b = append(b, 0xce, 0, 0, 0xff, 0xff)
		}
	}
	return b
}

// recordedStart starts a node whose packets go through the recorder that is returned.
func recordedStart(t *testing.T, name string, s spec) (*node, *recorder) {
	t.Helper()
	r := &recorder{}
	s.listen = func(a netip.AddrPort) (net.PacketConn, error) {
		conn, err := listen(a)
		r.PacketConn = conn
		return r, err
	}
	return mustStart(t, name, s), r
}

// attacksOfAKind is how many packets of each kind of attack are sent.
const attacksOfAKind = 50

type attack struct {
	packet func(i int) []byte
	want   Refusals
}

// attacks returns kinds of packets that a stranger may send, some made from genuine ones.
func attacks(genuine [][]byte) map[string]attack {
	const each = attacksOfAKind
	random := rand.New(rand.NewChaCha8([32]byte{1}))
	noise := func(prefix []byte, n int) []byte {
		p := append(bytes.Clone(prefix), make([]byte, n)...)
		for i := len(prefix); i < len(p); i++ {
			p[i] = byte(random.Uint32())
		}
		return p
	}
	header := append([]byte{labelMark, 4}, "test"...)
	return map[string]attack{
		"unencrypted": {func(int) []byte { return deadly("test", "b") }, Refusals{Foreign: each}},
		"other label": {func(int) []byte { return deadly("rest", "b") }, Refusals{Foreign: each}},
		"empty":       {func(int) []byte { return nil }, Refusals{Foreign: each}},
		"random":      {func(i int) []byte { return noise(nil, 1+28*i) }, Refusals{Foreign: each}},
		"random with the label": {func(i int) []byte { return noise(append(header, sealVersion), 28*i) },
			Refusals{Foreign: each}},
		"changed": {func(i int) []byte {
			p := bytes.Clone(genuine[i%10])
			p[random.IntN(len(p))] ^= 1 << random.IntN(8)
			return p
		}, Refusals{Foreign: each}},
		"cut short": {func(i int) []byte {
			p := genuine[i%10]
			return p[:random.IntN(len(p))]
		}, Refusals{Foreign: each}},
		"played again": {func(i int) []byte { return genuine[i%10] }, Refusals{Replayed: each}},
		"oversized":    {func(i int) []byte { return noise(header, maxPacket+1+1000*i) }, Refusals{Oversized: each}},
	}
}

func TestPacketsOfStrangersAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	a, record := recordedStart(t, "a", spec{})
	b := mustStart(t, "b", spec{seeds: []string{a.address}})
	a.await(Joined, "b")
	b.await(Joined, "a")
	eventually(t, "packets to record", func() bool { return len(record.packets()) >= 10 })
	genuine := record.packets()[:10]

	stranger, err := net.Dial("udp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	for name, attack := range attacks(genuine) {
		before := a.Refused()
		for i := range attacksOfAKind {
			if _, err := stranger.Write(attack.packet(i)); err != nil {
				t.Fatal(err)
			}
		}
		got := func() Refusals {
			r := a.Refused()
			r.Foreign -= before.Foreign
			r.Replayed -= before.Replayed
			r.Oversized -= before.Oversized
			return r
		}
		eventually(t, name+": all are counted", func() bool { return got() == attack.want })
	}
	// Had a packet been believed, there would have been news before this.
	if err := b.Leave(context.Background()); err != nil {
		t.Fatal(err)
	}
	a.await(Left, "b")
	if len(a.events) > 0 || a.View().Number != 3 { // itself, b, b's leave
		t.Errorf("a was disturbed, its view is %+v", a.View())
	}
}

// What the attack of TestPacketsOfStrangersAreRefusedAndCounted would do if it were let in.
func TestUnencryptedPacketsCountWhereThereIsNoKey(t *testing.T) {
	t.Parallel()
	open := func(c *Config) { c.Key, c.Insecure = nil, true }
	a := mustStart(t, "a", spec{change: open})
	b := mustStart(t, "b", spec{change: open, seeds: []string{a.address}})
	a.await(Joined, "b")
	b.await(Joined, "a")
	stranger, err := net.Dial("udp", a.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Close() }()
	if _, err := stranger.Write(deadly("test", "b")); err != nil {
		t.Fatal(err)
	}
	// a calls b, which objects: its incarnation in memberlist is beyond the packet's.
	eventually(t, "the packet is believed, and then b",
		func() bool { return a.list.NumMembers() == 2 && doubtsSoFar(a) == 1 })
	if len(a.events) > 0 {
		t.Errorf("a heard of %+v, though b answered", a.next())
	}
}

func TestOldestPacketsAreForgottenFirst(t *testing.T) {
	var h history
	nonce := func(i int) (n [nonceSize]byte) {
		binary.BigEndian.PutUint64(n[:], uint64(i))
		return n
	}
	for i := range 4 * maxNonces {
		if !h.first(nonce(i)) {
			t.Fatalf("packet %d is taken for an old one", i)
		}
		if back := max(0, i-maxNonces); h.first(nonce(back)) {
			t.Fatalf("packet %d is taken for a new one after %d", back, i)
		}
		if n := len(h.recent) + len(h.older); n > 2*maxNonces {
			t.Fatalf("%d are remembered", n)
		}
	}
	if !h.first(nonce(0)) {
		t.Error("nothing is forgotten")
	}
}

// Whatever comes in, a node with a key believes none of it, and one without survives it.
func FuzzPackets(f *testing.F) {
	sealed, err := newGate(testKey, "test")
	if err != nil {
		f.Fatal(err)
	}
	w := &wires{}
	n := mustStart(f, "a", spec{wires: w, change: func(c *Config) { c.Key, c.Insecure = nil, true }})
	w.split(1, n.address)
	for _, p := range [][]byte{nil, {labelMark}, {labelMark, 4}, deadly("test", "a"), deadly("test", "b"),
		bytes.Repeat([]byte{0xff}, maxPacket), bytes.Repeat([]byte{labelMark, 4, 't', 'e', 's', 't'}, 9)} {
		f.Add(p)
		f.Add(append([]byte("\xf4\x04test"), p...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if sealed.admits(b) {
			t.Errorf("%x was believed", b)
		}
		packet := &memberlist.Packet{Buf: append([]byte("\xf4\x04test"), b...),
			From: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Timestamp: time.Now()}
		n.transport.arrived <- packet
		if n.View().Members[0].Name != "a" {
			t.Errorf("%x: the view is %v", b, n.View())
		}
	})
}

// However long the label and the metadata are, members let in each other's packets.
func TestPacketsOfMembersAreLetIn(t *testing.T) {
	t.Parallel()
	for _, label := range []string{"", strings.Repeat("l", maxLabel)} {
		change := func(c *Config) {
			c.Label = label
			c.Meta.Labels = map[string]string{"a": strings.Repeat("x", 200), "b": strings.Repeat("y", 200)}
		}
		a, record := recordedStart(t, "a", spec{change: change})
		var others []*node
		for _, name := range []string{"b", "c", "d", "e"} {
			others = append(others, mustStart(t, name, spec{seeds: []string{a.address}, change: change}))
		}
		a.awaitAll(Joined, "b", "c", "d", "e")
		eventually(t, "packets come in", func() bool { return len(record.packets()) >= 20 })
		if got := a.Refused(); got != (Refusals{}) {
			t.Errorf("label %q: a refused %+v", label, got)
		}
		longest := 0
		for _, p := range record.packets() {
			longest = max(longest, len(p))
		}
		t.Logf("label %q: the longest packet has %d bytes", label, longest)
		for _, n := range others {
			n.crash()
		}
		a.crash()
	}
}
