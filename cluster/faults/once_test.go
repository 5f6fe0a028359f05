package faults_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/faults"
)

// heard keeps the events that it observes.
type heard struct{ events []actors.Event }

func (h *heard) Observe(_ time.Duration, _ int, e actors.Event) { h.events = append(h.events, e) }

// Shards take the pushes of workers in by rising life and number, and owners that follow one that
// has crashed go back by some. A set of all that was told is the oracle.
func TestUpdatesThatComeAgainAreHandedOnOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const workers, shards = 3, 2
		var got, want heard
		once, seen := faults.NewOnce(&got, workers), map[actors.Event]bool{}
		pushes := [workers][shards][]actors.Event{} // that there were
		tell := func(e actors.Event) {
			once.Observe(0, workers, e)
			if e.Push == 0 || e.Kind != actors.UpdateApplied || !seen[e] {
				seen[e] = true
				want.events = append(want.events, e)
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			w, k := rapid.IntRange(0, workers-1).Draw(t, "worker"), rapid.IntRange(0, shards-1).Draw(t, "shard")
			of := &pushes[w][k]
			e := actors.Event{Kind: actors.UpdateApplied, Origin: w, Shard: uint32(k), Life: 1, Push: 1}
			if n := len(*of); n > 0 {
				e = (*of)[n-1]
				e.Push++
			}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // another life
				e.Life += rapid.Uint64Range(1, 5).Draw(t, "views")
				e.Push = 1
			case 1, 2: // the last ones come again
				back := rapid.IntRange(0, len(*of)).Draw(t, "back")
				for _, e := range (*of)[back:] {
					tell(e)
				}
				continue
			case 3: // of an architecture that names no pushes, and another kind
				tell(actors.Event{Kind: actors.UpdateApplied, Origin: w})
				tell(actors.Event{Kind: actors.Merged, Origin: w, Push: 1})
				continue
			case 4: // of no node
				tell(actors.Event{Kind: actors.UpdateApplied, Origin: -1, Life: uint64(len(want.events)), Push: 1})
				continue
			}
			*of = append(*of, e)
			tell(e)
		}
		if diff := cmp.Diff(want.events, got.events); diff != "" {
			t.Error(diff)
		}
	})
}

// BenchmarkOnce is what it costs to hand an event on: an update that names its push, and one of
// other architectures.
func BenchmarkOnce(b *testing.B) {
	for name, named := range map[string]uint64{"push": 1, "other": 0} {
		b.Run(name, func(b *testing.B) {
			var to deaf
			once := faults.NewOnce(to, 4)
			b.ReportAllocs()
			for i := range uint64(b.N) {
				once.Observe(0, 0, actors.Event{Kind: actors.UpdateApplied, Origin: int(i & 3), Life: named,
					Push: named * (i>>2 + 1)})
			}
		})
	}
}
