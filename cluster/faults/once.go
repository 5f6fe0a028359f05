package faults

import (
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// Once hands on what it observes, but for updates that come again: where a parameter server's
// shards have replicas, one that crashes between taking a push in and telling its replicas leaves
// an owner that takes the push in once more. The model has it once, and so has what Once hands on.
// A shard takes the pushes of a worker in by rising life and number. Its methods may be called from
// many goroutines.
type Once struct {
	// To is who observes what is handed on; it does not change while the run is under way.
	To    world.Observer `image:"kept"`
	nodes []told
}

// told is what has been handed on of a worker's pushes.
type told struct {
	mu     sync.Mutex
	latest []push // by shard
	_      [64]byte
}

// push names one to a shard: see [actors.Event].
type push struct{ life, number uint64 }

var _ world.Observer = (*Once)(nil)

// NewOnce returns one for a run of so many nodes.
func NewOnce(to world.Observer, nodes int) *Once { return &Once{To: to, nodes: make([]told, nodes)} }

// maxShards bounds the shards of a model, whatever another process has sent.
const maxShards = 1 << 20

// Observe hands an event on, unless it is an update that has been handed on before.
func (o *Once) Observe(at time.Duration, node int, event actors.Event) {
	named := event.Kind == actors.UpdateApplied && event.Push > 0 && event.Shard < maxShards
	if !named || event.Origin < 0 || event.Origin >= len(o.nodes) {
		o.To.Observe(at, node, event)
		return
	}
	t := &o.nodes[event.Origin]
	t.mu.Lock()
	defer t.mu.Unlock()
	for int(event.Shard) >= len(t.latest) {
		t.latest = append(t.latest, push{})
	}
	last, now := &t.latest[event.Shard], push{event.Life, event.Push}
	if now.life < last.life || now.life == last.life && now.number <= last.number {
		return
	}
	*last = now
	o.To.Observe(at, node, event)
}

// Held calls a function while no such update is handed on.
func (o *Once) Held(do func()) {
	for i := range o.nodes {
		o.nodes[i].mu.Lock()
		defer o.nodes[i].mu.Unlock()
	}
	do()
}
