package record

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/state/statetest"
	"github.com/gradwire/gradwire/actors/world"
)

// The state holds every figure that the collector counts.
func TestStateOfTheCollectorHasAllThatItCounts(t *testing.T) {
	counted := func(n uint64) ages { return ages{n, n, n, []uint64{n}, map[uint64]uint64{n: 1}} }
	statetest.Whole(t, &ages{1, 2, 3, []uint64{4}, map[uint64]uint64{5: 6}},
		func(s *state.State, a *ages) { a.declare(s) })
	one := tally{steps: 1, samples: 2, ages: counted(3), merged: counted(4), last: 5, update: 6, learned: true,
		overtime: true, waits: []waits{{cause: "turn", spans: []span{{bucket: 1, count: 2, total: 3}}}},
		chosen: []choice{{neighbour: 1, count: 2}}}
	statetest.Whole(t, &one, func(s *state.State, t *tally) { t.declare(s) })
	statetest.Whole(t, &node{tally: one, pace: world.Pace{Last: 1, Longest: 2, Waited: true}, latest: 3,
		places: map[int32]int{4: 5}}, func(s *state.State, n *node) { n.declare(s) }, "mu", "_")
	statetest.Whole(t, &Collector{
		nodes:  []node{{latest: 1}},
		marks:  []mark{{1, 2, []tally{one}, []Link{{From: "a", To: "b", Messages: 3}}, 4, 5}},
		curve:  []Evaluation{{Number: 1}},
		models: []ModelVerdict{{Node: "a"}}, measured: []measurement{{time.Second, 1, "norm", 2}}, unmeasured: 3,
	}, func(s *state.State, c *Collector) { c.State(s) }, "config", "mu", "spare", "events")
}
