package gossiplearning_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/gossiplearning"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// Nodes come and go at random, links lose half of all messages, take up to ten periods, repeat and
// reorder: whoever is there goes on.
func TestWhoIsThereGoesOnWhateverComesAndGoes(t *testing.T) {
	const end = 30 * time.Second
	for seed := range uint64(4) {
		for _, create := range []gossiplearning.Create{gossiplearning.MU, gossiplearning.UM} {
			t.Run(fmt.Sprintf("%d %s", seed, create), func(t *testing.T) {
				t.Parallel()
				rules := gossiplearning.Default()
				rules.Period, rules.Create, rules.Predict = 100*ms, create, gossiplearning.Vote
				events := &simtest.Recorder{}
				s := &simtest.Stage{Task: newTask(t, 8, 10, 4), Kind: rules, Strict: true, Observer: events,
					Edge: link.Uniform{Min: 100 * ms, Max: time.Second}, Reorder: true, Repeat: 0.1,
					Loss: link.Loss{Probability: 0.5, Drop: true}, Detect: 300 * ms, Looks: []time.Duration{end}}
				s.Task.Seed = seed
				s.Shake(rand.New(rand.NewPCG(seed, 1)), 30, end-5*time.Second)
				for _, node := range []int{1, 2} { // so that there are some
					s.Schedule = slices.DeleteFunc(s.Schedule, func(c world.NodeChange) bool { return c.Node == node })
					s.Absent = slices.DeleteFunc(s.Absent, func(absent int) bool { return absent == node })
				}
				look := s.Run(t)[0]
				for _, node := range events.Lagging(look, end-4*time.Second, 5) {
					t.Errorf("node %d hardly makes steps any more", node)
				}
			})
		}
	}
}

// A peer without neighbours has no turns, begins with them when somebody comes, and who comes
// begins with the initial model.
func TestTurnsEndAndBeginWithTheNeighbours(t *testing.T) {
	rules := gossiplearning.Default()
	rules.Period = 100 * ms
	events := &simtest.Recorder{}
	s := &simtest.Stage{Task: newTask(t, 2, 10, 4), Kind: rules, Strict: true, Observer: events, Absent: []int{1},
		Step: []time.Duration{ms, ms}, Edge: link.Constant{Delay: ms},
		Looks: []time.Duration{990 * ms, 1002 * ms, 1900 * ms, 3 * time.Second, 4 * time.Second},
		Schedule: []world.NodeChange{{At: time.Second, Node: 1, Do: world.Join}, {At: 2 * time.Second, Node: 1,
			Do: world.Crash}, {At: 3500 * ms, Node: 1, Do: world.Join}}}
	looks := s.Run(t)
	if looks[0][0].Version != 0 || looks[2][0].Version < 5 || looks[4][0].Version <= looks[3][0].Version {
		t.Errorf("ages of node 0: %v, %v, %v, %v", looks[0][0].Version, looks[2][0].Version, looks[3][0].Version,
			looks[4][0].Version)
	}
	if newcomer := looks[1][1]; newcomer.Version != 0 {
		t.Errorf("the newcomer begins with a model of age %d", newcomer.Version)
	}
	for i, e := range events.Events {
		if at := events.At[i]; e.Kind == actors.Selected && (at < time.Second || at > 2100*ms && at < 3500*ms) {
			t.Errorf("node %d sends to nobody at %v", events.Nodes[i], at)
		}
	}
}

func TestWhoHearsNothingMoreSaysWhatItWaitsFor(t *testing.T) {
	rules := gossiplearning.Default()
	rules.Period = ms
	const week = 7 * 24 * time.Hour
	for want, s := range map[string]*simtest.Stage{
		"waits for a neighbour to exchange models with": {Schedule: []world.NodeChange{{At: time.Second, Node: 1,
			Do: world.Crash}}},
		"waits for a model of a neighbour": {Loss: link.Loss{Probability: 1, Drop: true}},
	} {
		s.Task, s.Kind, s.Looks = newTask(t, 2, 10, 4), rules, []time.Duration{week}
		if _, err := s.Try(t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The account bounds what a run sends too: of any periods in a row, here all.
func TestTokensBoundWhatIsSent(t *testing.T) {
	const periods, capacity = 100, 6
	for _, kind := range []gossiplearning.Strategy{gossiplearning.Proactive, gossiplearning.Simple,
		gossiplearning.Generalized, gossiplearning.Randomized} {
		rules := gossiplearning.Default()
		rules.Period, rules.Flow = 100*ms, gossiplearning.Flow{Kind: kind}
		if kind != gossiplearning.Proactive {
			rules.Flow.Capacity = capacity
		}
		if kind == gossiplearning.Generalized || kind == gossiplearning.Randomized {
			rules.Flow.Reactivity = 2
		}
		events := &simtest.Recorder{}
		s := &simtest.Stage{Task: newTask(t, 6, 10, 4), Kind: rules, Observer: events,
			Edge: link.Constant{Delay: 20 * ms}, Step: slices.Repeat([]time.Duration{ms}, 6),
			Looks: []time.Duration{periods * rules.Period}}
		look := s.Run(t)[0]
		sent := make([]int, 6)
		for i, e := range events.Events {
			if e.Kind == actors.Selected {
				sent[events.Nodes[i]]++
			}
		}
		for node, n := range sent {
			if n > periods || kind == gossiplearning.Proactive && n != periods || n < periods-2*capacity {
				t.Errorf("%s: node %d sends %d models in %d periods", kind, node, n, periods)
			}
		}
		t.Logf("%s: %v models sent; age of the first node's model %d", kind, sent, look[0].Version)
	}
}
