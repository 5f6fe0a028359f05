package dpsgd_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/adpsgd"
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/sim/simtest"
)

// On a complete topology those who come first in the plan pass on how far all are. They go one
// after the other, in the middle of things, and some come back: the rest must go on.
func TestLeadOutlivesTheFirstNodesOfACompleteTopology(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine works for long")
	}
	t.Parallel()
	seeds := uint64(120)
	if simtest.Brief() {
		seeds = 30
	}
	const n = 6
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 11))
		lead := random.IntN(3)
		r := &simtest.Recorder{}
		s := simtest.Stage{Task: simtest.NewTask(n, 20, 0.1), Observer: r, Reorder: seed%2 == 0, Strict: seed%16 == 0,
			Detect: time.Duration(random.IntN(300)) * time.Millisecond, Looks: []time.Duration{40 * time.Second},
			Kind: []train.Architecture{dpsgd.Architecture{Lead: lead},
				adpsgd.Architecture{Graph: adpsgd.Exponential, Lead: lead}}[seed/2%2]}
		s.Task.Seed = seed
		s.Edge = link.Uniform{Max: time.Duration(1+random.IntN(100)) * time.Millisecond}
		for range n {
			s.Step = append(s.Step, time.Duration(10+random.IntN(90))*time.Millisecond)
		}
		at, there := time.Duration(0), []int{3, 4, 5}
		for node := range 3 {
			at += time.Duration(200+random.IntN(1500)) * time.Millisecond
			do := []world.NodeEvent{world.Crash, world.Leave}[random.IntN(2)]
			s.Schedule = append(s.Schedule, world.NodeChange{At: at, Node: node, Do: do})
			if random.IntN(2) == 0 {
				back := at + time.Duration(500+random.IntN(3000))*time.Millisecond
				s.Schedule = append(s.Schedule, world.NodeChange{At: back, Node: node, Do: world.Join})
				there = append(there, node)
			}
		}
		s.Run(t)
		late := r.StepsAfter(n, 30*time.Second)
		for _, node := range there {
			if late[node] < 3 {
				slices.Sort(there)
				t.Fatalf("seed %d, %+v: steps of %v in the last 10 s: %v", seed, s.Kind, there, late)
			}
		}
	}
}
