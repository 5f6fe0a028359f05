package coordinator_test

import (
	"math"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/world"
)

// holders returns a player for each model. Each holds and trains, one step every 10 ms.
func holders(models ...float32) []player {
	var players []player
	for _, m := range models {
		players = append(players, player{steps: every(10*ms, 50), models: []float32{m}, holds: true})
	}
	return players
}

func TestMembersHearOfEachViewAndThoseThatJoinAreStarted(t *testing.T) {
	s := &script{
		players: holders(0.1, 0.2, 0.3, 0.4), samples: 1000, absent: []int{3},
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 50 * ms}, Time: 100 * ms},
		schedule: []world.NodeChange{
			{At: 20 * ms, Node: 1, Do: world.Crash}, {At: 31 * ms, Node: 3, Do: world.Join},
			{At: 47 * ms, Node: 0, Do: world.Leave},
		},
		topologies: []actors.Graph{nil, {{2}, {2}, {0, 1, 3}, {2}}},
		changes:    []coordinator.TopologyChange{{At: 60 * ms, Topology: 1}},
	}
	s.run(t)
	equal(t, "heard", []string{
		"22ms n0 view 2 [0 2] near [2]", "22ms n2 view 2 [0 2] near [0]",
		"31ms n0 view 3 [0 2 3] near [2 3]", "31ms n2 view 3 [0 2 3] near [0 3]", "31ms n3 view 3 [0 2 3] near [0 2]",
		"31ms n3 joins view 3",
		"47ms n2 view 4 [2 3] near [3]", "47ms n3 view 4 [2 3] near [2]",
		"60ms n2 view 5 [2 3] near [3]", "60ms n3 view 5 [2 3] near [2]",
	}, s.heard)
}

// Node 0 joins at 35 ms, holds no trained model at 40 ms, and has made a step before 50 ms.
func TestOnlyThePresentAreEvaluated(t *testing.T) {
	s := &script{
		players: holders(0.1, 0.2, 0.3), samples: 1000,
		policy:   coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 50 * ms, Lag: ms},
		schedule: []world.NodeChange{{At: 15 * ms, Node: 0, Do: world.Leave}, {At: 35 * ms, Node: 0, Do: world.Join}},
	}
	s.run(t)
	type look struct{ at, node int }
	var got []look
	for _, e := range s.evaluated() {
		got = append(got, look{int(e.At / ms), e.Origin})
	}
	want := []look{{0, 0}, {0, 1}, {0, 2}, {20, 1}, {20, 2}, {40, 1}, {40, 2}, {50, 0}, {50, 1}, {50, 2}}
	if len(got) != len(want) {
		t.Fatalf("looked at %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("looked at %v, want %v", got, want)
		}
	}
}

// Node 0 joins at 35 ms. It is asked beside the sample of two until it is known to hold a trained
// model, and takes no place in it before.
func TestNodeThatJoinsTakesNoPlaceInASampleWithoutAModel(t *testing.T) {
	s := &script{
		players: holders(0.1, 0.2, 0.3), samples: 1000, absent: []int{0},
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 110 * ms, Lag: ms,
			Sample: 2},
		schedule: []world.NodeChange{{At: 35 * ms, Node: 0, Do: world.Join}, {At: 90 * ms, Node: 2, Do: world.Leave}},
	}
	s.run(t)
	looked := map[time.Duration][]int{}
	for _, e := range s.evaluated() {
		looked[e.At] = append(looked[e.At], e.Origin)
	}
	for at, nodes := range looked {
		if len(nodes) != 2 {
			t.Errorf("nodes %v are evaluated at %v, which is no sample of two", nodes, at)
		}
	}
	equal(t, "evaluated at 40 ms", []int{1, 2}, looked[40*ms])
	equal(t, "evaluated at 100 ms", []int{0, 1}, looked[100*ms])
}

// A node that is asked for its model and is gone before it answers, for which it takes 5 ms,
// keeps nobody waiting: not the verdicts behind it, and not the end of the run.
func TestSnapshotOfANodeThatGoesIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		crash time.Duration
		looks []time.Duration // at the node's model
	}{
		{19 * ms, []time.Duration{0}},
		{22 * ms, []time.Duration{0}},
		{27 * ms, []time.Duration{0, 20 * ms}},
		{52 * ms, []time.Duration{0, 20 * ms, 40 * ms}},
	} {
		s := &script{
			players: holders(0.1, 0.2, 0.3), samples: 1000,
			policy:   coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 50 * ms, Lag: ms},
			schedule: []world.NodeChange{{At: c.crash, Node: 2, Do: world.Crash}},
		}
		s.players[2].charge = 5 * ms
		s.run(t)
		var looks []time.Duration
		for _, e := range s.evaluated() {
			if e.Origin == 2 {
				looks = append(looks, e.At)
			}
		}
		equal(t, "looks at the node that crashes at "+c.crash.String(), c.looks, looks)
		last := s.evaluated()[len(s.evaluated())-1]
		if last.At != 50*ms || last.Origin != 1 {
			t.Errorf("crash at %v: the last verdict is on node %d at %v", c.crash, last.Origin, last.At)
		}
		equal(t, "final models", []float32{0.1, 0.2}, s.params())
	}
}

