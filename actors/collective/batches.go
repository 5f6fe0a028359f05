package collective

import (
	"slices"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
)

// batches knows how large the batches of all ranks of a view are, which follows from the sizes
// of their shards, so that no weight has to travel.
type batches struct {
	batch  int        // samples of a full batch
	shards []shardsOf // of the ranks, by size
}

// shardsOf is how many shards have a number of samples.
type shardsOf struct{ samples, count int }

func newBatches(task *train.Task, view *actors.View, workers []int) (batches, error) {
	b := batches{batch: task.Batch}
	sizes := make([]int, len(workers))
	for rank, node := range workers {
		shard, err := task.Worker(view, node)
		if err != nil {
			return b, err
		}
		if sizes[rank] = len(task.Shards[shard]); task.Shards[shard] == nil {
			sizes[rank] = task.Train.Len()
		}
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		if i == 0 || size != sizes[i-1] {
			b.shards = append(b.shards, shardsOf{samples: size})
		}
		b.shards[len(b.shards)-1].count++
	}
	return b, nil
}

// joint is the number of samples of a round: of steps first to first+every−1 of all ranks, counted
// from 0.
func (b *batches) joint(first uint64, every int) int {
	n := 0
	for _, s := range b.shards {
		for i := range every {
			n += s.count * b.size(uint64(s.samples), first+uint64(i))
		}
	}
	return n
}

// size is the number of samples of a step on a shard.
func (b *batches) size(shard, step uint64) int {
	full := min(uint64(b.batch), shard)
	steps := (shard + full - 1) / full
	return int(min(full, shard-step%steps*full))
}
