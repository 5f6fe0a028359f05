package adpsgd_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// bipartite is a random graph between even and odd nodes.
func bipartite(n int, random *rand.Rand) actors.Graph {
	return simtest.Graph(n, func(i, j int) bool { return (i+j)%2 == 1 && random.IntN(2) == 0 })
}

// Under a topology that changes all the time averaging leaves the sum of all models unchanged,
// nobody chooses one who is no neighbour, and nobody stands still.
func TestTopologyThatChangesMovesNoSumAndStopsNobody(t *testing.T) {
	t.Parallel()
	seeds := uint64(200)
	if simtest.Brief() {
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 8))
		n := 2 + random.IntN(6)
		r := &simtest.Recorder{}
		s := simtest.Stage{
			Task: simtest.NewTask(n, 20, 0), Graph: bipartite(n, random), Distinct: true, Observer: r,
			Reorder: seed%2 == 0, Strict: seed%8 == 0,
			Kind: adpsgd.Architecture{Graph: adpsgd.Topology, Lead: -1},
			Edge: link.Uniform{Max: time.Duration(1+random.IntN(300)) * time.Millisecond},
		}
		s.Task.Seed = seed
		for at := range 30 {
			s.Topologies = append(s.Topologies, simtest.TopologyChange{At: time.Duration(150+200*at) * time.Millisecond,
				Graph: bipartite(n, random)})
		}
		none := make(actors.Graph, n)
		s.Topologies = append(s.Topologies, simtest.TopologyChange{At: 7 * time.Second, Graph: none})
		s.Looks = []time.Duration{0, 10 * time.Second} // when no exchange is under way
		looks := s.Run(t)
		before, _ := simtest.Total(looks[0])
		after, _ := simtest.Total(looks[1])
		if d := simtest.Distance(after, before); !(d <= 1e-6) {
			t.Errorf("seed %d, %d nodes: the sum has moved by %.1e", seed, n, d)
		}
		chosen := 0
		for i, e := range r.Events {
			if e.Kind != actors.Selected {
				continue
			}
			chosen++
			now := s.Graph
			for _, c := range s.Topologies {
				if c.At < r.At[i] {
					now = c.Graph
				}
			}
			if !slices.Contains(now[r.Nodes[i]], int32(e.Origin)) {
				t.Errorf("seed %d: at %s node %d chooses %d, which is no neighbour", seed, r.At[i], r.Nodes[i],
					e.Origin)
			}
		}
		if chosen == 0 && n > 3 {
			t.Errorf("seed %d, %d nodes: nobody averages", seed, n)
		}
		if lagging := r.Lagging(looks[1], 8*time.Second, 10); lagging != nil {
			t.Errorf("seed %d: of %d nodes %v have made fewer than 10 steps in the last 2 s", seed, n, lagging)
		}
	}
}
