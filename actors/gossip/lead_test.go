package gossip_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/gossip"
	peers "github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
	"github.com/gradwire/gradwire/nn/optim"
)

// circle is the ring of n nodes.
func circle(n int) actors.Graph {
	g := make(actors.Graph, n)
	for i := range g {
		before, after := int32((i+n-1)%n), int32((i+1)%n)
		g[i] = []int32{min(before, after), max(before, after)}
	}
	return g
}

// pace counts the steps of all nodes that are there, and notes the largest lead of any.
type pace struct {
	steps []uint64
	lead  uint64
	slow  int // waits for node 0
}

func (p *pace) Observe(_ time.Duration, node int, event actors.Event) {
	switch {
	case event.Kind == actors.Waited && event.Cause == "n0":
		p.slow++
	case event.Kind == actors.StepDone:
		p.steps[node] = event.Step
		for _, other := range p.steps {
			if event.Step > other {
				p.lead = max(p.lead, event.Step-other)
			}
		}
	}
}

// A step may begin when its peer is no more than the bound ahead, so that at its end the peer is
// no more than one more ahead.
func TestNobodyIsFurtherAheadThanTheLeadAndNobodyStandsStill(t *testing.T) {
	t.Parallel()
	seeds := 40
	if simtest.Brief() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		for bound, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull, gossip.Push} {
			seen := &pace{steps: make([]uint64, 6)}
			s := &stage{task: newTask(6, 6, 2, 3, 2), rules: all(exchange, seed%2 == 0),
				steps: []time.Duration{31 * ms, 5 * ms}, observer: seen, end: 3 * time.Second}
			s.task.Seed = seed
			s.rules.Lead = bound
			s.rules.Every = 1 + int(seed%3)
			s.edge, s.reorder = link.Uniform{Min: 0, Max: 40 * ms}, seed%4 < 2
			if seed%5 != 0 {
				s.topologies = []actors.Graph{circle(6)}
			}
			s.run(t)
			if seen.lead > uint64(bound)+1 {
				t.Fatalf("seed %d, lead %d: somebody was %d steps ahead at the end of a step", seed, bound, seen.lead)
			}
			if bound > 0 && seen.lead < uint64(bound) {
				t.Errorf("seed %d, lead %d: nobody was more than %d steps ahead", seed, bound, seen.lead)
			}
			for node, steps := range seen.steps {
				if steps < 10 {
					t.Fatalf("seed %d, lead %d: node %d made %d steps in 3 s", seed, bound, node, steps)
				}
			}
			if bound == 3 && seen.slow == 0 {
				t.Errorf("seed %d: nobody waited for the slow one by name", seed)
			}
		}
	}
}

// A peer tells its hub of each step, and the hub everybody of each that all have made: 2·n messages
// a step. Nobody repeats what the hub has said.
func TestLeadOnACompleteTopologyTakesMessagesInProportionToThePeers(t *testing.T) {
	const n, steps = 40, 20
	sent := func(lead int) (messages int64) {
		seen := &pace{steps: make([]uint64, n)}
		s := &stage{task: newTask(n, 6, 2, 3, 2), rules: all(gossip.Push, false), edge: constant(ms),
			steps: []time.Duration{10 * ms, 11 * ms}, observer: seen, end: (steps + 1) * 11 * ms}
		s.rules.Choice, s.rules.Lead = gossip.Choice{By: gossip.Random, Count: 1}, lead
		s.run(t)
		if lead >= 0 && (slices.Min(seen.steps) < steps-3 || seen.lead > uint64(lead)+1) {
			t.Errorf("lead %d: steps of the nodes: %v, one was %d ahead", lead, seen.steps, seen.lead)
		}
		made := uint64(0)
		for _, steps := range seen.steps {
			made += steps
		}
		for _, u := range s.network.Used() {
			messages += u.Sent
		}
		return messages - int64(made) // each step sends a model
	}
	if free := sent(gossip.NoLead); free > n {
		t.Fatalf("without a bound %d messages are no models", free)
	}
	for lead := range 3 {
		clocks := sent(lead)
		if clocks < n*steps || clocks > 2*n*(steps+2) {
			t.Errorf("lead %d: %d clocks in %d steps of %d peers", lead, clocks, steps, n)
		}
		told := peers.LeadMessages(lead, n-1, n) * n * steps
		if share := float64(clocks) / told; share < 0.5 || share > 1.25 {
			t.Errorf("lead %d: %d clocks, %v are estimated", lead, clocks, told)
		}
	}
}

