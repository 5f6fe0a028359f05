package transport_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// two is what a node has handled of either class, and whether it was whole.
type two struct {
	mu           sync.Mutex
	urgent, bulk []uint64
	damaged      int
}

// handle keeps what a node handles. A tensor has the index of its message everywhere.
func (h *two) handle(_ *node, c *transport.Config) {
	c.Receive = func(_ transport.Peer, f *wire.Frame) {
		h.mu.Lock()
		defer h.mu.Unlock()
		switch head := f.Head.(type) {
		case *protos.Progress:
			h.urgent = append(h.urgent, head.Step)
		case *protos.Chunk:
			h.bulk = append(h.bulk, uint64(head.Index))
			for _, v := range f.Tensors {
				if slices.ContainsFunc(v.Data, func(x float32) bool { return x != float32(head.Index) }) {
					h.damaged++
				}
			}
		}
		f.Release()
	}
}

func (h *two) check(t *testing.T, n int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	same(t, h.urgent, counting(n, 0))
	same(t, h.bulk, counting(n, 0))
	if h.damaged > 0 {
		t.Errorf("%d tensors are not what was sent", h.damaged)
	}
}

// sendBoth sends messages of either class, now and then after a pause in which something may break.
func (n *node) sendBoth(t *testing.T, to string, messages int) {
	random := rand.New(rand.NewPCG(1, uint64(to[0])))
	for i := range messages {
		v := n.pool.Get(random.IntN(4) * random.IntN(10_000))
		for j := range v.Data {
			v.Data[j] = float32(i)
		}
		err := n.Send(to, chunk(i, v))
		if err == nil {
			err = n.Send(to, &wire.Frame{Kind: wire.Control, Target: "x/actor",
				Head: &protos.Progress{Step: uint64(i)}})
		}
		if err != nil {
			t.Error(err)
		}
		if i%10 == 9 {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// Messages of both classes go both ways while their connection is cut again and again, at any byte.
func TestBothClassesCrossCutsBothWaysOnceAndInOrder(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		const messages = 400
		var handled [2]two
		edit := func(i int, edits ...func(*node, *transport.Config)) func(*node, *transport.Config) {
			return func(n *node, c *transport.Config) {
				for _, e := range append(edits, handled[i].handle) {
					if e != nil {
						e(n, c)
					}
				}
			}
		}
		b := start(t, "b", 1, edit(1, second))
		p := newProxy(t, b.Address())
		a := start(t, "a", 1, edit(0, first, mute))
		a.connectTo(t, "b", p.address())
		var sending sync.WaitGroup
		sending.Go(func() { a.sendBoth(t, "b", messages) })
		sending.Go(func() { b.sendBoth(t, "a", messages) })
		sent := make(chan struct{})
		go func() {
			sending.Wait()
			close(sent)
		}()
		for going := true; going; {
			select {
			case <-sent:
				going = false
			case <-time.After(2 * time.Millisecond):
				p.cut()
			}
		}
		until(t, "all is delivered", func() bool {
			return a.stats("b").Delivered == 2*messages && b.stats("a").Delivered == 2*messages
		})
		for _, n := range []struct {
			*node
			to string
		}{{a, "b"}, {b, "a"}} {
			if s := n.stats(n.to); s.Lost != 0 || s.Connections < 2 || s.Sent != 2*messages ||
				s.Received != 2*messages || s.BadFrames != 0 {
				t.Errorf("%+v", s)
			}
			until(t, "nothing is held", func() bool { return n.stats(n.to).WaitingBytes == 0 })
		}
		handled[0].check(t, messages)
		handled[1].check(t, messages)
	})
}

// A frame that broke off inside of posted memory comes again, elsewhere.
func TestFrameThatBreaksOffInPostedMemoryComesWhole(t *testing.T) {
	const values = 1_000_000
	posted := protos.NewTensor(make([]float32, values))
	begun := make(chan struct{})
	var asked int
	var got []float32
	b := start(t, "b", 1, func(n *node, c *transport.Config) {
		c.Posted = func(*wire.Frame, int, int) *protos.Tensor {
			if asked++; asked > 1 {
				return nil
			}
			close(begun)
			return posted.Retain()
		}
		c.Receive = func(p transport.Peer, f *wire.Frame) {
			got = slices.Clone(f.Tensors[0].Data)
			n.receive(p, f)
		}
	})
	p := newProxy(t, b.Address())
	p.set(func() { p.budget = 1_500_000 })
	a := start(t, "a", 1, mute)
	a.connectTo(t, "b", p.address())
	until(t, "they are connected", func() bool { return a.stats("b").State == transport.Up })
	p.set(func() { p.budget = 0 }) // for the connections after this one
	v := a.pool.Get(values)
	for i := range v.Data {
		v.Data[i] = float32(i)
	}
	want := slices.Clone(v.Data)
	a.send(t, "b", 0, v.Retain())
	<-begun
	until(t, "it is delivered", func() bool { return a.stats("b").Delivered == 1 })
	until(t, "nothing is held", v.Sole)
	if asked != 2 || !slices.Equal(got, want) || !posted.Sole() || b.handled.Load() != 1 {
		t.Errorf("asked %d times, handled %d, whole: %v, memory released: %v", asked, b.handled.Load(),
			slices.Equal(got, want), posted.Sole())
	}
}

// What a peer was told to be gone for, and what it has forgotten, comes never; what follows comes
// once.
func TestPeersThatForgetEachOtherRepeatNothing(t *testing.T) {
	a, b := start(t, "a", 1, nil), start(t, "b", 1, nil)
	a.connectTo(t, "b", b.Address())
	next := 0
	for round := range 20 {
		for range 10 {
			if err := a.Send("b", chunk(next, a.pool.Get(1000))); err == nil {
				next++
			}
		}
		if round%2 == 0 {
			a.Remove("b")
		} else {
			b.Remove("a")
		}
		until(t, "they know each other again", func() bool {
			a.Connect("b", b.Address()) //nolint:errcheck // it may be going
			return a.stats("b").State == transport.Up && b.stats("a").State == transport.Up
		})
	}
	last := next
	a.send(t, "b", last)
	until(t, "the last is handled", func() bool { return slices.Contains(b.got(), uint64(last)) })
	if got := b.got(); !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("messages came twice, or not in their order: %v", got)
	}
}

