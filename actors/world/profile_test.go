package world_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
)

var step = actors.Job{Step: true, Work: 1e6}

// costs are those of the first n steps of a life.
func costs(p world.Profile, seed uint64, owner string, n int) (all []time.Duration) {
	walk := p.Walk(seed, owner)
	for range n {
		all = append(all, walk.Cost(step))
	}
	return all
}

func TestWanderingStepsAreTheSumOfTheirShiftsWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "min"))
		most := least + time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "range"))
		first := time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, "step"))
		by := time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "by"))
		seed, owner := rapid.Uint64().Draw(t, "seed"), rapid.String().Draw(t, "owner")
		p := world.Profile{Cores: 1, Speed: 1e9, Step: first, Wander: world.Wander{By: by, Min: least, Max: most}}
		draws, want := rand.New(actors.Source(seed, owner, "wander")), first
		for i, got := range costs(p, seed, owner, 50) {
			if got != want {
				t.Fatalf("step %d takes %v, want %v", i, got, want)
			}
			if want += time.Duration(draws.Int64N(int64(2*by+1))) - by; want < least {
				want = least
			} else if want > most {
				want = most
			}
		}
	})
}

func TestLongWalksAreUniformWithinTheirBounds(t *testing.T) {
	const ms, n = time.Millisecond, 400_000
	wander := world.Wander{By: 5 * ms, Min: 10 * ms, Max: 40 * ms}
	p := world.Profile{Cores: 1, Speed: 1e9, Step: 10 * ms, Wander: wander}
	mean, below := 0.0, 0
	for _, c := range costs(p, 3, "n", n) {
		if mean += c.Seconds() / n; c < 25*ms {
			below++
		}
	}
	if share := float64(below) / n; mean < 24.5e-3 || mean > 25.5e-3 || share < 0.48 || share > 0.52 {
		t.Errorf("steps take %.2f ms, %.0f %% of them less than the middle, want 25 ms and 50 %%", mean*1e3, share*100)
	}
}

func TestOnlyStepsOfAWanderingNodeWander(t *testing.T) {
	p := world.Profile{Cores: 2, Speed: 1e9, Step: time.Second}
	other := actors.Job{Work: 3e9, Cores: 2}
	still := p.Walk(1, "n")
	for range 2 {
		if still.Cost(step) != p.Cost(step) || still.Cost(other) != p.Cost(other) {
			t.Error("a profile that does not wander has another cost in a life")
		}
	}
	p.Wander = world.Wander{By: time.Second, Min: 1, Max: time.Hour}
	with, without := p.Walk(1, "n"), p.Walk(1, "n")
	for range 10 {
		if with.Cost(other) != 1500*time.Millisecond {
			t.Fatal("other jobs wander")
		}
		if a, b := with.Cost(step), without.Cost(step); a != b {
			t.Fatalf("other jobs have moved steps: %v, %v", a, b)
		}
	}
	if a, b := costs(p, 1, "n", 3), costs(p, 1, world.Owner("n", 1), 3); a[0] != b[0] || a[1] == b[1] {
		t.Errorf("the next life goes %v, this one %v", b, a)
	}
}
