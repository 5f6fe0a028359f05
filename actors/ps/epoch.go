package ps

import (
	"math"

	"github.com/gradwire/gradwire/actors/train"
)

// epoch has all workers begin a pass through their shards together: when a share of the samples has
// been processed in this one, or when nobody has any left. A worker that has seen its samples rests
// until then, and holds nobody back; one that has not begins the next pass all the same. The first
// shard of the model counts the samples. See T. Chilimbi et al., "Project Adam: Building an
// Efficient and Scalable Deep Learning Training System", OSDI 2014, section 3.2.4.
type epoch struct {
	number uint64
	enough int // samples
	seen   int
}

func newEpoch(task *train.Task, share float64) *epoch {
	total := 0
	for _, rows := range task.Shards {
		total += len(rows)
	}
	return &epoch{enough: int(math.Ceil(share * float64(total)))}
}

// turn lets those rest who have seen their samples, and begins the next epoch if this one is over.
func (h *shard) turn() {
	working := false
	for node := range h.workers {
		switch w := &h.workers[node]; {
		case w.pid != nil && w.rests:
			h.clocks.Leave(node)
		case w.pid != nil:
			working = true
		}
	}
	e := h.epoch
	if e == nil || e.seen < e.enough && working || h.present == 0 {
		return
	}
	e.number++
	e.seen = 0
	for node := range h.workers {
		if w := &h.workers[node]; w.pid != nil && w.rests {
			h.wake(node)
		}
		h.workers[node].rests = false
	}
}