// parted has b begin to handle a frame of a, which begun tells, and then both remove each other.
func parted(t *testing.T, a, b *node, begun chan struct{}) {
	t.Helper()
	a.connect(t, "b", b)
	a.send(t, "b", 0)
	<-begun
	b.Remove("a")
	a.Remove("b")
}

// A peer that was removed and calls again is not heard while something of before is being handled:
// frames of one peer are handled one at a time, and in their order.
func TestWhatARemovedPeerSaidBeforeIsHandledFirst(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		begun, later, called := make(chan struct{}), make(chan struct{}), make(chan struct{})
		b := start(t, "b", 1, alone(second, func(n *node, c *transport.Config) {
			c.Receive = func(p transport.Peer, f *wire.Frame) {
				switch f.Head.(*protos.Chunk).Index {
				case 0:
					close(begun)
					<-called
					select { // long enough for the one of later, if it does not wait
					case <-later:
						t.Error("a later frame is handled meanwhile")
					case <-time.After(100 * time.Millisecond):
					}
				case 1:
					close(later)
				}
				n.receive(p, f)
			}
		}))
		a := start(t, "a", 1, alone(first))
		parted(t, a, b, begun)
		a.connect(t, "b", b)
		a.send(t, "b", 1)
		close(called)
		until(t, "both are handled", func() bool { return len(b.got()) == 2 })
		if got := b.got(); !slices.Equal(got, []uint64{0, 1}) {
			t.Errorf("handled %v", got)
		}
	})
}

// A peer that is not heard because something of before is being handled is not silent.
func TestPeerThatWaitsForWhatItSaidBeforeIsNotAbsent(t *testing.T) {
	brief := func(_ *node, c *transport.Config) { c.Limits.GiveUp = 100 * time.Millisecond }
	begun, release := make(chan struct{}), make(chan struct{})
	b := start(t, "b", 1, func(n *node, c *transport.Config) {
		brief(n, c)
		c.Receive = func(p transport.Peer, f *wire.Frame) {
			close(begun)
			<-release
			n.receive(p, f)
		}
	})
	a := start(t, "a", 1, brief)
	parted(t, a, b, begun)
	b.connect(t, "a", a)
	began := time.Now()
	gone := false
	until(t, "it would be absent", func() bool {
		gone = gone || b.stats("a").State.Gone()
		return time.Since(began) > 300*time.Millisecond
	})
	close(release)
	if gone {
		t.Error("a peer that waits counts as gone")
	}
	until(t, "they know each other again", func() bool { return b.stats("a").State == transport.Up })
}

// What has been taken is released soon, though nothing goes the other way but for heartbeats.
func TestKeptTensorsAreReleasedBeforeTheNextHeartbeat(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		a, b := start(t, "a", 1, alone(first)), start(t, "b", 1, alone(second))
		a.connectTo(t, "b", b.Address())
		v := a.pool.Get(400_000)
		for i := range 20 {
			a.send(t, "b", i, v.Retain())
		}
		until(t, "nothing is held", v.Sole)
		if s := a.stats("b"); s.Lost != 0 || s.WaitingBytes != 0 {
			t.Errorf("%+v", s)
		}
	})
}
