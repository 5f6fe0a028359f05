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

// Several processes tell of a shard that moves, each by a clock of its own.
func TestUpdatesOutOfOrderAreHandedOnOnce(t *testing.T) {
	var got heard
	once, want := faults.NewOnce(&got, 1), 0
	tell := func(life, push uint64, again bool) {
		once.Observe(0, 0, actors.Event{Kind: actors.UpdateApplied, Life: life, Push: push})
		if !again {
			want++
		}
		if len(got.events) != want {
			t.Fatalf("after push %d of life %d %d updates were handed on, want %d", push, life, len(got.events), want)
		}
	}
	for _, push := range []uint64{2, 1, 5, 3, 68, 4} { // 4 is as old as can be
		tell(1, push, push == 4)
		tell(1, push, true)
	}
	tell(3, 1, false)
	tell(1, 69, false)
	tell(1, 68, true)
	tell(3, 2, false)
	tell(2, 1, true) // of a life that nobody has told of in time
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
