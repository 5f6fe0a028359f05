package ps_test

import (
	"context"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/coordinator"
	"github.com/gradwire/gradwire/actors/ps"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim"
)

// Steps take 5 ms and links 10 ms each way: a worker's cycle is 25 ms.
// count is how many of the events are from a node, after an instant and not after another.
func (e *events) count(node int, from, to time.Duration) (n int) {
	for i, event := range e.list {
		if event.Origin == node && e.at[i] > from && e.at[i] <= to {
			n++
		}
	}
	return n
}

func TestWorkersThatComeAndGoDisturbNobodyElse(t *testing.T) {
	task := newTask(t, 3, []int{4, 3, 2}, 8, 120, "w1", "w2", "w3")
	a := ps.Architecture{Scale: ps.Mean}
	updates := &events{kind: actors.UpdateApplied}
	d := &world.Deployment{Seed: 3, Strict: true, Bounded: true, Observer: updates, Detect: 40 * ms,
		Schedule: []world.NodeChange{
			{At: 101 * ms, Node: 2, Do: world.Crash},
			{At: 200 * ms, Node: 3, Do: world.Join},
			{At: 103 * ms, Node: 2, Do: world.Join}, // while an answer to its first life is under way
			{At: 301 * ms, Node: 1, Do: world.Leave},
		}}
	names := []string{"hub", "w1", "w2", "w3"}
	for i, name := range names {
		n := world.Node{Name: name, Role: ps.RoleWorker, Profile: world.Profile{Cores: 1, Speed: 1e12, Step: 5 * ms},
			Absent: i == 3}
		if i == 0 {
			n.Role = ps.RoleServer
		}
		n.Kind = a.Kind(task, train.Place{Node: i, Name: name, Role: n.Role})
		d.Nodes = append(d.Nodes, n)
	}
	var result coordinator.Result
	d.Coordinate = func(env actors.Env, control world.Control) (actor.Actor, error) {
		return coordinator.New(coordinator.Run{
			Policy: coordinator.Policy{Every: coordinator.Interval{Time: 500 * ms}, Time: 500 * ms}, Samples: 120,
			Holders: []int{0}, Result: &result,
			Evaluate: func([]float32) train.Verdict { return train.Verdict{} },
		}, env, control)
	}
	network := link.New(3, append(names, actors.Coordinator))
	network.SetDefault(link.Config{Delay: link.Constant{Delay: 10 * ms}})
	w, err := sim.New(sim.Config{Deployment: d, Network: network})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	// An update of a worker comes every 25 ms, a little more with what the server charges.
	for _, c := range []struct {
		node     int
		from, to time.Duration
		least    int
		most     int
	}{
		{1, 0, 300 * ms, 11, 12},
		{1, 320 * ms, 500 * ms, 0, 0},
		{2, 0, 110 * ms, 4, 4},
		{2, 110 * ms, 500 * ms, 14, 16},
		{3, 0, 220 * ms, 0, 0},
		{3, 220 * ms, 500 * ms, 10, 12},
	} {
		if n := updates.count(c.node, c.from, c.to); n < c.least || n > c.most {
			t.Errorf("node %d: %d updates from %v to %v, want %d to %d", c.node, n, c.from, c.to, c.least, c.most)
		}
	}
}