// late counts steps near the end.
type late struct {
	from  time.Duration
	steps []int
}

func (l *late) Observe(at time.Duration, node int, event actors.Event) {
	if event.Kind == actors.StepDone && at > l.from {
		l.steps[node]++
	}
}

// churn plays a random schedule of crashes, departures and joins in the first two seconds, the
// run's coordinator leading it to the third.
func churn(t *testing.T, seed uint64, rules gossip.Architecture) *late {
	const n = 6
	random := rand.New(rand.NewPCG(seed, 7))
	s := &stage{task: newTask(n, 6, 2, 3, 2), rules: rules, steps: []time.Duration{20 * ms, 7 * ms, 3 * ms},
		edge: link.Uniform{Min: 0, Max: 30 * ms}}
	s.task.Seed = seed
	seen := &late{from: 2500 * ms, steps: make([]int, n)}
	s.observer = seen
	if seed%2 == 0 {
		s.topologies = []actors.Graph{circle(n)}
	}
	s.led(t, 3*time.Second, func(d *world.Deployment, run *coordinator.Run) {
		run.Policy.Every.Time, run.Holders = 300*ms, []int{0, 1, 2, 3, 4, 5}
		d.Detect = time.Duration(random.IntN(80)) * ms
		for i := range d.Nodes {
			d.Nodes[i].Absent = i > 0 && random.IntN(4) == 0
		}
		for range 25 {
			at := time.Duration(random.IntN(2000)) * ms
			do := []world.NodeEvent{world.Crash, world.Leave, world.Join, world.Join}[random.IntN(4)]
			d.Schedule = append(d.Schedule, world.NodeChange{At: at, Node: random.IntN(n), Do: do})
		}
		for node := range n { // all of those that are missing, together
			d.Schedule = append(d.Schedule, world.NodeChange{At: 2 * time.Second, Node: node, Do: world.Join})
		}
	})
	return seen
}

func TestPeersThatComeAndGoStopNobody(t *testing.T) {
	t.Parallel()
	seeds := 60
	if simtest.Brief() {
		seeds = 12
	}
	for seed := range uint64(seeds) {
		for i, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
			rules := all(exchange, seed%4 < 2)
			rules.Lead = []int{gossip.NoLead, 0, 3}[(seed/2+uint64(i))%3]
			rules.Choice.Share = 0.5
			if seed%7 == 0 {
				rules.Every, rules.Period, rules.Wait = 0, 11*ms, false
			}
			// Where the lead is bounded, the others may wait for one that started over.
			steps := churn(t, seed, rules).steps
			if slices.Max(steps) < 5 || (rules.Lead == gossip.NoLead && slices.Min(steps) < 5) {
				t.Errorf("seed %d, %+v: steps of the nodes in the last half of a second: %v", seed, rules, steps)
			}
		}
	}
}

// led lets the run's coordinator lead peers for so long, with what arrange changes.
func (s *stage) led(
	t *testing.T, end time.Duration, arrange func(d *world.Deployment, run *coordinator.Run),
) coordinator.Result {
	t.Helper()
	var result coordinator.Result
	run := coordinator.Run{
		Policy:  coordinator.Policy{Every: coordinator.Interval{Time: time.Hour}, Time: end},
		Samples: s.task.Train.Len(), Holders: []int{1}, Result: &result,
		Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
	}
	c := s.config(func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	})
	c.Deployment.Bounded = true
	arrange(c.Deployment, &run)
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatalf("seed %d, %s: %v", s.task.Seed, s.rules.Exchange, err)
	}
	return result
}

