package dpsgd_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

func has(g actors.Graph, i, j int) bool {
	return g == nil || slices.Contains(g[i], int32(j))
}

// restricted is the matrix of the union's degrees with the weights of those edges alone.
func restricted(whole actors.Graph, edge func(i, j int) bool) [][]float64 {
	w := matrix(whole)
	for i := range w {
		for j := range w {
			if i != j && !edge(i, j) {
				w[i][i] += w[i][j]
				w[i][j] = 0
			}
		}
	}
	return w
}

// The topology changes in the middle of a step. In that step, peers average that are neighbours
// before and after the change; from the next step on, all present neighbours do. All topologies
// together determine the weights.
func TestEqualsTheMatrixFormulaWhenTheTopologyChanges(t *testing.T) {
	const n, rate, steps = 6, 0.1, 40
	ring := ringOf(n)
	star := simtest.Graph(n, func(i, _ int) bool { return i == 0 })
	pairs := simtest.Graph(n, func(i, j int) bool { return j-i == 3 })
	tree := simtest.Graph(n, func(i, j int) bool { return i == (j-1)/2 })
	whole := simtest.Graph(n, func(i, j int) bool {
		return has(ring, i, j) || has(star, i, j) || has(pairs, i, j) || has(tree, i, j)
	})
	for lead, order := range map[int][]actors.Graph{-1: {ring, star, pairs, ring}, 0: {ring, star, tree, ring}} {
		task := simtest.NewTask(n, 60, rate)
		s := simtest.Stage{Task: task, Graph: ring, Kind: dpsgd.Architecture{Lead: lead}, Distinct: true, Strict: true,
			Looks: []time.Duration{steps*simtest.StepTime + simtest.StepTime/2}}
		l := newLoop(task, matrix(whole), rate, 0, true)
		now := 0
		for step := range steps {
			next := now
			if step%10 == 5 && now+1 < len(order) {
				next++
				at := time.Duration(step)*simtest.StepTime + simtest.StepTime/2
				s.Topologies = append(s.Topologies, simtest.TopologyChange{At: at, Graph: order[next]})
			}
			l.w = restricted(whole, func(i, j int) bool { return has(order[now], i, j) && has(order[next], i, j) })
			l.step(step)
			now = next
		}
		d := worst(s.Run(t)[0], l.x)
		t.Logf("lead %d: distance %.1e", lead, d)
		if !(d <= 1e-6) {
			t.Errorf("lead %d: distance %.1e from the formula, want at most 1e-6", lead, d)
		}
	}
}

// With nodes that come and go besides, over slow links: when the last topology links all, everybody
// goes on.
func TestNobodyStandsStillWhenTheTopologyChanges(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if simtest.Brief() {
		seeds = 30
	}
	for seed := range seeds {
		if seed == seeds-1 {
			seed = 902 // wishes cross that were made in the middle of a step
		}
		random := rand.New(rand.NewPCG(seed, 9))
		n, lead := 3+random.IntN(6), random.IntN(4)-1
		// With a bounded lead all must hear of each other: node 0, which stays, links them.
		links := func(i, _ int) bool { return lead >= 0 && i == 0 || random.IntN(3) == 0 }
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(n, 20, 0.1), Graph: simtest.Graph(n, links),
			Detect: 100 * time.Millisecond, Reorder: seed%2 == 0, Observer: r, Strict: seed%8 == 0}
		s.Kind = dpsgd.Architecture{Lead: lead, Moved: float64(seed/5%2) * 0.05}
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(400)) * time.Millisecond}
		for at := range 12 {
			s.Topologies = append(s.Topologies, simtest.TopologyChange{
				At: time.Duration(at*350+random.IntN(350)) * time.Millisecond, Graph: simtest.Graph(n, links),
			})
		}
		// In the end everybody has an edge to node 0.
		s.Topologies = append(s.Topologies, simtest.TopologyChange{At: 4200 * time.Millisecond,
			Graph: simtest.Graph(n, func(i, _ int) bool { return i == 0 || random.IntN(4) == 0 })})
		if seed%3 > 0 {
			s.Shake(random, 14, 4*time.Second)
		}
		s.Looks = []time.Duration{25 * time.Second}
		look := s.Run(t)[0]
		if lagging := r.Lagging(look, 15*time.Second, 10); lagging != nil {
			t.Errorf("seed %d, %d nodes, %+v: in the last 10 s nodes %v have made fewer than 10 steps", seed, n, s.Kind,
				lagging)
		}
	}
}
