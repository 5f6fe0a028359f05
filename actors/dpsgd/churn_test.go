package dpsgd_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/compress"
)

// lead is a bound for graphs that stay connected, whoever goes but node 0: clocks must reach
// everybody.
func lead(graph string, random *rand.Rand) int {
	if graph == "star" || graph == "complete" {
		return random.IntN(3) - 1
	}
	return -1
}

// slow is a matrix that leads to a consensus slowly, so that there is still something to average
// when everybody has settled.
func slow(g actors.Graph) [][]float64 {
	w := make([][]float64, len(g))
	for i := range g {
		w[i] = make([]float64, len(g))
		w[i][i] = 1
		for _, j := range g[i] {
			w[i][j] = 1.0 / 64
			w[i][i] -= w[i][j]
		}
	}
	return w
}

// bySteps groups the models of looks by the step that they are at, of nodes that are there in all
// looks: their events tell how steps and versions belong together.
func bySteps(r *simtest.Recorder, looks [][]simtest.Seen) map[uint64][]simtest.Seen {
	n := len(looks[0])
	step, ahead := make([]uint64, n), make([]uint64, n)
	for i, e := range r.Events {
		node := r.Nodes[i]
		switch e.Kind {
		case actors.StepDone:
			step[node] = e.Step
		case actors.UpdateApplied:
			ahead[node] = step[node] - e.Version
		}
	}
	steps := map[uint64][]simtest.Seen{}
	for _, look := range looks {
		for node, m := range look {
			if m.Params == nil {
				continue
			}
			at := m.Version + ahead[node]
			if steps[at] == nil {
				steps[at] = make([]simtest.Seen, n)
			}
			steps[at][node] = m
		}
	}
	return steps
}

// Nodes come and go over slow links. Whatever has become of the pairs, from then on the mean of
// those who are there is the same after every step while they approach each other.
func TestMixingIsDoublyStochasticAfterCrashesAndJoins(t *testing.T) {
	t.Parallel()
	seeds, telling := uint64(60), 0
	if simtest.Brief() {
		seeds = 20
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 3))
		c := graphs[int(seed)%len(graphs)]
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(len(c.graph), 20, 0), Graph: c.graph, Distinct: true, Strict: true,
			Detect: 150 * time.Millisecond, Reorder: seed%3 == 0, Observer: r}
		s.Kind = dpsgd.Architecture{Lead: lead(c.name, random), Moved: float64(seed/5%2) * 1e-6, Matrix: slow(c.graph)}
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(20+random.IntN(300)) * time.Millisecond}
		const end = 1200 * time.Millisecond
		s.Shake(random, 4+int(seed%7), end)
		for look := range 250 {
			s.Looks = append(s.Looks, end+3*time.Second+time.Duration(look)*simtest.StepTime/4)
		}
		looks := s.Run(t)
		_, present := simtest.Total(looks[0])
		var sums [][]float64
		var spreads []float64
		steps := bySteps(r, looks)
		for _, step := range slices.Sorted(maps.Keys(steps)) {
			if sum, n := simtest.Total(steps[step]); n == present {
				sums, spreads = append(sums, sum), append(spreads, simtest.Spread(steps[step]))
			}
		}
		for i := range sums {
			if d := simtest.Distance(sums[i], sums[0]); !(d <= 1e-6) {
				t.Errorf("seed %d, %s, lead %d, moved %v: the sum moves by %.1e, want at most 1e-6", seed, c.name,
					s.Kind.(dpsgd.Architecture).Lead, s.Kind.(dpsgd.Architecture).Moved, d)
				break
			}
		}
		if len(sums) >= 10 && spreads[0] > 1e-2 && spreads[len(sums)-1] < 0.95*spreads[0] {
			telling++
		}
	}
	t.Logf("in %d of %d runs the models approached each other while they were looked at", telling, seeds)
	if telling < int(seeds)/3 {
		t.Errorf("in %d of %d runs only did the models approach each other: the test tells nothing", telling, seeds)
	}
}

// Without a learning rate of 0, and until everybody has made many steps: nobody is forgotten.
func TestNobodyStandsStillWhenNodesComeAndGo(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if simtest.Brief() {
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 4))
		c := graphs[int(seed)%len(graphs)]
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(len(c.graph), 20, 0.1), Graph: c.graph, Detect: 100 * time.Millisecond,
			Reorder: seed%2 == 0, Observer: r, Strict: seed%8 == 0}
		arch := dpsgd.Architecture{Lead: lead(c.name, random), Moved: float64(seed/5%2) * 0.05}
		switch seed / 10 % 3 {
		case 1:
			arch.Track, arch.Moved = true, 0
		case 2:
			arch.Choco = dpsgd.Choco{Compress: compress.Chain{compress.TopK{Share: 0.3}}, Rate: 0.3}
		}
		s.Kind = arch
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(400)) * time.Millisecond}
		s.Shake(random, 14, 4*time.Second)
		s.Looks = []time.Duration{20 * time.Second}
		look := s.Run(t)[0]
		if lagging := r.Lagging(look, 10*time.Second, 10); lagging != nil {
			t.Errorf("seed %d, %s, %+v: in the last 10 s nodes %v have made fewer than 10 steps", seed, c.name, s.Kind,
				lagging)
		}
	}
}

func TestJoiningPeerGoesOnWhereItsNeighboursAre(t *testing.T) {
	r := &simtest.Recorder{}
	g := graphs[0]
	s := simtest.Stage{Task: simtest.NewTask(6, 20, 0.1), Graph: g.graph, Kind: dpsgd.Architecture{Lead: -1},
		Strict: true, Observer: r, Absent: []int{2},
		Schedule: []world.NodeChange{{At: 2050 * time.Millisecond, Node: 2, Do: world.Join}},
		Looks:    []time.Duration{4 * time.Second}}
	s.Run(t)
	for i, e := range r.Events {
		if r.Nodes[i] == 2 && e.Kind == actors.StepDone {
			// The others are in step 21 when it joins, whose model it has; it averages from the
			// next on.
			if e.Step != 22 {
				t.Errorf("the first step of the peer that joins is %d, want 22", e.Step)
			}
			return
		}
	}
	t.Error("the peer that joins makes no step")
}

func TestGoneNeighbourHoldsNobodyUp(t *testing.T) {
	r := &simtest.Recorder{}
	s := simtest.Stage{Task: simtest.NewTask(5, 20, 0.1), Graph: graphs[1].graph, Kind: dpsgd.Architecture{Lead: -1},
		Strict: true, Observer: r, Detect: 500 * time.Millisecond,
		Schedule: []world.NodeChange{{At: 1050 * time.Millisecond, Node: 3, Do: world.Crash}},
		Looks:    []time.Duration{4 * time.Second}}
	s.Run(t)
	for i, e := range r.Events {
		if e.Kind == actors.Waited && r.Nodes[i] == 0 && e.Duration > time.Millisecond {
			// Step 11 was sent before the crash, so that the hub's twelfth is the one that hangs.
			if want := 350 * time.Millisecond; e.Cause != "n3" || e.Duration < want-time.Millisecond ||
				e.Duration > want+time.Millisecond {
				t.Errorf("the hub waited %v for %s, want %v for n3", e.Duration, e.Cause, want)
			}
			return
		}
	}
	t.Error("the hub has not waited for the neighbour that crashed")
}
