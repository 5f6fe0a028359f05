package ps_test

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/faults"
)

// recorder keeps what of a run's updates the record has. It counts all that servers tell, those
// that come again included.
type recorder struct {
	*faults.Once
	told, kept int64
	pushes     map[life]map[uint64]bool // which came before the run's end
	twice      []string
}

// life is one of a worker as a shard knows it.
type life struct {
	worker int
	shard  uint32
	number uint64
}

// recording has what observes a run of so many nodes see what the record has of it.
func recording(count *counter, nodes int) *recorder {
	r := &recorder{pushes: map[life]map[uint64]bool{}}
	r.Once = faults.NewOnce(count, nodes)
	count.record = r
	return r
}

func (r *recorder) Observe(at time.Duration, node int, event actors.Event) {
	if event.Kind == actors.UpdateApplied {
		r.told++
	}
	r.Once.Observe(at, node, event)
}

// update takes in an update that is recorded.
func (r *recorder) update(event *actors.Event, early bool) {
	r.kept++
	of := life{event.Origin, event.Shard, event.Life}
	if r.pushes[of] == nil {
		r.pushes[of] = map[uint64]bool{}
	}
	if _, known := r.pushes[of][event.Push]; known {
		r.twice = append(r.twice, fmt.Sprintf("push %d of %+v", event.Push, of))
	}
	r.pushes[of][event.Push] = early
}

// check returns an error if an update is recorded twice, or another number than were applied: all
// pushes of a life in a row, and as many as the model has, but for those that were lost with their
// worker, or came after the model was shown.
func (r *recorder) check(t *trial, params []float32) error {
	if len(r.twice) > 0 {
		return fmt.Errorf("%d updates are recorded twice: %v", len(r.twice), r.twice)
	}
	if t.arch.Backup > 0 { // some pushes are dropped
		return nil
	}
	type cell struct{ worker, shard int }
	recorded, early, lives := map[cell]int{}, map[cell]int{}, map[cell]int{}
	for of, pushes := range r.pushes {
		at := cell{of.worker - t.servers, int(of.shard)}
		for n := range uint64(len(pushes)) {
			before, known := pushes[n+1]
			if !known {
				return fmt.Errorf("of %d pushes of %+v number %d is not recorded", len(pushes), of, n+1)
			}
			if before {
				early[at]++
			}
		}
		recorded[at] += len(pushes)
		lives[at]++
	}
	for j, v := range params {
		at := cell{j % t.workers, j / shardValues}
		under := lives[at] * int(1+t.arch.Consistency.Ahead())
		if recorded[at] < int(v) || early[at] > int(v)+under {
			return fmt.Errorf("value %d: %v updates are in the model, and of %d lives %d are recorded, %d of them "+
				"before the end", j, v, lives[at], recorded[at], early[at])
		}
	}
	return nil
}
