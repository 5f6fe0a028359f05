package faults

import (
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

// Once hands on what it observes, but for updates that come again: where a parameter server's
// shards have replicas, one that crashes between taking a push in and telling its replicas leaves
// an owner that takes the push in once more. The model has it once, and so has what Once hands on.
// A shard takes the pushes of a worker in by rising life and number; where they are told by several
// processes, they may come out of order by less than 64, or one life after the next. It is told of
// one event at a time.
type Once struct {
	// To is who observes what is handed on; it does not change while the run is under way.
	To    world.Observer
	nodes []told // updates that were handed on, by worker
}

// told is what has been handed on of a worker's pushes, by shard: of its latest life, and of the
// one before.
type told [][2]window

// window has which pushes of a life have been told, as in S. Kent, "IP Encapsulating Security
// Payload", RFC 4303 (2005), section 3.4.3: bit i stands for push latest−i; what is older counts
// as told.
type window struct{ life, latest, bits uint64 }

// tell notes a push, and reports whether it has not been told before.
func (w *window) tell(number uint64) bool {
	if number > w.latest {
		w.bits = w.bits<<(number-w.latest) | 1
		w.latest = number
		return true
	}
	bit := uint64(1) << (w.latest - number) // 0 for what is older
	if bit == 0 || w.bits&bit != 0 {
		return false
	}
	w.bits |= bit
	return true
}

var _ world.Observer = (*Once)(nil)

// NewOnce returns one for a run of so many nodes.
func NewOnce(to world.Observer, nodes int) *Once { return &Once{To: to, nodes: make([]told, nodes)} }

// maxShards bounds the memory that a number of another process can take: updates of later shards
// are all handed on.
const maxShards = 1 << 20

// Observe hands an event on, unless it is an update that has been handed on before.
func (o *Once) Observe(at time.Duration, node int, event actors.Event) {
	named := event.Kind == actors.UpdateApplied && event.Push > 0 && event.Shard < maxShards
	if !named || event.Origin < 0 || event.Origin >= len(o.nodes) {
		o.To.Observe(at, node, event)
		return
	}
	t := &o.nodes[event.Origin]
	for int(event.Shard) >= len(*t) {
		*t = append(*t, [2]window{})
	}
	of := &(*t)[event.Shard]
	if event.Life > of[0].life {
		of[0], of[1] = window{life: event.Life}, of[0]
	}
	w := &of[0]
	if event.Life < w.life {
		w = &of[1]
	}
	if event.Life == w.life && w.tell(event.Push) {
		o.To.Observe(at, node, event)
	}
}