// What a node has answered in its former life may come when another life of it is there, and the
// evaluation was settled without it.
func TestSnapshotOfAFormerLifeOfANodeIsIgnored(t *testing.T) {
	for seed := range uint64(20) {
		s := &script{players: []player{{steps: every(3*ms, 60), holds: true, models: []float32{0.5}},
			{steps: every(3*ms, 60), holds: true, models: []float32{0.25}}}, samples: 1000, seed: seed, late: 20 * ms,
			policy: coordinator.Policy{Every: coordinator.Interval{Time: 2 * ms}, Time: 200 * ms}}
		for at := 20 * ms; at < 180*ms; at += 15 * ms {
			s.schedule = append(s.schedule, world.NodeChange{At: at, Node: 1, Do: world.Leave},
				world.NodeChange{At: at + ms, Node: 1, Do: world.Join})
		}
		if s.run(t); len(s.result.Models) != 2 {
			t.Errorf("seed %d: %d models", seed, len(s.result.Models))
		}
	}
}

func TestSampleOfModelsIsOfItsSizeAndStaysTheSame(t *testing.T) {
	models := make([]float32, 40)
	s := &script{players: holders(models...), samples: 10000,
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 60 * ms, Lag: ms, Sample: 7}}
	s.run(t)
	looks := map[int]int{}
	for _, e := range s.evaluated() {
		looks[e.Origin]++
	}
	if len(looks) != 7 {
		t.Errorf("%d models were looked at, want 7", len(looks))
	}
	for node, n := range looks {
		if n != 4 {
			t.Errorf("node %d was looked at %d times, want at 0, 20, 40 and 60 ms", node, n)
		}
	}
}

func TestConsensusDistanceIsTheRootMeanSquareFromTheMean(t *testing.T) {
	s := &script{players: holders(0.1, 0.2, 0.6), samples: 1000,
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 50 * ms, Lag: ms}}
	s.run(t)
	want := math.Sqrt((0.04 + 0.01 + 0.09) / 3) // mean 0.3
	var instants []time.Duration
	for _, e := range s.log {
		if e.Kind != actors.Measured {
			continue
		}
		instants = append(instants, e.At)
		if e.Name != coordinator.ConsensusDistance || math.Abs(e.Value-want) > 1e-7 || !e.Dated {
			t.Errorf("measured %q %v at %v (said to be its instant: %v), want %v", e.Name, e.Value, e.At, e.Dated, want)
		}
	}
	equal(t, "instants", []time.Duration{0, 20 * ms, 40 * ms, 50 * ms}, instants)
}

// When the node whose model alone is looked at has gone, another node's model takes its place.
func TestSampleIsDrawnOfThosePresent(t *testing.T) {
	for seed := range uint64(4) {
		s := &script{players: holders(0.1, 0.2, 0.3), samples: 1000, seed: seed, policy: coordinator.Policy{
			Every: coordinator.Interval{Time: 20 * ms}, Time: 50 * ms, Lag: ms, Sample: 1}}
		s.schedule = []world.NodeChange{{At: 15 * ms, Node: 0, Do: world.Crash}}
		s.run(t)
		if n := len(s.evaluated()); n != 4 {
			t.Errorf("seed %d: %d verdicts, want one at 0, 20, 40 and 50 ms", seed, n)
		}
		for _, e := range s.evaluated()[1:] {
			if e.Origin == 0 {
				t.Errorf("seed %d: node 0, which has crashed, was looked at at %v", seed, e.At)
			}
		}
	}
}

// With nobody left to look at, a run ends at its bound, and says that the model is lost.
func TestRunWhoseHoldersAreAllGoneEndsAtItsBound(t *testing.T) {
	s := &script{players: holders(0.1, 0.2), samples: 1000,
		policy: coordinator.Policy{Every: coordinator.Interval{Time: 20 * ms}, Time: 50 * ms, Lag: ms}}
	s.schedule = []world.NodeChange{{At: 25 * ms, Node: 0, Do: world.Leave}, {At: 30 * ms, Node: 1, Do: world.Leave}}
	s.run(t)
	if s.result.End != 50*ms || len(s.result.Models) != 2 {
		t.Errorf("ended at %v with %d models, want 50ms and the two of 20 ms", s.result.End, len(s.result.Models))
	}
	if n := s.result.Incidents; len(n) != 1 || n[0].At != 30*ms || n[0].Node != 1 {
		t.Errorf("incidents %+v, want that the last holder left at 30ms", n)
	}
}
