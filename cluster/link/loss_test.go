package link_test

import (
	"math"
	"testing"

	"github.com/gradwire/gradwire/cluster/link"
)

func tries(seed uint64, l link.Loss, count int) []bool {
	l.Drop = true
	e := pair(seed, link.Config{Loss: l})
	lost := make([]bool, count)
	for i := range lost {
		lost[i] = e.Send(0, 0).Lost
	}
	return lost
}

// After k tries the channel that was good is bad with probability π − π·λᵏ and the one that was bad
// with π + (1 − π)·λᵏ, where π = P/(P + R) and λ = 1 − P − R: two tries k apart are both lost with
// probability E² + (v − E²)·λᵏ, for the mean error rate E and v the mean over states of the squared
// error rate.
func TestLossBurstsHaveTheRatesOfGilbertAndElliott(t *testing.T) {
	const count = 400_000
	for _, b := range []link.Bursts{
		{P: 0.01, R: 0.25, H: 0, K: 1},
		{P: 0.1, R: 0.3, H: 0.5, K: 0.98},
		{P: 0.9, R: 0.8, H: 0.1, K: 1},
		{P: 0.3, R: 0.7, H: 0.25, K: 0.75},
	} {
		lost := tries(11, link.Loss{Bursts: &b}, count)
		stationary, memory := b.P/(b.P+b.R), 1-b.P-b.R
		mean := stationary*(1-b.H) + (1-stationary)*(1-b.K)
		square := stationary*(1-b.H)*(1-b.H) + (1-stationary)*(1-b.K)*(1-b.K)
		for _, apart := range []int{0, 1, 2, 5} {
			want := mean
			if apart > 0 {
				want = mean*mean + (square-mean*mean)*math.Pow(memory, float64(apart))
			}
			hits := 0.0
			for i := apart; i < count; i++ {
				if lost[i] && lost[i-apart] {
					hits++
				}
			}
			// Neighbouring tries depend on each other, which widens the error by (1 + |λ|)/(1 −
			// |λ|) in variance.
			wide := math.Sqrt((1 + math.Abs(memory)) / (1 - math.Abs(memory)))
			if off := math.Abs(hits/count - want); off > 4*wide*math.Sqrt(want*(1-want)/count) {
				t.Errorf("%+v: share of losses %d apart %v, expected %v", b, apart, hits/count, want)
			}
		}
	}
}

func TestBurstsOfTheSimpleModelAreGeometric(t *testing.T) {
	b := link.Bursts{P: 0.02, R: 0.25, K: 1}
	lengths, run := map[int]float64{}, 0
	bursts := 0.0
	for _, lost := range tries(3, link.Loss{Bursts: &b}, 500_000) {
		if lost {
			run++
		} else if run > 0 {
			lengths[run]++
			bursts++
			run = 0
		}
	}
	for length := 1; length <= 12; length++ {
		want := b.R * math.Pow(1-b.R, float64(length-1))
		if off := math.Abs(lengths[length]/bursts - want); off > 4*math.Sqrt(want*(1-want)/bursts) {
			t.Errorf("%v of %v bursts are %d long, expected a share of %v", lengths[length], bursts, length, want)
		}
	}
}

// The first try is judged in the stationary state too.
func TestFirstTryIsLostWithTheMeanProbability(t *testing.T) {
	const edges = 20_000
	l := link.Loss{Drop: true, Bursts: &link.Bursts{P: 0.1, R: 0.3, H: 0.2, K: 0.9}}
	n := link.New(4, names(edges+1))
	n.SetDefault(link.Config{Loss: l})
	lost := 0.0
	for i := range int32(edges) {
		if n.Edge(edges, i).Send(0, 0).Lost {
			lost++
		}
	}
	const want = 0.25*0.8 + 0.75*0.1
	if math.Abs(lost/edges-want) > 4*math.Sqrt(want*(1-want)/edges) {
		t.Errorf("share of first tries lost %v, expected %v", lost/edges, want)
	}
}

func TestBurstsCarryOverAChange(t *testing.T) {
	stuck := link.Config{Loss: link.Loss{Drop: true, Bursts: &link.Bursts{P: 1e-9, R: 1e-9, K: 1}}}
	seen := map[bool]bool{}
	for seed := range uint64(20) {
		n := link.New(seed, names(2))
		n.Set(0, 1, stuck)
		first := n.Edge(0, 1).Send(0, 1).Lost
		seen[first] = true
		stuck.Delay = link.Constant{Delay: ms}
		n.Set(0, 1, stuck)
		if got := n.Edge(0, 1).Send(0, 1).Lost; got != first {
			t.Errorf("seed %d: lost %v at first, then %v", seed, first, got)
		}
	}
	if len(seen) != 2 {
		t.Error("every seed begins in the same state")
	}
}
