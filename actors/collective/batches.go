package collective

import "github.com/gradwire/gradwire/actors/train"

// batches knows how large the batches of all ranks are, which follows from the sizes
// of their shards, so that no weight has to travel.
type batches struct {
	shards []int // samples, by rank
	batch  int   // samples of a full batch
}

func newBatches(task *train.Task) batches {
	b := batches{batch: task.Batch}
	for _, rows := range task.Shards {
		n := len(rows)
		if rows == nil {
			n = task.Train.Len()
		}
		b.shards = append(b.shards, n)
	}
	return b
}

// size is the number of samples of a rank's step, counted from 0.
func (b *batches) size(rank int, step uint64) int {
	shard := uint64(b.shards[rank])
	full := min(uint64(b.batch), shard)
	steps := (shard + full - 1) / full
	return int(min(full, shard-step%steps*full))
}

// joint is the number of samples of a round: of steps first to first+every−1 of all ranks.
func (b *batches) joint(first uint64, every int) int {
	n := 0
	for rank := range b.shards {
		for i := range every {
			n += b.size(rank, first+uint64(i))
		}
	}
	return n
}
