package transport_test

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// mute is a node that calls but cannot be called, so that all its connections pass a proxy.
func mute(_ *node, c *transport.Config) { c.Address = "" }

// gated makes a node's handler wait until the gate is open.
func gated(gate chan struct{}) func(*node, *transport.Config) {
	return func(n *node, c *transport.Config) {
		c.Receive = func(p transport.Peer, f *wire.Frame) {
			<-gate
			n.receive(p, f)
		}
	}
}

func (n *node) connectTo(t *testing.T, name, address string) {
	t.Helper()
	if err := n.Connect(name, address); err != nil {
		t.Fatal(err)
	}
	until(t, name+" is up", func() bool { return n.stats(name).State == transport.Up })
}

func TestConnectionsCutInsideOfFramesLoseAndRepeatNothing(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		rounds := 40
		if testing.Short() {
			rounds = 10
		}
		b := start(t, "b", 1, second)
		p := newProxy(t, b.Address())
		random := rand.New(rand.NewPCG(1, 2))
		p.set(func() { p.budget = 100_000 })
		a := start(t, "a", 1, func(n *node, c *transport.Config) {
			if first != nil {
				first(n, c)
			}
			mute(n, c)
		})
		if err := a.Connect("b", p.address()); err != nil {
			t.Fatal(err)
		}
		sent := 0
		for round := 0; round < rounds || a.stats("b").Connections < 3; round++ {
			for range 20 {
				a.send(t, "b", sent, a.pool.Get(10_000))
				sent++
			}
			p.set(func() { p.budget = 50_000 + random.IntN(1_000_000) }) // a handshake and a frame at least
			until(t, "nothing waits", func() bool { return a.stats("b").Waiting == 0 })
		}
		p.set(func() { p.budget = 0 })
		until(t, "a connection stays", func() bool {
			s := a.stats("b")
			return s.Sent == s.Delivered && s.Connected && s.WaitingBytes == 0
		})
		same(t, b.got(), counting(sent, 0))
		s := a.stats("b")
		if s.Sent != uint64(sent) || s.Lost != 0 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
		if there := b.stats("a"); there.Received != s.Delivered {
			t.Errorf("%d delivered, the peer says %d", s.Delivered, there.Received)
		}
	})
}

func TestRestartedPeerGetsNothingOfItsPredecessor(t *testing.T) {
	first := start(t, "b", 1, nil)
	p := newProxy(t, first.Address())
	a := start(t, "a", 1, mute)
	a.connectTo(t, "b", p.address())
	a.send(t, "b", 0)
	until(t, "the first is handled", func() bool { return a.stats("b").Delivered == 1 })
	p.set(func() { p.to = "" })
	p.cut()
	until(t, "the connection is gone", func() bool { return !a.stats("b").Connected })
	for i := range 10 {
		a.send(t, "b", 100+i, a.pool.Get(1000))
	}
	second := start(t, "b", 2, nil)
	p.set(func() { p.to = second.Address() })
	until(t, "the second is up", func() bool { return a.stats("b").Peer.Incarnation == 2 })
	a.send(t, "b", 200)
	until(t, "the last is handled", func() bool { return a.stats("b").Delivered == 2 })
	same(t, first.got(), []uint64{0})
	same(t, second.got(), []uint64{200})
	if s := a.stats("b"); s.Lost != 10 || s.Sent != 12 || s.WaitingBytes != 0 {
		t.Errorf("%+v", s)
	}
	told := a.awaitStates(t, transport.Up, transport.Down, transport.Up)
	if told[1].peer.Incarnation != 1 || !errors.Is(told[1].reason, transport.ErrRestarted) ||
		told[2].peer.Incarnation != 2 {
		t.Errorf("told %+v", told)
	}
}

func TestEarlierIncarnationIsRefusedAndHearsOfIt(t *testing.T) {
	a := start(t, "a", 1, nil)
	now, old := start(t, "b", 7, nil), start(t, "b", 6, nil)
	now.connectTo(t, "a", a.Address())
	until(t, "a knows the present one", func() bool { return a.stats("b").Peer.Incarnation == 7 })
	if err := old.Connect("a", a.Address()); err != nil {
		t.Fatal(err)
	}
	until(t, "the old one gives up", func() bool { return old.stats("a").State == transport.Down })
	if s := a.stats("b"); s.Peer.Incarnation != 7 || !s.Connected || a.Refused().Stale == 0 {
		t.Errorf("%+v, %+v", s, a.Refused())
	}
	if err := old.Send("a", chunk(0)); !errors.Is(err, transport.ErrDown) {
		t.Errorf("error %v, want that the peer is down", err)
	}
}

