package live_test

import (
	"testing"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/link"
)

// Links between worlds that lose, repeat and reorder messages cost time and nothing else: the
// models are those of virtual time over sound links.
func TestSessionsBetweenWorldsLeaveTheBitsAsTheyAre(t *testing.T) {
	const rounds, looks = 600, 60
	worker := collective.RoleWorker
	for name, c := range map[string]struct {
		architecture train.Architecture
		roles        []string
		holders      []int
	}{
		"ring": {collective.Architecture{Algorithm: collective.Ring, Every: 1, Reduce: collective.Gradients},
			[]string{worker, worker, worker}, []int{0, 1, 2}},
		"bsp": {ps.Architecture{Scale: ps.Mean, Consistency: consistency.BSP{}},
			[]string{ps.RoleServer, ps.RoleWorker, ps.RoleWorker}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := func(seen models, enough func(node int) bool) *training {
				r := &training{architecture: c.architecture, roles: c.roles,
					delay: link.Uniform{Min: ms / 10, Max: ms / 2}}
				r.lead = watchModels(seen, enough, c.holders...)
				return r
			}
			want := models{}
			plan(want, func(node int) bool { return len(want[node]) >= rounds }).simulate(t)
			for i, edge := range []link.Config{
				{Loss: link.Loss{Probability: 0.1, Drop: true}},
				{Repeat: 0.2},
				{Reorder: true},
				{Loss: link.Loss{Probability: 0.1, Drop: true}, Repeat: 0.2, Reorder: true},
			} {
				hosts := [][]int{{0, 1, 1, 1}, {1, 2, 0, 1}}[i%2]
				seen := models{}
				r := plan(seen, func(node int) bool {
					return common(seen, want, node) >= looks || len(seen[node]) >= rounds
				})
				r.edge, r.reliable, r.strict = edge, true, i%2 == 1
				m := r.split(hosts...)
				m.run(t)
				if n := m.posted.Load(); n > 0 {
					t.Errorf("%+v: %d tensors went to their places before it was known whether they repeat", edge, n)
				}
				for _, node := range c.holders {
					if n := common(seen, want, node); n < looks {
						t.Errorf("%+v: only %d versions of the model of node %d can be compared", edge, n, node)
					}
					if versions := differences(seen, want, node); len(versions) > 0 {
						t.Errorf("%+v: node %d has other models at versions %v", edge, node, versions)
					}
				}
			}
		})
	}
}
