package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func TestCallsOfAConnectionThatHasBrokenAreGivenUpOnce(t *testing.T) {
	l := &line{receipts: make(chan *protos.ActorReceipt, 10), open: map[uint64]forwarded{
		1: {actor: "x", node: "b", connections: 1}, 2: {actor: "x", node: "b", connections: 2},
		3: {actor: "y", node: "c", connections: 1}, 4: {actor: "x", node: "b"}, // 4 was sent before there was any connection
	}}
	now := map[string]uint64{"b": 2, "c": 1}
	l.lose(stale(now))
	l.lose(stale(now))
	l.end(&protos.ActorReceipt{Sequence: 1}) // what the node says after all
	if n := len(l.receipts); n != 1 {
		t.Fatalf("%d calls have ended; want 1", n)
	}
	if r := <-l.receipts; r.Sequence != 1 || !strings.HasPrefix(r.Error, "actor x on node b: whether the message was handled is not known") {
		t.Errorf("%v", r)
	}
	if len(l.open) != 3 {
		t.Errorf("%d are under way; want 3", len(l.open))
	}
}

func TestEndsOfCallsAreToldOverANetworkThatIsSlowerThanTheActor(t *testing.T) {
	const calls, patience = 64, 10 * time.Millisecond
	slow, told := make(chan struct{}), make(chan uint64, calls)
	a := listen(t, "a", func(f *wire.Frame) {
		<-slow
		told <- f.Head.(*protos.ActorReceipt).Sequence
		forget(f)
	})
	p := &process{config: NodeConfig{Name: "b"}, node: listen(t, "b", func(*wire.Frame) {}, func(l *transport.Limits) {
		l.QueueBytes, l.Patience = 1<<20, patience
	})}
	p.stop, p.halt = context.WithCancelCause(t.Context())
	defer p.halt(nil)
	if err := p.node.Connect("a", a.Address()); err != nil {
		t.Fatal(err)
	}
	r := &residents{process: p}
	for i := range uint64(calls) { // together more than the queue and the connection hold; none waits for the network
		answer := protos.NewMessage(wrapperspb.Int64(1), protos.NewTensor(make([]float32, 1<<18)))
		r.done("a", &protos.ActorCall{Name: "x", Sequence: i}, answer, nil)
	}
	time.AfterFunc(20*patience, func() { close(slow) })
	missing, late := calls, time.After(20*time.Second)
	for seen := map[uint64]bool{}; missing > 0; missing = calls - len(seen) {
		select {
		case sequence := <-told:
			seen[sequence] = true
		case <-late:
			t.Fatalf("the ends of %d calls of %d were not told", missing, calls)
		}
	}
	p.telling.Wait()
}
