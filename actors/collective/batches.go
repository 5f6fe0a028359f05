package collective

import (
	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
)

// batches knows how large the batches of all ranks are, which follows from the sizes
// of their shards, so that no weight has to travel.
type batches struct {
	shards []int // samples, by node; 0 for one that is no worker
	batch  int   // samples of a full batch
}

func newBatches(task *train.Task, view *actors.View) (batches, error) {
	b := batches{batch: task.Batch, shards: make([]int, len(view.Members))}
	for node := range view.Members {
		if view.Members[node].Role != RoleWorker {
			continue
		}
		shard, err := task.Worker(view, node)
		if err != nil {
			return b, err
		}
		if b.shards[node] = len(task.Shards[shard]); task.Shards[shard] == nil {
			b.shards[node] = task.Train.Len()
		}
	}
	return b, nil
}

// size is the number of samples of a node's step, counted from 0.
func (b *batches) size(node int, step uint64) int {
	shard := uint64(b.shards[node])
	full := min(uint64(b.batch), shard)
	steps := (shard + full - 1) / full
	return int(min(full, shard-step%steps*full))
}

// joint is the number of samples of a round: of steps first to first+every−1 of some nodes.
func (b *batches) joint(nodes []int, first uint64, every int) int {
	n := 0
	for _, node := range nodes {
		for i := range every {
			n += b.size(node, first+uint64(i))
		}
	}
	return n
}