func TestSlowReaderIsWaitedForWithinBounds(t *testing.T) {
	const floats, bound = 250_000, 8 << 20
	gate := make(chan struct{})
	b := start(t, "b", 1, gated(gate))
	a := start(t, "a", 1, func(_ *node, c *transport.Config) {
		c.Limits.QueueBytes, c.Limits.Patience = bound, 50*time.Millisecond
	})
	a.connectTo(t, "b", b.Address())
	v := a.pool.Get(floats)
	taken := 0
	for {
		err := a.Send("b", chunk(taken, v.Retain()))
		if err != nil {
			v.Release()
			if !errors.Is(err, transport.ErrQueueFull) {
				t.Fatal(err)
			}
			break
		}
		if taken++; taken > 200 {
			t.Fatal("the queue has no bound")
		}
		if s := a.stats("b"); s.WaitingBytes > bound {
			t.Fatalf("%d bytes wait, the bound is %d", s.WaitingBytes, bound)
		}
	}
	// A message without tensors is bulk as well; an urgent one still finds room.
	if err := a.Send("b", chunk(999)); !errors.Is(err, transport.ErrQueueFull) && err != nil {
		t.Fatal(err)
	}
	if s := b.stats("a"); s.State == transport.Down {
		t.Error("a peer at work counts as silent")
	}
	close(gate)
	s := a.stats("b")
	until(t, "all is delivered", func() bool { return a.stats("b").Delivered == s.Sent })
	until(t, "nothing is held", func() bool { return v.Sole() && a.stats("b").WaitingBytes == 0 })
	if s := a.stats("b"); s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	same(t, b.got()[:taken], counting(taken, 0))
}

