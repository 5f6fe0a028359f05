package gossip_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossip"
	"github.com/gradwire/gradwire/cluster/link"
)

// firsts are the first parameters of models that have all parameters equal.
func firsts(t *testing.T, models [][]float32) (list []float32) {
	t.Helper()
	for _, m := range models {
		if slices.Min(m) != slices.Max(m) {
			t.Fatalf("a model with different parameters: %v", m)
		}
		list = append(list, m[0])
	}
	return list
}

// The first peer's steps add 8 and take 10 ms; the second's add 4 and take 25 ms. Models travel 1
// ms.
//
//	10  first 8
//	11  second (0+8)/2 = 4
//	20  first 16
//	21  second (4+16)/2 = 10
//	25  second 14
//	26  first (16+14)/2 = 15
//	30  first 23
//	31  second (14+23)/2 = 18.5
func TestTwoPeersAverageAsByHand(t *testing.T) {
	s := &stage{task: countingTask(8, 4), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms, 25 * ms},
		edge: constant(ms), end: 35 * ms}
	if diff := cmp.Diff([]float32{23, 18.5}, firsts(t, s.run(t))); diff != "" {
		t.Error(diff)
	}
	// Ages: 1, then 1, 2, 2, and 3 of the second's first step, which the first takes over; 4; 4.
	if diff := cmp.Diff([]uint64{4, 4}, s.ages); diff != "" {
		t.Error(diff)
	}
}

// As above, weighed by age: at 11 the second takes 8 whole; at 21 it has (1·8+2·16)/3 = 40/3, of
// age 2; at 25 that + 4 = 52/3, of age 3; at 26 the first has (2·16+3·52/3)/5 = 84/5.
func TestMergeByAgeWeighsAsByHand(t *testing.T) {
	s := &stage{task: countingTask(8, 4), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms, 25 * ms},
		edge: constant(ms), end: 28 * ms}
	s.rules.Merge = gossip.Age
	for i, x := range firsts(t, s.run(t)) {
		if want := []float32{84. / 5, 52. / 3}[i]; x < want-1e-5 || x > want+1e-5 {
			t.Errorf("peer %d has %v, want %v", i, x, want)
		}
	}
}

// last is a user's own rule: the newest model wins, once a step.
type last struct{}

func (last) Weight(own, arriving gossip.Counts) float64 {
	if own.Merged == 0 && arriving.Steps >= own.Steps {
		return 1
	}
	return 0
}

func TestReceiverDecidesByARuleOfItsOwn(t *testing.T) {
	s := &stage{task: countingTask(8, 4), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms, 25 * ms},
		edge: constant(ms), end: 35 * ms}
	s.rules.Rule = last{}
	// At 11 the second takes 8, at 21 nothing; at 25 it has 12, which the first refuses at 26,
	// because it has made more steps; at 30 that has 24, and the second takes it at 31.
	if diff := cmp.Diff([]float32{24, 24}, firsts(t, s.run(t))); diff != "" {
		t.Error(diff)
	}
}

// Peers step at 10 ms; the second's step takes so long that it only answers.
func TestPushPullKeepsTheSumOfTwoModels(t *testing.T) {
	s := &stage{task: countingTask(8, 100), rules: all(gossip.PushPull, true),
		steps: []time.Duration{10 * ms, time.Hour}, edge: constant(ms), end: 13 * ms}
	if diff := cmp.Diff([]float32{4, 4}, firsts(t, s.run(t))); diff != "" {
		t.Error(diff)
	}
	s = &stage{task: countingTask(8, 100), rules: all(gossip.Pull, true), steps: []time.Duration{10 * ms, time.Hour},
		edge: constant(ms), end: 13 * ms}
	if diff := cmp.Diff([]float32{4, 0}, firsts(t, s.run(t))); diff != "" {
		t.Error(diff)
	}
}

