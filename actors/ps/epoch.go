package ps

import (
	"math"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// epoch has all workers begin a pass through their shards together: when a share of the samples has
// been processed in this one, or when nobody has any left. A worker that has seen its shard rests
// until then, and holds nobody back; one that has not begins the next pass all the same. See T.
// Chilimbi et al., "Project Adam: Building an Efficient and Scalable Deep Learning Training
// System", OSDI 2014, section 3.2.4.
type epoch struct {
	number uint64
	enough int // samples
	seen   int
	shards []int // samples of each node's shard; 0 of a node that does not train
	left   []int // of them in this epoch
}

func newEpoch(task *train.Task, members []actors.Member, share float64) *epoch {
	e := &epoch{shards: make([]int, len(members)), left: make([]int, len(members))}
	total := 0
	for i, name := range task.Workers {
		for node, member := range members {
			if member.Name == name {
				e.shards[node] = len(task.Shards[i])
			}
		}
		total += len(task.Shards[i])
	}
	e.enough = int(math.Ceil(share * float64(total)))
	copy(e.left, e.shards)
	return e
}

// join has a worker that has come begin the present pass.
func (e *epoch) join(node int) { e.left[node] = e.shards[node] }

// take counts the samples of a push. Those of one that comes too late are not processed.
func (e *epoch) take(node int, push *protos.Push, late bool) {
	if !late {
		e.seen += int(push.Samples)
	}
	if push.Epoch == e.number {
		e.left[node] -= int(push.Samples)
	}
}

// rests reports whether a worker has seen its shard.
func (e *epoch) rests(node int) bool { return e.left[node] <= 0 }

// turn lets those rest who have seen their shards, and begins the next epoch if this one is over.
func (s *server) turn() {
	e, working := s.epoch, false
	for node := range s.workers {
		switch there := s.workers[node].pid != nil; {
		case there && e.rests(node):
			s.clocks.Leave(node)
		case there:
			working = true
		}
	}
	if e.seen < e.enough && working || s.present == 0 {
		return
	}
	e.number++
	e.seen = 0
	for node := range s.workers {
		if s.workers[node].pid != nil && e.rests(node) {
			s.clocks.Return(node)
		}
	}
	copy(e.left, e.shards)
}
