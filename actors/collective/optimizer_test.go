package collective_test

import (
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/nn/optim"
)

// tally is momentum whose slot has room for one more value, the number of gradients that it
// has seen, which goes where the slot goes.
type tally struct {
	optim.Method
	restored *[]optim.State
}

func (m tally) New(n int) optim.Optimizer { return &tallying{m.Method.New(n), 0, m.restored} }

type tallying struct {
	optim.Optimizer
	seen     float32
	restored *[]optim.State
}

func (o *tallying) Step(dst, params, grad []float32) {
	o.Optimizer.Step(dst, params, grad)
	o.seen++
}

func (o *tallying) State() optim.State {
	s := o.Optimizer.State()
	s.Slots = append(s.Slots, []float32{o.seen})
	return s
}

func (o *tallying) Restore(s optim.State) error {
	o.seen = s.Slots[1][0]
	*o.restored = append(*o.restored, s)
	s.Slots = s.Slots[:1]
	return o.Optimizer.Restore(s)
}

// The optimiser's vectors of a rank that averages models go on between two rounds, so that they are
// of other updates than the joint model that goes with them.
func TestWhoJoinsIsToldHowManyUpdatesTheOptimisersVectorsHaveSeen(t *testing.T) {
	const every = 3
	ahead := 0
	for _, reduce := range []collective.Reduce{collective.Gradients, collective.Models} {
		for at := 100 * time.Millisecond; at < 200*time.Millisecond; at += 7 * time.Millisecond {
			var restored []optim.State
			c := churn{
				task: churnTask(3, tally{momentum(0.05), &restored}), absent: []int{2}, end: 400 * time.Millisecond,
				architecture: collective.Architecture{Algorithm: collective.Ring, Every: every, Reduce: reduce},
				schedule:     []world.NodeChange{{At: at, Node: 2, Do: world.Join}},
			}
			c.run(t)
			if len(restored) != 1 {
				t.Fatalf("%s: %d nodes have joined at %v", reduce, len(restored), at)
			}
			s := restored[0]
			if seen := int(s.Slots[1][0]); s.Updates != seen {
				t.Errorf("%s: who joins at %v is told of %d updates; its optimiser's vectors have seen %d", reduce, at,
					s.Updates, seen)
			}
			if s.Updates > s.Step {
				ahead++
			}
			if reduce == collective.Models && s.Step%every != 0 {
				t.Errorf("who joins at %v goes on at step %d of the rate, which is within a round of %d", at, s.Step,
					every)
			}
		}
	}
	if ahead == 0 {
		t.Error("nobody has joined within a round")
	}
}