// Two pairs that know nothing of each other stand still after a step; then an edge between them
// appears.
func TestNewNeighboursHearHowFarThoseAreWhoWait(t *testing.T) {
	seen := &late{from: 100 * ms, steps: make([]int, 4)}
	s := &stage{task: newTask(4, 6, 2, 3, 2), rules: all(gossip.Push, true), steps: []time.Duration{10 * ms},
		edge: constant(ms), observer: seen}
	s.rules.Lead = 0
	s.topologies = []actors.Graph{{{1}, {0}, {3}, {2}}, {{1}, {0, 2}, {1, 3}, {2}}}
	s.led(t, 400*ms, func(_ *world.Deployment, run *coordinator.Run) {
		run.Topologies = []coordinator.TopologyChange{{At: 200 * ms, Topology: 1}}
	})
	if slices.Min(seen.steps) < 5 {
		t.Errorf("steps after the first: %v", seen.steps)
	}
}

// The answers of the only one with a model are never sent: it leaves while it is being asked.
func TestThoseWhoJoinTogetherDoNotWaitForEachOther(t *testing.T) {
	events := &log{}
	s := &stage{task: newTask(4, 6, 2, 3, 2), rules: all(gossip.Push, true), steps: []time.Duration{10 * ms},
		edge: constant(20 * ms), observer: events}
	s.led(t, time.Second, func(d *world.Deployment, _ *coordinator.Run) {
		for node := 1; node < 4; node++ {
			d.Nodes[node].Absent = true
			d.Schedule = append(d.Schedule, world.NodeChange{At: 100*ms + time.Duration(node), Node: node,
				Do: world.Join})
		}
		d.Schedule = append(d.Schedule, world.NodeChange{At: 110 * ms, Node: 0, Do: world.Leave})
	})
	for node := 1; node < 4; node++ {
		if n := len(events.of(node, actors.StepDone)); n < 10 {
			t.Errorf("node %d made %d steps", node, n)
		}
	}
}

// Two peers, without exchanges until the tenth step: the one that joins after 55 ms asks, has the
// other's model of 5 steps at 57 ms, and ends its first step, the sixth, at 67 ms.
func TestPeerThatJoinsGoesOnWhereItsNeighbourIs(t *testing.T) {
	events := &log{}
	s := &stage{task: countingTask(1, 1), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms},
		edge: constant(ms), observer: events}
	s.rules.Every = 10
	result := s.led(t, 68*ms, func(d *world.Deployment, _ *coordinator.Run) {
		d.Nodes[1].Absent = true
		d.Schedule = []world.NodeChange{{At: 55 * ms, Node: 1, Do: world.Join}}
	})
	steps := events.of(1, actors.StepDone)
	if len(steps) != 1 || steps[0].at != 67*ms || steps[0].Step != 6 {
		t.Errorf("steps of the one that joins: %+v", steps)
	}
	updates := events.of(1, actors.UpdateApplied)
	if len(updates) != 1 || updates[0].Version != 6 {
		t.Errorf("its updates: %+v", updates)
	}
	if got := result.Models[0].Params[0]; got != 6 {
		t.Errorf("its model has %v, want its neighbour's 5 steps and 1 of the peer's", got)
	}
}

// asked is a rate of learning that notes which steps it is asked for.
type asked struct{ steps []int }

func (a *asked) Rate(step int) float64 {
	a.steps = append(a.steps, step)
	return 0.1
}

// The peers are the same as in the test above.
func TestRateOfPeerThatJoinsIsThatOfItsStep(t *testing.T) {
	rate := &asked{}
	s := &stage{task: newTask(2, 6, 2, 3, 2), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms},
		edge: constant(ms)}
	s.task.Method = optim.SGD{Rate: rate}
	s.rules.Every = 10
	s.led(t, 68*ms, func(d *world.Deployment, _ *coordinator.Run) {
		d.Nodes[1].Absent = true
		d.Schedule = []world.NodeChange{{At: 55 * ms, Node: 1, Do: world.Join}}
	})
	// At 10 to 60 ms the first peer makes six steps, and at 67 ms the one that has joined its
	// first.
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 5}, rate.steps); diff != "" {
		t.Error(diff)
	}
}