func TestWaitingSenderGoesOnWhenThereIsRoom(t *testing.T) {
	gate := make(chan struct{})
	b := start(t, "b", 1, gated(gate))
	a := start(t, "a", 1, func(_ *node, c *transport.Config) { c.Limits.QueueBytes = 4 << 20 })
	a.connectTo(t, "b", b.Address())
	const senders, each = 8, 8
	var group sync.WaitGroup
	for s := range senders {
		group.Go(func() {
			for i := range each {
				if err := a.Send("b", chunk(s*1000+i, a.pool.Get(250_000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	until(t, "the queue is full", func() bool { return a.stats("b").WaitingBytes > 3<<20 })
	close(gate)
	group.Wait()
	until(t, "all is delivered", func() bool { return a.stats("b").Delivered == senders*each })
	next := map[uint64]uint64{}
	for _, i := range b.got() {
		if i%1000 != next[i/1000] {
			t.Fatalf("sender %d: message %d, want %d", i/1000, i%1000, next[i/1000])
		}
		next[i/1000]++
	}
}

func TestUrgentFramesOvertakeWhatIsLarge(t *testing.T) {
	floats := 25_000_000 // 100 MB
	if testing.Short() {
		floats = 5_000_000
	}
	gate, begun := make(chan struct{}), make(chan struct{}, 3)
	var mu sync.Mutex
	var order []string
	b := start(t, "b", 1, func(_ *node, c *transport.Config) {
		c.Receive = func(_ transport.Peer, f *wire.Frame) {
			begun <- struct{}{}
			<-gate
			mu.Lock()
			defer mu.Unlock()
			order = append(order, string(f.Head.ProtoReflect().Descriptor().Name()))
			for _, v := range f.Tensors {
				v.Release()
			}
		}
	})
	a := start(t, "a", 1, nil)
	a.connectTo(t, "b", b.Address())
	a.send(t, "b", 0)
	<-begun
	a.send(t, "b", 1, a.pool.Get(floats))
	if err := a.Send("b", &wire.Frame{Kind: wire.Control, Target: "b/actor",
		Head: &protos.Progress{Node: 1}}); err != nil {
		t.Fatal(err)
	}
	close(gate)
	until(t, "all is delivered", func() bool { return a.stats("b").Delivered == 3 })
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"Chunk", "Progress", "Chunk"}; !slices.Equal(order, want) {
		t.Errorf("handled %v, want %v", order, want)
	}
}

func TestSilentPeerIsSuspendedAndComesBack(t *testing.T) {
	b := start(t, "b", 1, nil)
	p := newProxy(t, b.Address())
	a := start(t, "a", 1, mute)
	a.connectTo(t, "b", p.address())
	until(t, "heartbeats come back", func() bool { return a.stats("b").RoundTrip > 0 })
	p.set(func() { p.stalled = true })
	a.send(t, "b", 0)
	until(t, "b is suspended", func() bool { return a.stats("b").State == transport.Suspended })
	a.send(t, "b", 1)
	p.set(func() { p.stalled = false })
	until(t, "b is up", func() bool { return a.stats("b").State == transport.Up })
	until(t, "all is delivered", func() bool { return a.stats("b").Delivered == 2 })
	if s := a.stats("b"); s.Connections != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	for _, got := range a.awaitStates(t, transport.Up, transport.Suspended, transport.Up) {
		if got.peer.Name != "b" {
			t.Errorf("told %+v, want the name b", got)
		}
	}
}

// Messages to an absent peer are kept, and reach it when it returns.
func TestAbsentPeerComesBackAndNothingIsLost(t *testing.T) {
	b := start(t, "b", 1, nil)
	p := newProxy(t, b.Address())
	a := start(t, "a", 1, func(n *node, c *transport.Config) {
		mute(n, c)
		c.Limits.Suspend, c.Limits.Absent, c.Limits.GiveUp = 60*time.Millisecond, 150*time.Millisecond, time.Hour
	})
	a.connectTo(t, "b", p.address())
	until(t, "heartbeats come back", func() bool { return a.stats("b").RoundTrip > 0 })
	p.set(func() { p.stalled = true })
	a.send(t, "b", 0)
	until(t, "b is absent", func() bool { return a.stats("b").State == transport.Absent })
	if s := a.stats("b"); !s.State.Gone() || time.Since(s.Heard) < 150*time.Millisecond {
		t.Errorf("%+v", s)
	}
	a.send(t, "b", 1)
	p.set(func() { p.stalled = false })
	until(t, "b is up", func() bool { return a.stats("b").State == transport.Up })
	until(t, "all is delivered", func() bool { return a.stats("b").Delivered == 2 })
	until(t, "b is not gone", func() bool { return !a.stats("b").State.Gone() })
	if s := a.stats("b"); s.Connections != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	a.awaitStates(t, transport.Up, transport.Suspended, transport.Absent, transport.Up)
}

func TestPeerWithoutListenerIsDownAtOnce(t *testing.T) {
	b := start(t, "b", 1, nil)
	p := newProxy(t, b.Address())
	a := start(t, "a", 1, func(n *node, c *transport.Config) {
		mute(n, c)
		c.Limits.Suspend = time.Hour // so that silence plays no part
	})
	a.connectTo(t, "b", p.address())
	p.close()
	until(t, "b is down", func() bool { return a.stats("b").State == transport.Down })
	if got := a.awaitStates(t, transport.Up, transport.Down)[1]; !errors.Is(got.reason, transport.ErrRefused) {
		t.Errorf("told %+v", got)
	}
	if err := a.Send("b", chunk(0)); !errors.Is(err, transport.ErrDown) {
		t.Errorf("error %v, want that the peer is down", err)
	}
	a.connectTo(t, "b", b.Address())
	a.send(t, "b", 1)
	until(t, "b has it", func() bool { return a.stats("b").Delivered == 1 })
}

func TestPeerThatStaysSilentIsDownAndItsQueueLost(t *testing.T) {
	b := start(t, "b", 1, nil)
	p := newProxy(t, b.Address())
	a := start(t, "a", 1, func(n *node, c *transport.Config) {
		mute(n, c)
		c.Limits.Suspend, c.Limits.GiveUp = 60*time.Millisecond, 200*time.Millisecond
	})
	a.connectTo(t, "b", p.address())
	p.set(func() { p.stalled = true })
	v := a.pool.Get(1000)
	const sent = 5
	for i := range sent {
		a.send(t, "b", i, v.Retain())
	}
	until(t, "b is down", func() bool { s := a.stats("b"); return s.State == transport.Down && !s.Connected })
	if s := a.stats("b"); s.Sent != sent || s.Lost != sent || s.Delivered != 0 {
		t.Errorf("%+v", s)
	}
	if !v.Sole() {
		t.Error("tensors of lost messages are held")
	}
	if got := a.awaitStates(t, transport.Up, transport.Down)[1]; !errors.Is(got.reason, transport.ErrAbsent) {
		t.Errorf("told %+v", got)
	}
}

func TestRemovedPeerIsForgottenUntilItCalls(t *testing.T) {
	a, b := start(t, "a", 1, nil), start(t, "b", 1, nil)
	a.connectTo(t, "b", b.Address())
	a.Remove("b")
	if err := a.Send("b", chunk(0)); !errors.Is(err, transport.ErrUnknown) && err != nil {
		t.Error(err)
	}
	until(t, "b has called again",
		func() bool { return a.stats("b").State == transport.Up && b.stats("a").State == transport.Up })
	a.send(t, "b", 1)
	until(t, "b has it", func() bool { return a.stats("b").Delivered >= 1 })
	a.Remove("nobody")
}

func TestCloseDeliversWhatWaitsAndTakesLeave(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		a, b := start(t, "a", 1, first), start(t, "b", 1, second)
		a.connect(t, "b", b)
		const sent = 50
		for i := range sent {
			a.send(t, "b", i, a.pool.Get(50_000))
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		same(t, b.got(), counting(sent, 0))
		if s := a.stats("b"); s.Delivered != sent || s.Lost != 0 || s.Connected {
			t.Errorf("%+v", s)
		}
		if got := b.awaitStates(t, transport.Up, transport.Down)[1]; !errors.Is(got.reason, transport.ErrLeft) {
			t.Errorf("told %+v", got)
		}
		if err := a.Send("b", chunk(0)); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("error %v, want that the node is closed", err)
		}
		if err := a.Connect("b", b.Address()); !errors.Is(err, transport.ErrClosed) {
			t.Errorf("error %v, want that the node is closed", err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseSaysHowManyItHasLost(t *testing.T) {
	b := start(t, "b", 1, nil)
	p := newProxy(t, b.Address())
	a := start(t, "a", 1, func(n *node, c *transport.Config) {
		mute(n, c)
		c.Limits.Drain = 50 * time.Millisecond
	})
	a.connectTo(t, "b", p.address())
	p.set(func() { p.stalled = true })
	v := a.pool.Get(1_000_000)
	for i := range 3 {
		a.send(t, "b", i, v.Retain())
	}
	if err := a.Close(); err == nil || err.Error() != "transport: 3 messages were lost when node a closed" {
		t.Errorf("error %v", err)
	}
	if s := a.stats("b"); s.Lost != 3 || s.Sent != 3 || !v.Sole() {
		t.Errorf("%+v, released: %v", s, v.Sole())
	}
}

func TestCloseEndsSendersThatWaitForRoom(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		gate := make(chan struct{})
		hold := func(edit func(*node, *transport.Config)) func(*node, *transport.Config) {
			return func(n *node, c *transport.Config) {
				if edit != nil {
					edit(n, c)
				}
				gated(gate)(n, c)
				c.Limits.QueueBytes, c.Limits.Drain, c.Limits.Patience = 4<<20, 20*time.Millisecond, time.Hour
			}
		}
		a, b := start(t, "a", 1, hold(first)), start(t, "b", 1, hold(second))
		a.connectTo(t, "b", b.Address())
		until(t, "a is up", func() bool { return b.stats("a").State == transport.Up })
		var group sync.WaitGroup
		ended := make(chan error, 4)
		for _, from := range []struct {
			n  *node
			to string
		}{{a, "b"}, {a, "b"}, {b, "a"}, {b, "a"}} {
			group.Go(func() {
				for {
					v := from.n.pool.Get(250_000)
					if err := from.n.Send(from.to, chunk(0, v)); err != nil {
						v.Release()
						ended <- err
						return
					}
				}
			})
		}
		until(t, "both queues are full", func() bool { return a.stats("b").Waiting >= 2 && b.stats("a").Waiting >= 2 })
		var closed sync.WaitGroup
		for _, n := range []*node{a, b} {
			closed.Go(func() { n.Close() }) //nolint:errcheck // which of the two has lost more is open
		}
		group.Wait() // before any handler has returned
		close(gate)
		closed.Wait()
		for range 4 {
			if err := <-ended; !errors.Is(err, transport.ErrClosed) {
				t.Errorf("error %v, want that the node is closed", err)
			}
		}
		for _, s := range []transport.PeerStats{a.stats("b"), b.stats("a")} {
			if s.Sent != s.Delivered+s.Lost || s.Waiting != 0 || s.WaitingBytes != 0 || s.Connected {
				t.Errorf("%+v", s)
			}
		}
	})
}

func TestNoDescriptorOutlivesItsNode(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("this system does not list a process's descriptors")
		}
		return len(entries)
	}
	life := func() {
		a, b := start(t, "a", 1, withID(t, "a")), start(t, "b", 1, withID(t, "b"))
		for range 3 {
			ends(t, tls.Client(dial(t, b), id(t, "foreign/a").ClientTLS(identity.Actors)))
		}
		works(t, a, b)
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Fatal(err)
		}
	}
	life() // what the runtime opens for itself
	before := open()
	for range 5 {
		life()
	}
	// The bare callers' own ends are closed with the test.
	if after := open(); after > before+5*3 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
