package fluid_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/cluster/link/fluid"
)

// happening is a flow that starts, or, without bytes, a capacity that changes.
type happening struct {
	at, bytes, capacity float64
	over                []int32
}

// slow is the ends of the flows by an event loop that computes all rates anew after each event, by
// bisection of the level to which the flows that are not held yet can rise together.
func slow(capacities []float64, all []happening) []float64 {
	capacities = slices.Clone(capacities)
	ends := make([]float64, len(all))
	left := map[int]float64{}
	for now, next := 0.0, 0; next < len(all) || len(left) > 0; {
		rates := levels(capacities, all, left)
		until, which := math.Inf(1), -1
		for i := range all {
			if b, under := left[i]; under && rates[i] > 0 && now+b/rates[i] < until {
				until, which = now+b/rates[i], i
			}
		}
		if next < len(all) && all[next].at <= until {
			until, which = all[next].at, -1
		}
		for i := range left {
			left[i] -= rates[i] * (until - now)
		}
		now = until
		switch {
		case which >= 0:
			ends[which] = now
			delete(left, which)
			continue
		case all[next].bytes > 0:
			left[next] = all[next].bytes
		default:
			capacities[all[next].over[0]] = all[next].capacity
		}
		next++
	}
	return ends
}

func levels(capacities []float64, all []happening, left map[int]float64) map[int]float64 {
	rates, held := map[int]float64{}, map[int]bool{}
	used := func(level float64) []float64 {
		sums := make([]float64, len(capacities))
		for i := range all {
			if _, under := left[i]; !under {
				continue
			}
			rate := level
			if held[i] {
				rate = rates[i]
			}
			for _, r := range all[i].over {
				sums[r] += rate
			}
		}
		return sums
	}
	for len(held) < len(left) {
		low, high := 0.0, slices.Max(capacities)*2
		for range 80 {
			middle, fits := (low+high)/2, true
			for r, sum := range used(middle) {
				fits = fits && sum <= capacities[r]*(1+1e-15)
			}
			if fits {
				low = middle
			} else {
				high = middle
			}
		}
		sums := used(low)
		for i := range left {
			full := func(r int32) bool { return sums[r] >= capacities[r]*(1-1e-12) }
			if !held[i] && slices.ContainsFunc(all[i].over, full) {
				rates[i], held[i] = low, true
			}
		}
	}
	return rates
}

// quick is the same ends by the package, whose rates are checked on the way.
func quick(t *testing.T, capacities []float64, all []happening) []float64 {
	n, present := &fluid.Network{}, slices.Clone(capacities)
	for _, c := range capacities {
		n.Add(c)
	}
	ends, of := make([]float64, len(all)), map[int32]int{}
	for next := 0; next < len(all) || len(of) > 0; {
		id, at := n.Next()
		switch {
		case next >= len(all) || at < all[next].at:
			ends[of[id]] = at
			delete(of, id)
			n.End(at, id)
			check(t, n, present, all, of)
			continue
		case all[next].bytes > 0:
			of[n.Start(all[next].at, all[next].bytes, all[next].over...)] = next
		default:
			r := all[next].over[0]
			present[r] = all[next].capacity
			n.SetCapacity(all[next].at, r, present[r])
		}
		check(t, n, present, all, of)
		next++
	}
	return ends
}

// check holds the rates to what makes an allocation max–min fair: no resource carries more than it
// can, and each flow crosses one that is full and on which nobody has more.
func check(t *testing.T, n *fluid.Network, capacities []float64, all []happening, of map[int32]int) {
	t.Helper()
	sums, most := make([]float64, len(capacities)), make([]float64, len(capacities))
	for id, i := range of {
		for _, r := range all[i].over {
			sums[r] += n.Rate(id)
			most[r] = max(most[r], n.Rate(id))
		}
	}
	for r, sum := range sums {
		if sum > capacities[r]*(1+1e-12) {
			t.Fatalf("resource %d carries %g of %g", r, sum, capacities[r])
		}
	}
	for id, i := range of {
		if !slices.ContainsFunc(all[i].over, func(r int32) bool {
			return sums[r] >= capacities[r]*(1-1e-12) && n.Rate(id) >= most[r]*(1-1e-12)
		}) {
			t.Fatalf("nothing holds flow %d to %g", i, n.Rate(id))
		}
	}
}

func TestFlowsEndAsByASlowSolver(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		capacities := make([]float64, 1+random.IntN(8))
		for i := range capacities {
			capacities[i] = 0.1 + random.Float64()
		}
		var all []happening
		for at := 0.0; len(all) < 30; at += random.ExpFloat64() * 300 {
			order := random.Perm(len(capacities))
			h := happening{at: at, capacity: 0.1 + random.Float64()}
			if random.IntN(4) == 0 {
				h.over = []int32{int32(order[0])}
			} else {
				h.bytes = 1 + 1000*random.Float64()
				for _, r := range order[:1+random.IntN(min(fluid.MaxCrossed, len(order)))] {
					h.over = append(h.over, int32(r))
				}
			}
			all = append(all, h)
		}
		want := slow(capacities, all)
		for i, end := range quick(t, capacities, all) {
			if math.Abs(end-want[i]) > 1e-9*want[i] {
				t.Fatalf("case %d: flow %d ends at %g, want %g", seed, i, end, want[i])
			}
		}
	}
}

func TestEqualFlowsEndTogetherInTheOrderInWhichTheyBegan(t *testing.T) {
	n := &fluid.Network{}
	r := n.Add(2)
	var began []int32
	for range 8 {
		began = append(began, n.Start(0, 1000, r))
	}
	for _, want := range began {
		if id, at := n.Next(); id != want || math.Abs(at-4000) > 1e-9 {
			t.Fatalf("flow %d ends at %g, want flow %d at 4000", id, at, want)
		}
		n.End(4000, want)
	}
}

func TestAFlowWaitsWhileItsResourceCarriesNothing(t *testing.T) {
	n := &fluid.Network{}
	r := n.Add(1)
	id := n.Start(0, 100, r)
	n.SetCapacity(40, r, 0)
	if _, at := n.Next(); !math.IsInf(at, 1) {
		t.Fatalf("ends at %g without a rate", at)
	}
	n.SetCapacity(1000, r, 2)
	if got, at := n.Next(); got != id || at != 1030 {
		t.Fatalf("ends at %g, want 1030", at)
	}
}

func TestFlowsThatComeAndGoAllocateNothing(t *testing.T) {
	n := &fluid.Network{}
	up, edge, down := n.Add(1), n.Add(2), n.Add(3)
	now := 0.0
	step := func() {
		n.Start(now, 100, up, edge, down)
		n.Start(now, 50, edge)
		for range 2 {
			id, at := n.Next()
			now = at
			n.End(at, id)
		}
	}
	step()
	if a := testing.AllocsPerRun(100, step); a != 0 {
		t.Fatalf("%g allocations", a)
	}
}
