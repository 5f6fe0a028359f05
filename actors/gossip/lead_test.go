package gossip_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
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
	seeds := 60
	if testing.Short() {
		seeds = 10
	}
	for seed := range uint64(seeds) {
		for bound, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull, gossip.Push} {
			seen := &pace{steps: make([]uint64, 6)}
			s := &stage{task: newTask(6, 6, 2, 3, 2), rules: all(exchange, seed%2 == 0), steps: []time.Duration{31 * ms, 5 * ms}, observer: seen, end: 3 * time.Second}
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
	s := &stage{task: newTask(n, 6, 2, 3, 2), rules: rules, steps: []time.Duration{20 * ms, 7 * ms, 3 * ms}, edge: link.Uniform{Min: 0, Max: 30 * ms}}
	s.task.Seed = seed
	seen := &late{from: 2500 * ms, steps: make([]int, n)}
	s.observer = seen
	if seed%2 == 0 {
		s.topologies = []actors.Graph{circle(n)}
	}
	var result coordinator.Result
	run := coordinator.Run{
		Policy:  coordinator.Policy{Every: coordinator.Interval{Time: 300 * ms}, Time: 3 * time.Second},
		Samples: s.task.Train.Len(), Holders: []int{0, 1, 2, 3, 4, 5}, Result: &result,
		Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
	}
	c := s.config(func(env actors.Env, control actors.Control) (actor.Actor, error) {
		return coordinator.New(run, env, control)
	})
	c.Deployment.Detect = time.Duration(random.IntN(80)) * ms
	c.Deployment.Bounded = true
	for i := range c.Deployment.Nodes {
		c.Deployment.Nodes[i].Absent = i > 0 && random.IntN(4) == 0
	}
	add := func(at time.Duration, node int, do actors.NodeEvent) {
		c.Deployment.Schedule = append(c.Deployment.Schedule, actors.NodeChange{At: at, Node: node, Do: do})
	}
	for range 25 {
		at := time.Duration(random.IntN(2000)) * ms
		add(at, random.IntN(n), []actors.NodeEvent{actors.Crash, actors.Leave, actors.Join, actors.Join}[random.IntN(4)])
	}
	for node := range n {
		add(2*time.Second, node, actors.Join) // all of those that are missing, together
	}
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatalf("seed %d, %s: %v", seed, rules.Exchange, err)
	}
	return seen
}

func TestPeersThatComeAndGoStopNobody(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 20
	}
	for seed := range uint64(seeds) {
		for i, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
			rules := all(exchange, seed%4 < 2)
			rules.Lead = []int{gossip.NoLead, 0, 3}[(seed/2+uint64(i))%3]
			rules.Choice.Share = 0.5
			if seed%7 == 0 {
				rules.Every, rules.Period, rules.Wait = 0, 11*ms, false
			}
			// Where the lead is bounded, the others may wait for one that began anew.
			steps := churn(t, seed, rules).steps
			if slices.Max(steps) < 5 || (rules.Lead == gossip.NoLead && slices.Min(steps) < 5) {
				t.Errorf("seed %d, %+v: steps of the nodes in the last half of a second: %v", seed, rules, steps)
			}
		}
	}
}

// Two peers, without exchanges until the tenth step: the one that joins after 55 ms asks, has the other's
// model of 5 steps at 57 ms, and ends its first step, the sixth, at 67 ms.
func TestPeerThatJoinsGoesOnWhereItsNeighbourIs(t *testing.T) {
	events := &log{}
	s := &stage{task: countingTask(1, 1), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms}, edge: constant(ms), observer: events}
	s.rules.Every = 10
	var result coordinator.Result
	c := s.config(func(env actors.Env, control actors.Control) (actor.Actor, error) {
		return coordinator.New(coordinator.Run{
			Policy:  coordinator.Policy{Every: coordinator.Interval{Time: time.Second}, Time: 68 * ms},
			Samples: 8, Holders: []int{1}, Result: &result, Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
		}, env, control)
	})
	c.Deployment.Bounded = true
	c.Deployment.Nodes[1].Absent = true
	c.Deployment.Schedule = []actors.NodeChange{{At: 55 * ms, Node: 1, Do: actors.Join}}
	w, err := sim.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	steps := events.of(1, actors.StepDone)
	if len(steps) != 1 || steps[0].at != 67*ms || steps[0].Step != 6 {
		t.Errorf("steps of the one that joins: %+v", steps)
	}
	updates := events.of(1, actors.UpdateApplied)
	if len(updates) != 1 || updates[0].Version != 6 {
		t.Errorf("its updates: %+v", updates)
	}
	if got := fmt.Sprint(result.Params[0]); got != "6" || math.IsNaN(float64(result.Params[0])) {
		t.Errorf("its model has %s, want 5 of its neighbour's steps and one of its own", got)
	}
}
