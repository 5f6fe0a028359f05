package transport_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// alone has nothing sent but what is told, besides what the other edits, if any, change.
func alone(edits ...func(*node, *transport.Config)) func(*node, *transport.Config) {
	return func(n *node, c *transport.Config) {
		c.Limits = transport.Limits{Heartbeat: time.Minute, Suspend: 5 * time.Minute, GiveUp: 10 * time.Minute}
		for _, edit := range edits {
			if edit != nil {
				edit(n, c)
			}
		}
	}
}

// tells closes a channel when the first large frame has begun to arrive.
func tells(begun chan struct{}) func(*node, *transport.Config) {
	return func(_ *node, c *transport.Config) {
		c.Posted = func(*wire.Frame, int, int) *protos.Tensor {
			close(begun)
			return nil
		}
	}
}

func TestHandlerThatWaitsForWhatIsBeingWrittenGetsIt(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		begun, arrived := make(chan struct{}), make(chan struct{})
		a := start(t, "a", 1, alone(first, tells(begun), func(n *node, c *transport.Config) {
			c.Receive = func(p transport.Peer, f *wire.Frame) {
				n.receive(p, f)
				close(arrived)
			}
		}))
		b := start(t, "b", 1, alone(second, func(n *node, c *transport.Config) {
			c.Receive = func(p transport.Peer, f *wire.Frame) {
				<-arrived // its own frame, which has just begun
				n.receive(p, f)
			}
		}))
		b.connect(t, "a", a)
		b.send(t, "a", 0, b.pool.Get(5_000_000))
		<-begun
		a.send(t, "b", 0)
		until(t, "the handler returns", func() bool { return b.handled.Load() == 1 })
	})
}

func TestLargeFramesAreWrittenWhileNothingArrives(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		a, b := start(t, "a", 1, alone(first)), start(t, "b", 1, alone(second))
		a.connect(t, "b", b)
		for i := range 4 {
			a.send(t, "b", i, a.pool.Get(1_000_000))
			until(t, "it is there", func() bool { return b.handled.Load() == int64(i+1) })
		}
	})
}

func TestLargeFramesInBothDirectionsDoNotWaitForEachOther(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		a, b := start(t, "a", 1, first), start(t, "b", 1, second)
		a.connect(t, "b", b)
		until(t, "b knows of it", func() bool { return b.stats("a").State == transport.Up })
		for i := range 8 {
			a.send(t, "b", i, a.pool.Get(1_000_000))
			b.send(t, "a", i, b.pool.Get(1_000_000))
		}
		until(t, "all are there", func() bool { return a.handled.Load() == 8 && b.handled.Load() == 8 })
	})
}

func TestShortHandlersInARowDoNotKeepWhatWasBegunFromBeingWritten(t *testing.T) {
	both(t, func(t *testing.T, first, second func(*node, *transport.Config)) {
		const ahead = 100 // small frames in flight
		begun := make(chan struct{})
		a := start(t, "a", 1, alone(first, tells(begun)))
		b := start(t, "b", 1, alone(second, func(n *node, c *transport.Config) {
			c.Receive = func(p transport.Peer, f *wire.Frame) {
				for until := time.Now().Add(500 * time.Microsecond); time.Now().Before(until); {
				}
				n.receive(p, f)
			}
		}))
		b.connect(t, "a", a)
		until(t, "a knows of it", func() bool { return a.stats("b").State == transport.Up })
		b.send(t, "a", 0, b.pool.Get(2_500_000))
		<-begun
		sent := 0
		until(t, "the large one is there", func() bool {
			for ; sent < int(b.handled.Load())+ahead; sent++ {
				a.send(t, "b", sent)
			}
			return a.handled.Load() == 1
		})
		until(t, "the small ones are handled", func() bool { return b.handled.Load() == int64(sent) })
	})
}
