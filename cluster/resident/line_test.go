package resident

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

func TestCallsOfAConnectionThatHasBrokenAreGivenUpOnce(t *testing.T) {
	l := &line{receipts: make(chan *protos.ActorReceipt, 10), open: map[uint64]forwarded{
		1: {actor: "x", node: "b", connections: 1}, 2: {actor: "x", node: "b", connections: 2},
		3: {actor: "y", node: "c", connections: 1},
		4: {actor: "x", node: "b"}, // it was sent before there was any connection
	}}
	now := map[string]uint64{"b": 2, "c": 1}
	l.lose(stale(now))
	l.lose(stale(now))
	l.end(&protos.ActorReceipt{Sequence: 1}) // what the node says after all
	if n := len(l.receipts); n != 1 {
		t.Fatalf("%d calls have ended; want 1", n)
	}
	if r := <-l.receipts; r.Sequence != 1 || !strings.HasPrefix(r.Error,
		"actor x on node b: whether the message was handled is not known") {
		t.Errorf("%v", r)
	}
	if len(l.open) != 3 {
		t.Errorf("%d are under way; want 3", len(l.open))
	}
}

// connected makes one end of a connection without a cluster around it.
func connected(t *testing.T, name string, limits transport.Limits, receive func(f *wire.Frame)) *transport.Node {
	t.Helper()
	limits.Backoff, limits.Drain = 10*time.Millisecond, 10*time.Millisecond
	n, err := transport.Listen(transport.Config{
		Name: name, Incarnation: 1, Address: "127.0.0.1:0", Tensors: &protos.TensorPool{},
		Receive: func(_ transport.Peer, f *wire.Frame) { receive(f) }, Limits: limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() }) //nolint:errcheck // a test's
	return n
}

func TestEndsOfCallsAreToldOverANetworkThatIsSlowerThanTheActor(t *testing.T) {
	const calls, patience = 64, 10 * time.Millisecond
	slow, told := make(chan struct{}), make(chan uint64, calls)
	a := connected(t, "a", transport.Limits{}, func(f *wire.Frame) {
		<-slow
		told <- f.Head.(*protos.ActorReceipt).Sequence
		f.Release()
	})
	going, end := context.WithCancel(t.Context())
	defer end()
	b := connected(t, "b", transport.Limits{QueueBytes: 1 << 20, Patience: patience}, func(*wire.Frame) {})
	if err := b.Connect("a", a.Address()); err != nil {
		t.Fatal(err)
	}
	r := NewService(Config{Node: "b", Running: going, Tensors: &protos.TensorPool{}, Log: t.Logf})
	r.Use(b)
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
	r.Wait()
}

func TestRequestOfAnotherProcessAtWhichThisOneFailsEndsAlone(t *testing.T) {
	r := NewService(Config{
		Node: "b", Running: t.Context(), Tensors: &protos.TensorPool{}, Log: t.Logf,
		Entered: func() error { return nil },
		Failed:  func(what string, cause any) error { return fmt.Errorf("%s has failed: %v", what, cause) },
	})
	a := r.attempt(&protos.ActorRequest{Kind: &protos.ActorRequest_Spawn{}})
	if !strings.Contains(a.Error, "a request about actors has failed: ") {
		t.Errorf("answered with %v", a)
	}
}

func TestSilentNodesAreNamedWhenNoNodeFits(t *testing.T) {
	cause := errors.New("no node fits")
	for _, c := range []struct {
		node, want string
		silent     []string
		input      bool
	}{
		{"", "no node fits", nil, true},
		{"c", "no node fits", []string{"b"}, true},
		{"", "no node fits; no answer from b, c", []string{"b", "c"}, false},
		{"b", "actor x: node b did not answer within 2s; see `gradwire nodes`", []string{"b"}, false},
	} {
		err := unplaced(&protos.SpawnActor{Name: "x", Node: c.node}, cause, c.silent)
		var input *refusal.InputError
		if err.Error() != c.want || errors.As(err, &input) != c.input {
			t.Errorf("%q, silent %v: %v (%T)", c.node, c.silent, err, err)
		}
	}
}
