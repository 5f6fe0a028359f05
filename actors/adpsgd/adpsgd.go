// Package adpsgd implements asynchronous decentralised parallel stochastic gradient descent: peers
// without a server, each with its own model, average with one neighbour at a time and wait for
// nobody else (X. Lian, W. Zhang, C. Zhang and J. Liu, "Asynchronous Decentralized Parallel
// Stochastic Gradient Descent", ICML 2018, algorithm 1).
//
// In a step a peer computes the gradient g at a copy of its model, averages its model with a random
// neighbour's so that both get the same mean, and subtracts γg from the model that it then has.
// Exchange and gradient overlap.
//
// An average is atomic: a peer's model does not change between sending it and receiving the mean.
// The graph is bipartite, so that peers never wait in a circle: active peers begin exchanges, and
// passive ones answer at once. Both train alike (section 4 of the paper, "deadlock prevention").
//
// Averaging leaves the sum of all models unchanged, also where their codes travel. An exchange may
// change it if one of the two peers crashes. If the passive peer crashes, the active one keeps its
// model, whether or not the passive one had averaged, and goes on when the view says that it has
// gone. If the active peer crashes before it gets the mean, the passive one goes on with the mean.
package adpsgd

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/compress"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// Graph says which peers average with each other.
type Graph string

// The graphs.
const (
	// Topology is the run's own, which must be bipartite: where a schedule changes it, all of
	// them taken together. Of each connected part the first node, in the order of the plan, is
	// active.
	Topology Graph = "topology"
	// Exponential lets the peers at even positions, who are active, choose those 1 and 2^i + 1
	// positions further on, i ≥ 1, in a circle of an even number of peers (section 5 of the
	// paper, whose hop of 2^0 + 1 = 2 would join two active peers).
	Exponential Graph = "exponential"
)

// Architecture is AD-PSGD.
type Architecture struct {
	// Graph is Topology or Exponential.
	Graph Graph `plan:"graph" words:"topology|exponential" doc:"whom a peer may choose: neighbours of the network's topology, which must be bipartite; or, of an even number of peers, those 1 and 2^j + 1 places on, j ≥ 1"`
	// Moved is the distance ε ≥ 0 that an active peer's model must have moved, since its last
	// exchange, for another. The distance is Euclidean. With 0 every step has an exchange.
	Moved float64 `plan:"moved" range:"0.." counts:"moved=steps" doc:"an active peer begins an exchange only if its model has moved by more than this (Euclidean norm of the parameters) since its last one; 0: always; checked when a step begins; passive peers always answer"`
	// Lead bounds how many steps a peer may be ahead of the slowest of all; −1 is no
	// bound. With a bound, those who are there must be connected, so that they hear of each other.
	Lead int `plan:"lead" range:"0.." none:"-1" counts:"lead=steps" doc:"steps that a peer may be ahead of the slowest when it begins another; default: no bound"`
	// Compress, unless empty, is what is done to models before they travel: Q, which writes each
	// value with fewer bits. Both peers of an exchange then move by half the difference of what
	// both codes stand for,
	//
	//	x_i ← x_i + (Q(x_j) − Q(x_i))/2,   x_j ← x_j + (Q(x_i) − Q(x_j))/2
	//
	// so that the sum of both remains. Operators that keep a part of the values are refused: peers
	// do not know each other's models, to send differences of them as CHOCO-SGD does.
	Compress compress.Chain `key:"compress"`
}

var _ train.Architecture = Architecture{}

// Default chooses among the neighbours of the network's topology, without a bound on the lead.
func Default() Architecture { return Architecture{Graph: Topology, Lead: -1} }

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	return field.Within(a, "Compress", a.Compress.Models())
}

// Roles is the one role of all nodes: each trains and holds a model.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer,
		Doc:    "computes gradients on its shard and averages models with one neighbour at a time",
		Trains: true, Holds: true, Min: 1}}
}

var _ train.Fitter = Architecture{}

// Fit returns an error where the graph does not fit the nodes or is not bipartite.
func (a Architecture) Fit(first, now *actors.View) error {
	if a.Graph == Exponential && !now.Complete() {
		return errOwnTopology
	}
	_, err := a.partners(first)
	return err
}

// Kind makes a peer. It fails for an Architecture that is not valid, and where the graph
// does not fit the nodes or is not bipartite.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		return newPeer(env, task, a)
	}
}
