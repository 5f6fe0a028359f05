package world_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

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
