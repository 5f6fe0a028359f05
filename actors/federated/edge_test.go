package federated_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/federated"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/periodic/robust"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
)

// tree is a stage of six clients, n0 to n5 at positions 1 to 6: the region at 7 has n1, n2 and the
// edge at 8, which has n3 and n4; n0 and n5 are below the server.
func tree(rounds int) *stage {
	s := &stage{task: newTask(40, 9, 17, 64, 25, 30), arch: federated.Default(), rounds: rounds,
		edges: []string{"region", "edge"}}
	s.arch.Under = map[string][]string{"region": {"n1", "edge", "n2"}, "edge": {"n3", "n4"}}
	return s
}

// The mean of means, by the samples that each is of, is the mean.
func TestAggregatorsMakeNoDifferenceToTheModel(t *testing.T) {
	s, flat := tree(6), tree(6)
	flat.arch.Under, flat.edges = nil, nil
	want := flat.run(t)
	for r, model := range s.run(t) {
		for k, v := range model {
			if math.Abs(float64(v-want[r][k])) > 1e-6 {
				t.Fatalf("round %d: parameter %d is %v, without aggregators %v", r+1, k, v, want[r][k])
			}
		}
		if !slices.Equal(s.updates[r], []int{1, 6, 7}) {
			t.Errorf("round %d: the server has the updates of %v, want 1, 6 and the region", r+1, s.updates[r])
		}
	}
	for node, want := range map[int][]int{7: {2, 3, 8}, 8: {4, 5}} {
		if got := s.passed[node]; !slices.Equal(got, slices.Repeat(want, 6)) {
			t.Errorf("node %d has recorded updates of %v, want those of %v in each of 6 rounds", node, got, want)
		}
	}
}

// While an aggregator is away, who is below it takes no part, and does so again when it is back.
func TestARoundGoesOnWithoutAnAggregatorThatIsAway(t *testing.T) {
	for _, how := range []world.NodeEvent{world.Crash, world.Leave} {
		s := tree(30)
		s.schedule = []world.NodeChange{{At: 95 * ms, Node: 8, Do: how}, {At: 400 * ms, Node: 8, Do: world.Join}}
		s.watchSteps(t, 4)
		early, away, late := s.between(0, 90*ms), s.between(200*ms, 400*ms), s.between(450*ms, time.Hour)
		if early == 0 || away != 0 || late == 0 {
			t.Errorf("%v: n3 has made %d steps, %d while its aggregator was away, and %d later", how, early, away, late)
		}
	}
}

// steps are the instants of a node's steps.
type steps struct {
	node int
	at   []time.Duration
}

// watchSteps runs the stage, and keeps when a node has made steps.
func (s *stage) watchSteps(t *testing.T, node int) {
	t.Helper()
	s.watched = &steps{node: node}
	s.run(t)
}

// between counts the steps between two instants.
func (s *stage) between(from, to time.Duration) (n int) {
	for _, at := range s.watched.at {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

// An aggregator below whom all go says that there is nothing, and is asked again when one comes.
func TestAnAggregatorOfNobodyIsNotWaitedFor(t *testing.T) {
	s := tree(20)
	s.schedule = []world.NodeChange{{At: 42 * ms, Node: 4, Do: world.Crash}, {At: 43 * ms, Node: 5, Do: world.Crash},
		{At: 500 * ms, Node: 5, Do: world.Join}}
	s.run(t)
	if s.stepped[5] < 20 {
		t.Errorf("the client that has come back has made %d steps", s.stepped[5])
	}
}

func TestRunBelowAggregatorsEndsWithItsServer(t *testing.T) {
	s := tree(0)
	s.arch.Under["region"] = append(s.arch.Under["region"], "n0", "n5")
	s.time, s.schedule = time.Second, []world.NodeChange{{At: 100 * ms, Node: 0, Do: world.Crash}}
	if err := s.try(t); err == nil || err.Error() != "node region: hub has gone, and with it the model" {
		t.Errorf("got %v", err)
	}
}

// Sessions deliver what links lose, at each level.
func TestAggregatorsWorkOverLinksThatLose(t *testing.T) {
	s, flat := tree(8), tree(8)
	flat.arch.Under, flat.edges = nil, nil
	s.reliable = true
	s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 30 * ms}, Reorder: true, Repeat: 0.3,
		Loss: link.Loss{Probability: 0.2, Drop: true}}
	got, want := s.run(t), flat.run(t)
	for k, v := range got[7] {
		if math.Abs(float64(v-want[7][k])) > 1e-5 {
			t.Fatalf("parameter %d is %v, without losses and aggregators %v", k, v, want[7][k])
		}
	}
}

func TestTreesThatMakeNoSenseAreRefused(t *testing.T) {
	under := func(text string) func(a *federated.Architecture) {
		return func(a *federated.Architecture) {
			a.Under = map[string][]string{}
			for _, entry := range strings.Split(text, "; ") {
				above, below, _ := strings.Cut(entry, ": ")
				a.Under[above] = strings.Fields(below)
			}
		}
	}
	with := func(text string, change func(a *federated.Architecture)) func(a *federated.Architecture) {
		return func(a *federated.Architecture) {
			under(text)(a)
			change(a)
		}
	}
	for want, change := range map[string]func(a *federated.Architecture){
		"":                                   under("e1: n1 n2; e2: e1"),
		`a map of aggregators; "n0" is none`: under("e1: n1; e2: n2; n0: n3"),
		"once; n1 is not":                    under("e1: n1; e2: n1 n2"),
		"once; hub is not":                   under("e1: n1; e2: hub"),
		`a map to names of nodes or groups; "m" is none`: under("e1: n; e2: m"),
		"is below itself": under("e1: e2 n1; e2: e1"),
		"Weights is \"equal\": must be samples where under is given": with("e1: n", func(a *federated.Architecture) {
			a.Weights = periodic.Equal
		}),
		"Controls is true: must be false where under is given": with("e1: n", func(a *federated.Architecture) {
			a.Controls = true
		}),
		"Deadline is 1ms: must be left out where under is given": with("e1: n", func(a *federated.Architecture) {
			a.Deadline = ms
		}),
		"as a round of e1 wants: a median with 1 attackers is of 3": with("e1: n1 n2; e2: n3",
			func(a *federated.Architecture) { a.Mean = robust.Rule{Kind: robust.Median, Attackers: 1} }),
	} {
		a := federated.Default()
		change(&a)
		err := a.Validate()
		if err == nil {
			members := []actors.Member{{Name: "hub", Role: federated.RoleServer}}
			for i := range 4 {
				members = append(members, actors.Member{Name: fmt.Sprintf("n%d", i), Role: federated.RoleClient})
			}
			members = append(members, actors.Member{Name: "e1", Role: federated.RoleAggregator},
				actors.Member{Name: "e2", Role: federated.RoleAggregator})
			view := actors.NewView(1, members, nil, nil)
			err = a.Fit(view, view)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// While the aggregator of all is away no round begins, and one does when it is back.
func TestAnAggregatorOfAllMayComeBack(t *testing.T) {
	for seed := range uint64(5) {
		s := tree(20)
		s.task.Seed = seed
		s.arch.Under["region"] = append(s.arch.Under["region"], "n0", "n5")
		s.link = link.Config{Delay: link.Uniform{Min: ms, Max: 40 * ms}, Reorder: true}
		s.schedule = []world.NodeChange{{At: 100 * ms, Node: 7, Do: world.Crash},
			{At: 200 * ms, Node: 7, Do: world.Join}}
		s.run(t)
	}
}
