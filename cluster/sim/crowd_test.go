package sim_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/protos"
)

// crowd is nodes each of which sends a numbered message to another one, drawn each time, every
// millisecond. It counts what is sent and received by sender, and what overtakes.
type crowd struct {
	sent, received []int64
	latest         map[[2]int]uint64 // number of the latest message from one node to another
	overtakes      int
}

func (c *crowd) handle(ctx actor.Context, env actors.Env) {
	self := env.Node()
	switch m := ctx.Message().(type) {
	case *actor.Started, string:
		if _, started := m.(*actor.Started); !started {
			to := env.Rand("neighbour").IntN(len(env.View().Members) - 1)
			if to >= self {
				to++
			}
			c.sent[self]++
			ctx.Send(pid(env, to), protos.NewMessage(&protos.Chunk{Rank: int32(self), Round: uint64(c.sent[self])}))
		}
		env.After(time.Millisecond, "tick")
	case *protos.Message:
		head := m.Head.(*protos.Chunk)
		c.received[head.Rank]++
		way := [2]int{int(head.Rank), self}
		if head.Round < c.latest[way] {
			c.overtakes++
		}
		c.latest[way] = head.Round
		m.Release()
	}
}

// More edges are used than are counted one by one, and most of them are forgotten and made again.
func TestMessagesOfACrowdAreAccountedForByTheirSenderAndKeepTheirOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine counts for long")
	}
	const nodes = 400
	digests := map[uint64]bool{}
	for _, procs := range []int{1, 2} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		c := &crowd{sent: make([]int64, nodes), received: make([]int64, nodes), latest: map[[2]int]uint64{}}
		s := &stage{seed: 5, end: 350 * time.Millisecond}
		s.edge = link.Config{Delay: link.Uniform{Max: 100 * time.Millisecond},
			Loss: link.Loss{Probability: 0.1, Drop: true}}
		for range nodes {
			s.handlers = append(s.handlers, c.handle)
		}
		digests[s.run(t).Digest] = true
		if len(c.latest) < link.MaxPairs {
			t.Fatalf("only %d edges were used", len(c.latest))
		}
		if c.overtakes > 0 {
			t.Errorf("%d messages overtook earlier ones of their edge", c.overtakes)
		}
		for _, u := range s.network.Used() {
			if u.Source == nodes {
				continue // the coordinator
			}
			sent, received := c.sent[u.Source], c.received[u.Source]
			if u.Destination != link.Anyone || u.Sent != sent || u.Delivered != received || u.Dropped != u.Lost ||
				u.Lost == 0 || u.InFlight() != sent-received-u.Lost || u.InFlight() < 0 || u.InFlight() > 100 {
				t.Fatalf("node %d sent %d messages, of which %d were received: %+v", u.Source, sent, received, u)
			}
		}
	}
	if len(digests) != 1 {
		t.Error("another number of threads gives another digest")
	}
}
