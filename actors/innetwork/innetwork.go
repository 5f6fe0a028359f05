// Package innetwork is synchronous training whose gradients are summed by switches on their way
// (A. Sapio et al., "Scaling Distributed Machine Learning with In-Network Aggregation", NSDI 2021:
// SwitchML). Each worker sends its gradient to its switch and gets the sum of all back, so about as
// many bytes as the gradient has cross its link each way, however many workers there are.
//
// A switch has little memory. The gradient is cut into chunks of Values values, and chunk i of a
// step goes through one of Slots slots; a worker sends the next chunk of a slot when it has the
// result of the one before, so results set the pace. slots.go has the protocol, which lives with
// packets that are lost, repeated or overtaken: it is meant for links as they are. Where they lose
// messages for good, workers repeat a packet whose result is overdue.
//
// Values travel as integers, see fixed.go, so that the sum does not depend on the order and all
// workers have the same bits. With each chunk workers tell how large the values of the chunk that
// follows in its slot are, and so agree on its exponent in time. For the first Slots chunks a
// packet that opens the step agrees on one exponent; it also waits until all workers are in the
// step, and sums the sizes of their batches.
//
// Several switches form a tree. One below another sums what its children send and passes the sum
// up, and the result down. A switch is a simulated one: what it adds costs time on its node.
//
// Packets are of one view. On a new view workers begin with packet 0 again, by which they agree on
// the last step that anybody has finished; who is behind, or joins, is given the model of a worker
// that is not. So a step counts everywhere or nowhere. Without one of its switches a run waits.
package innetwork

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// The roles of the architecture.
const (
	RoleSwitch = "switch"
	RoleWorker = "worker"
)

// Architecture is synchronous data-parallel training by in-network aggregation. Its fields are its
// settings in a plan, see package field.
type Architecture struct {
	// Slots is s, how many chunks of a worker are on their way at most. A switch has memory for
	// twice as many.
	Slots int `plan:"slots" range:"1..65536" doc:"chunks that a worker has on their way at most; a switch has memory for two sums a slot"`
	// Values is how many of the gradient a chunk has.
	Values int `plan:"values" range:"1..1048576" doc:"values of a chunk, 4 bytes each"`
}

// Default has the switch add in 256 kB, in chunks that one Ethernet frame holds.
func Default() Architecture { return Architecture{Slots: 128, Values: 256} }

var (
	_ train.Architecture = Architecture{}
	_ train.Fitter       = Architecture{}
	_ train.Tolerant     = Architecture{}
	_ train.Ranked       = Architecture{}
	_ train.Conserving   = Architecture{}
	_ train.Messenger    = Architecture{}
)

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error { return field.Check(a) }

// Roles are the switches, one unless the plan names more, and the workers.
func (a Architecture) Roles() []train.Role {
	return []train.Role{
		{Name: RoleSwitch, Doc: "sums what workers, or switches below it, send, and returns the sum", Min: 1,
			ByName: true},
		{Name: RoleWorker, Doc: "computes gradients on its shard and has them summed", Trains: true, Holds: true,
			Min: 1},
	}
}

// Fit refuses a topology in which several switches are no tree, or a worker has not one of them.
func (a Architecture) Fit(_, now *actors.View) error {
	_, err := newTree(now)
	return err
}

// Tolerant is true: workers repeat what is lost themselves.
func (a Architecture) Tolerant() bool { return true }

// EqualRanks is true: all workers make the same of the same integers.
func (a Architecture) EqualRanks() bool { return true }

// Conserves is the sum, as each gradient counts in the step of all.
func (a Architecture) Conserves() train.Conserved {
	return train.Conserved{Between: true, Sum: true, Weighted: true}
}

// Messages counts the packet that opens a step and one chunk, there and back; how many chunks there
// are depends on the model.
func (a Architecture) Messages(_, _ int) (messages, models float64) { return 4, 2 }

var _ train.Predictable = Architecture{}

// SendsBy is the exponents: their encoding takes one or two bytes.
func (Architecture) SendsBy() string {
	return "packets carry the exponents of values, in one byte or two"
}

// Kind makes a switch or a worker. It fails for an Architecture that is not valid.
func (a Architecture) Kind(task *train.Task, place train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		if place.Role == RoleSwitch {
			return newAggregator(env, a), nil
		}
		return newWorker(env, task, a)
	}
}
