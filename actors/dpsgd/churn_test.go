package dpsgd_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/link"
)

// shake lets nodes of a run come and go at random instants up to end. Node 0 stays.
func shake(s *stage, random *rand.Rand, times int, end time.Duration) {
	n := len(s.task.Workers)
	there := make([]bool, n)
	for i := range there {
		if there[i] = i == 0 || random.IntN(4) > 0; !there[i] {
			s.absent = append(s.absent, i)
		}
	}
	for i := range times {
		node := 1 + random.IntN(n-1)
		do := actors.Join
		if there[node] {
			do = actors.Crash + actors.NodeEvent(random.IntN(2))
		}
		there[node] = !there[node]
		at := end * time.Duration(i) / time.Duration(times)
		s.schedule = append(s.schedule, actors.NodeChange{At: at + time.Duration(random.Int64N(int64(end)/int64(times))), Node: node, Do: do})
	}
}

// lead is a bound for graphs that stay connected, whoever goes but node 0: clocks must reach everybody.
func lead(graph string, random *rand.Rand) int {
	if graph == "star" || graph == "complete" {
		return random.IntN(3) - 1
	}
	return -1
}

// slow is a matrix that leads to a consensus slowly, so that there is still something to average when
// everybody has settled.
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
func bySteps(r *recorder, looks [][]seen) map[uint64][]seen {
	n := len(looks[0])
	step, ahead := make([]uint64, n), make([]uint64, n)
	for i, e := range r.events {
		node := r.nodes[i]
		switch e.Kind {
		case actors.StepDone:
			step[node] = e.Step
		case actors.UpdateApplied:
			ahead[node] = step[node] - e.Version
		}
	}
	steps := map[uint64][]seen{}
	for _, look := range looks {
		for node, m := range look {
			if m.params == nil {
				continue
			}
			at := m.version + ahead[node]
			if steps[at] == nil {
				steps[at] = make([]seen, n)
			}
			steps[at][node] = m
		}
	}
	return steps
}

// Nodes come and go over slow links. Whatever has become of the pairs, from then on the mean of those
// who are there is the same after every step while they approach each other.
func TestMixingIsDoublyStochasticAfterCrashesAndJoins(t *testing.T) {
	seeds, telling := uint64(60), 0
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 3))
		c := graphs[int(seed)%len(graphs)]
		r := &recorder{}
		s := stage{task: newTask(len(c.graph), 20, 0), graph: c.graph, distinct: true, strict: true, detect: 150 * time.Millisecond, reorder: seed%3 == 0, observer: r}
		s.kind = dpsgd.Architecture{Lead: lead(c.name, random), Moved: float64(seed/5%2) * 1e-6, Matrix: slow(c.graph)}
		s.task.Seed = seed
		s.edge = link.Uniform{Max: time.Duration(20+random.IntN(300)) * time.Millisecond}
		const end = 1200 * time.Millisecond
		shake(&s, random, 4+int(seed%7), end)
		for look := range 250 {
			s.looks = append(s.looks, end+3*time.Second+time.Duration(look)*stepTime/4)
		}
		looks := s.run(t)
		_, present := total(looks[0])
		var sums [][]float64
		var spreads []float64
		steps := bySteps(r, looks)
		for _, step := range slices.Sorted(maps.Keys(steps)) {
			if sum, n := total(steps[step]); n == present {
				sums, spreads = append(sums, sum), append(spreads, spread(steps[step]))
			}
		}
		for i := range sums {
			if d := distance(sums[i], sums[0]); !(d <= 1e-6) {
				t.Errorf("seed %d, %s, lead %d, moved %v: the sum moves by %.1e, want at most 1e-6", seed, c.name, s.kind.(dpsgd.Architecture).Lead, s.kind.(dpsgd.Architecture).Moved, d)
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
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 4))
		c := graphs[int(seed)%len(graphs)]
		r := &recorder{}
		s := stage{task: newTask(len(c.graph), 20, 0.1), graph: c.graph, detect: 100 * time.Millisecond, reorder: seed%2 == 0, observer: r, strict: seed%8 == 0}
		s.kind = dpsgd.Architecture{Lead: lead(c.name, random), Moved: float64(seed/5%2) * 0.05}
		s.task.Seed = seed
		s.edge = link.Uniform{Max: time.Duration(1+random.IntN(400)) * time.Millisecond}
		shake(&s, random, 14, 4*time.Second)
		s.looks = []time.Duration{20 * time.Second}
		look := s.run(t)[0]
		late := r.stepsAfter(len(look), 10*time.Second)
		for node, m := range look {
			if m.params != nil && late[node] < 10 {
				t.Errorf("seed %d, %s, %+v: node %d has made %d steps in the last 10 s", seed, c.name, s.kind, node, late[node])
			}
		}
	}
}

func TestJoiningPeerGoesOnWhereItsNeighboursAre(t *testing.T) {
	r := &recorder{}
	g := graphs[0]
	s := stage{task: newTask(6, 20, 0.1), graph: g.graph, kind: dpsgd.Architecture{Lead: -1}, strict: true, observer: r, absent: []int{2},
		schedule: []actors.NodeChange{{At: 2050 * time.Millisecond, Node: 2, Do: actors.Join}}, looks: []time.Duration{4 * time.Second}}
	s.run(t)
	for i, e := range r.events {
		if r.nodes[i] == 2 && e.Kind == actors.StepDone {
			// The others are in step 21 when it joins, whose model it has; it averages from the next on.
			if e.Step != 22 {
				t.Errorf("the first step of the peer that joins is %d, want 22", e.Step)
			}
			return
		}
	}
	t.Error("the peer that joins makes no step")
}

func TestGoneNeighbourHoldsNobodyUp(t *testing.T) {
	r := &recorder{}
	s := stage{task: newTask(5, 20, 0.1), graph: graphs[1].graph, kind: dpsgd.Architecture{Lead: -1}, strict: true, observer: r, detect: 500 * time.Millisecond,
		schedule: []actors.NodeChange{{At: 1050 * time.Millisecond, Node: 3, Do: actors.Crash}}, looks: []time.Duration{4 * time.Second}}
	s.run(t)
	for i, e := range r.events {
		if e.Kind == actors.Waited && r.nodes[i] == 0 && e.Duration > time.Millisecond {
			// Step 11 was sent before the crash, so that the hub's twelfth is the one that hangs.
			if want := 350 * time.Millisecond; e.Cause != "n3" || e.Duration < want-time.Millisecond || e.Duration > want+time.Millisecond {
				t.Errorf("the hub waited %v for %s, want %v for n3", e.Duration, e.Cause, want)
			}
			return
		}
	}
	t.Error("the hub has not waited for the neighbour that crashed")
}
