// Package noloco implements NoLoCo, which is gossip in small random groups with an outer momentum
// (J. Kolehmainen et al., "NoLoCo: No-all-reduce Low Communication Training Method for Large
// Models", arXiv 2506.10911). Peers without a server make some steps each on their own. Then the
// peers of a group, a pair unless a plan says otherwise, exchange their models θ, and each makes a
// step from φ_i, its own model at the beginning of the round:
//
//	m_i ← αm_i + β·mean(θ − φ) + β(mean φ − φ_i),   φ_i ← φ_i + m_i,   θ_i ← φ_i
//
// The terms with β add up to β(mean θ − φ_i). So θ alone travels, half of what two vectors take,
// and the step is one of gradient descent with momentum whose gradient is φ_i − mean θ. That both
// terms have the same factor, the signs, and the random groups are as in the first author's program
// (github.com/jkolehm/noloco, sparse_optimizer_c.py); the defaults are from memory of the paper.
// Without momentum and with a rate of 1 the models of a group become their mean.
//
// The groups of a round are the parts of a random permutation of all the plan's nodes, whatever
// the topology links, which each peer computes from the seed and the number of the round. So nobody
// needs a message to agree on them, and views that differ for a while do not matter. Where the
// number of nodes is no multiple of a group's, one group is smaller. A peer that is alone in its
// group, or whose group is not there, makes the step with its own model as the mean.
//
// A peer waits for the models of its group, and so at most for peers that are behind it, never in a
// circle. Whoever has gone is not waited for, nor a peer that says that it is past the round. A
// peer that joins begins with the φ of a neighbour in the topology, at the beginning of that one's
// round, and without a momentum.
package noloco

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// Architecture is NoLoCo.
type Architecture struct {
	// Every is the number of local steps of a round, by the optimizer of the task, whose state
	// stays with the peer.
	Every int `plan:"every" range:"1..1048576" counts:"interval=steps|epochs|samples" doc:"steps between two exchanges; or 0.1 epochs, or 4000 samples, of all workers together"`
	// Group is how many peers a group has.
	Group int `plan:"group" range:"2.." doc:"peers that exchange their models; who they are is drawn for each exchange; if the number of peers is no multiple, one group is smaller; a peer that is alone, or whose group is away, steps with its own model as the mean"`
	// Outer is the step that a peer makes with its group's mean.
	Outer Outer `plan:"outer" doc:"the step that a peer makes with the mean of its group"`
}

// Outer is a step with momentum of a peer's model, for what its model of the beginning of the round
// is above the mean of the group's as a gradient.
type Outer struct {
	// Rate is β.
	Rate float64 `plan:"rate" range:">0..1" doc:"how far a peer's model goes from where its round began to the mean of its group; 1 is all the way"`
	// Momentum is α.
	Momentum float64 `plan:"momentum" range:"0..<1" doc:"the share of the last such step that is taken again"`
}

var _ train.Architecture = Architecture{}

// Default has the constants of the paper.
func Default() Architecture {
	return Architecture{Every: 50, Group: 2, Outer: Outer{Rate: 0.7, Momentum: 0.5}}
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error { return field.Check(a) }

// Roles is the one role of all nodes: each trains and holds a model.
func (Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "makes steps on its shard and averages with a few random others",
		Trains: true, Holds: true, Min: 1}}
}

var _ train.Messenger = Architecture{}

// Messages is a model to each other peer of the group in every round.
func (a Architecture) Messages(_, workers int) (messages, models float64) {
	messages = float64(min(a.Group, workers)-1) / float64(a.Every)
	return messages, messages
}

var _ train.Conserving = Architecture{}

// Conserves is both, where a group's models become their mean.
func (a Architecture) Conserves() train.Conserved {
	mean := a.Outer == Outer{Rate: 1}
	return train.Conserved{Between: mean, Sum: mean}
}

var _ train.Predictable = Architecture{}

// SendsBy is empty: messages do not depend on the trained values.
func (Architecture) SendsBy() string { return "" }

// Kind makes a peer. It fails for an Architecture that is not valid.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		return newPeer(env, task, a)
	}
}
