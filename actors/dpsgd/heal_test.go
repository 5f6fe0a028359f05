package dpsgd_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// path joins each of n nodes to the next.
func path(n int) actors.Graph {
	return simtest.Graph(n, func(i, j int) bool { return j-i == 1 })
}

// sparse is a path with some further edges, so that it has cycles and is easily cut.
func sparse(random *rand.Rand, n int) actors.Graph {
	g := path(n)
	for range n / 3 {
		i, j := random.IntN(n), random.IntN(n)
		if at, found := slices.BinarySearch(g[i], int32(j)); i != j && !found {
			g[i] = slices.Insert(g[i], at, int32(j))
			at, _ = slices.BinarySearch(g[j], int32(i))
			g[j] = slices.Insert(g[j], at, int32(i))
		}
	}
	return g
}

// ringOf closes a path.
func ringOf(n int) actors.Graph {
	return simtest.Graph(n, func(i, j int) bool { return j-i == 1 || j-i == n-1 })
}

// parting is a schedule in which nodes come and go, so that those who are there fall into parts of
// different paces and are linked again, also through cycles and by several at once; from the
// instant that it returns on all are there.
func parting(s *simtest.Stage, random *rand.Rand) time.Duration {
	const end = 3 * time.Second
	n := len(s.Task.Workers)
	s.Shake(random, 6+random.IntN(20), end)
	there := make([]bool, n)
	for i := range there {
		there[i] = !slices.Contains(s.Absent, i)
	}
	for _, c := range s.Schedule {
		there[c.Node] = c.Do == world.Join
	}
	whole := 2*end + time.Duration(random.IntN(2))*time.Second
	for i := range there {
		if !there[i] {
			at := 2*end + time.Duration(random.Int64N(int64(whole-2*end+1)))
			s.Schedule = append(s.Schedule, world.NodeChange{At: at, Node: i, Do: world.Join})
		}
	}
	slices.SortStableFunc(s.Schedule, func(a, b world.NodeChange) int { return int(a.At - b.At) })
	return whole
}

// A part may have to catch up with hundreds of steps of another, but nobody waits for ever.
func TestPartsOfDifferentPaceGoOnTogetherOnceTheyAreLinkedAgain(t *testing.T) {
	t.Parallel()
	seeds, apart := uint64(300), 0
	switch {
	case testing.Short():
		seeds = 6
	case simtest.Brief():
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 11))
		n := 4 + random.IntN(7)
		g := []actors.Graph{ringOf(n), path(n), sparse(random, n)}[seed%3]
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(n, 20, 0.1), Graph: g, Reorder: seed%2 == 0, Observer: r,
			Strict: seed%16 == 0}
		arch := dpsgd.Architecture{Lead: max(random.IntN(5)-2, -1), Moved: float64(seed/5%2) * 0.05}
		s.Kind, s.Task.Seed, s.Detect = arch, seed, time.Duration(random.IntN(300))*time.Millisecond
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(100)) * time.Millisecond}
		for range n {
			s.Step = append(s.Step, time.Duration(10+random.IntN(90))*time.Millisecond)
		}
		whole := parting(&s, random)
		s.Looks = []time.Duration{75 * time.Second}
		s.Run(t)
		before := make([]uint64, n)
		for i, e := range r.Events {
			if e.Kind == actors.StepDone && r.At[i] < whole {
				before[r.Nodes[i]] = e.Step
			}
		}
		if slices.Max(before) > slices.Min(before)+50 {
			apart++
		}
		if late := r.StepsAfter(n, 70*time.Second); slices.Min(late) < 3 {
			t.Errorf("seed %d, %d nodes, %+v: the nodes have made %v steps in the last 5 s", seed, n, arch, late)
		}
	}
	t.Logf("in %d of %d runs nodes were far apart", apart, seeds)
	if apart < int(seeds)/10 {
		t.Errorf("in %d of %d runs only were nodes far apart: the test tells nothing", apart, seeds)
	}
}