// A step of d, of which every k-th is followed by a wait w, ends for the n-th time at n·d +
// ⌊(n−1)/k⌋·w, where w is one way for a push, there and back for an answer, and nothing for who
// does not wait.
func TestStepsWaitForWhatTheExchangeWaitsFor(t *testing.T) {
	const d, there, back = 10 * ms, 3 * ms, 4 * ms
	for _, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
		for _, wait := range []bool{false, true} {
			for every := 1; every < 4; every++ {
				events := &log{}
				s := &stage{task: newTask(2, 6, 2, 3, 2), rules: all(exchange, wait),
					steps: []time.Duration{d, time.Hour}, observer: events, end: 200 * ms}
				s.rules.Every = every
				s.links = func(n *link.Network) {
					n.Set(0, 1, link.Config{Delay: constant(there)})
					n.Set(1, 0, link.Config{Delay: constant(back)})
				}
				s.run(t)
				pause, cause := there, "delivery"
				if exchange != gossip.Push {
					pause, cause = there+back, "answer"
				}
				if !wait {
					pause = 0
				}
				name := fmt.Sprintf("%s, wait %v, every %d", exchange, wait, every)
				for i, e := range events.of(0, actors.StepDone) {
					if want := time.Duration(i+1)*d + time.Duration(i/every)*pause; e.at != want {
						t.Errorf("%s: step %d ends at %v, want %v", name, i+1, e.at, want)
					}
				}
				waits := events.of(0, actors.Waited)
				if (len(waits) >= 5) != wait {
					t.Errorf("%s: waited %d times", name, len(waits))
				}
				for _, e := range waits {
					if e.Duration != pause || e.Cause != cause {
						t.Errorf("%s: waited %v for %s", name, e.Duration, e.Cause)
					}
				}
			}
		}
	}
}

func TestExchangesWithAPeriodDoNotDependOnSteps(t *testing.T) {
	events := &log{}
	s := &stage{task: newTask(3, 6, 2, 3, 2), rules: all(gossip.Push, false), steps: []time.Duration{7 * ms, time.Hour},
		edge: constant(ms), observer: events, end: 105 * ms}
	s.rules.Every, s.rules.Period = 0, 20*ms
	s.run(t)
	for node := range 3 {
		for i, e := range events.of(node, actors.Selected) {
			if want := time.Duration(i/2+1) * 20 * ms; e.at != want || e.Origin == node {
				t.Errorf("node %d exchanges with %d at %v, want %v", node, e.Origin, e.at, want)
			}
		}
		if n := len(events.of(node, actors.Selected)); n != 10 {
			t.Errorf("node %d: %d choices in 5 periods with 2 neighbours", node, n)
		}
	}
}

// All four parameters and two biases of a model move by 1 a step, together √6 ≈ 2.45; so beyond 6
// they are after the first exchange, which always happens, every third step.
func TestModelThatHasHardlyMovedIsNotExchanged(t *testing.T) {
	events := &log{}
	s := &stage{task: countingTask(1, 1), rules: all(gossip.Push, false), steps: []time.Duration{10 * ms, time.Hour},
		edge: constant(time.Second), observer: events, end: 105 * ms}
	s.rules.Moved = 6
	s.run(t)
	var at []time.Duration
	for _, e := range events.of(0, actors.Selected) {
		at = append(at, e.at)
	}
	if diff := cmp.Diff([]time.Duration{10 * ms, 40 * ms, 70 * ms, 100 * ms}, at); diff != "" {
		t.Error(diff)
	}
}

func TestPeerWithoutNeighboursTrainsAlone(t *testing.T) {
	s := &stage{task: countingTask(3), rules: all(gossip.PushPull, true), steps: []time.Duration{10 * ms},
		end: 105 * ms}
	s.rules.Lead = 0
	if diff := cmp.Diff([]float32{30}, firsts(t, s.run(t))); diff != "" {
		t.Error(diff)
	}
}

func TestSameSeedGivesTheSameBitsOnAnyNumberOfThreads(t *testing.T) {
	run := func(threads int, rules gossip.Architecture, seed uint64) (uint64, [][]float32) {
		s := &stage{task: newTask(6, 20, 4, 5, 4, 3), rules: rules, steps: []time.Duration{9 * ms, 10 * ms},
			threads: threads, end: 500 * ms}
		s.task.Seed = seed
		s.edge = link.Uniform{Min: ms, Max: 8 * ms}
		models := s.run(t)
		return s.result.Digest, models
	}
	for _, exchange := range []gossip.Exchange{gossip.Push, gossip.Pull, gossip.PushPull} {
		rules := all(exchange, true)
		rules.Choice = gossip.Choice{By: gossip.Latency, Share: 0.5}
		rules.Lead, rules.Moved = 2, 0.01
		d0, m0 := run(0, rules, 3)
		d2, m2 := run(2, rules, 3)
		if d0 != d2 || !cmp.Equal(m0, m2) {
			t.Errorf("%s: threads change digest %x to %x", exchange, d0, d2)
		}
		if other, _ := run(0, rules, 4); other == d0 {
			t.Errorf("%s: another seed has the same digest", exchange)
		}
	}
}
