package driver

import (
	"strings"
	"testing"

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
