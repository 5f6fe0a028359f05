package world_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

func draw(r *rand.Rand, n int) []uint64 {
	values := make([]uint64, n)
	for i := range values {
		values[i] = r.Uint64()
	}
	return values
}

func TestRestoredStreamsGoOnAsIfNothingHadHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		purposes := rapid.SliceOfNDistinct(rapid.String(), 1, 4, rapid.ID).Draw(t, "purposes")
		var whole, first world.Streams
		for _, p := range purposes {
			n := rapid.IntRange(0, 20).Draw(t, "drawn")
			draw(whole.Get(seed, "a", p), n)
			draw(first.Get(seed, "a", p), n)
		}
		states, err := first.Save()
		if err != nil {
			t.Fatal(err)
		}
		var second world.Streams
		if err := second.Restore(states); err != nil {
			t.Fatal(err)
		}
		// A purpose that was not in use begins as ever.
		for _, p := range append(purposes, "one more than was saved") {
			if diff := cmp.Diff(draw(whole.Get(seed, "a", p), 10), draw(second.Get(seed, "a", p), 10)); diff != "" {
				t.Fatalf("stream %q (-uninterrupted +restored):\n%s", p, diff)
			}
		}
	})
}

func TestSavingMovesNoStream(t *testing.T) {
	var a, b world.Streams
	draw(a.Get(1, "a", "p"), 3)
	draw(b.Get(1, "a", "p"), 3)
	if _, err := a.Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(draw(b.Get(1, "a", "p"), 5), draw(a.Get(1, "a", "p"), 5)); diff != "" {
		t.Error(diff)
	}
}

func TestStreamDependsOnSeedActorAndPurposeOnly(t *testing.T) {
	var alone, among world.Streams
	for _, p := range []string{"x", "y", "z"} {
		draw(among.Get(1, "a", p), 7)
	}
	if diff := cmp.Diff(draw(alone.Get(1, "a", "p"), 5), draw(among.Get(1, "a", "p"), 5)); diff != "" {
		t.Errorf("other purposes move a stream:\n%s", diff)
	}
	// Owner and purpose are not simply strung together.
	first := map[uint64]string{}
	for _, s := range []struct {
		seed           uint64
		owner, purpose string
	}{{1, "a", "p"}, {2, "a", "p"}, {1, "b", "p"}, {1, "a", "q"}, {1, "ap", ""}, {1, "", "ap"}, {0, "a", "p"}} {
		x := rand.New(actors.Source(s.seed, s.owner, s.purpose)).Uint64()
		if other, taken := first[x]; taken {
			t.Errorf("%v begins like %s", s, other)
		}
		first[x] = s.owner + " " + s.purpose
	}
}

func TestStreamsOfNeighbouringSeedsAreIndependent(t *testing.T) {
	// The mean of 64 bits that agree between two independent streams is 32 with a
	// standard deviation of 4/√n.
	const n = 4096
	agreed := 0
	for seed := range uint64(n) {
		a, b := actors.Source(seed, "a", "p").Uint64(), actors.Source(seed+1, "a", "p").Uint64()
		for x := ^(a ^ b); x != 0; x &= x - 1 {
			agreed++
		}
	}
	if mean := float64(agreed) / n; mean < 32-5*4.0/64 || mean > 32+5*4.0/64 {
		t.Errorf("%.3f of 64 bits agree, want 32 ± 0.31", mean)
	}
}

func TestDamagedStreamStateIsAnErrorThatNamesThePurpose(t *testing.T) {
	var s world.Streams
	err := s.Restore(map[string][]byte{"batches": []byte("pcg:short")})
	if err == nil || err.Error()[:23] != `random stream "batches"` {
		t.Errorf("got %v", err)
	}
}

func TestSameStreamForSamePurposeWithoutAllocation(t *testing.T) {
	var s world.Streams
	r := s.Get(1, "a", "p")
	if n := testing.AllocsPerRun(100, func() {
		if s.Get(1, "a", "p") != r {
			t.Error("another stream for the same purpose")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
