// Package gossiplearning is gossip learning: models walk from peer to peer, each of which updates
// those that visit it by its own samples and merges them with others (R. Ormándi, I. Hegedűs and M.
// Jelasity, "Gossip learning with linear models on fully distributed data", Concurrency and
// Computation 25(4), 2013; arXiv 1109.1396).
//
// Every Period a peer sends the freshest model of its cache to a random neighbour. From a model m
// that it receives, and the one that it had received before, it creates another, as Create says,
// and puts it into the cache, which forgets the oldest when it is full; m itself, as it came, is
// the one received before from then on (algorithm 1 there). A peer begins with the initial model of
// the run, of age 0, both in the cache and as received; so does one that joins, and it asks nobody.
// A peer predicts by the freshest model, or by a vote of the cache (algorithm 4).
//
// An update is a step of the optimizer with the gradient of one batch of the peer's shard. Its rate
// goes by the age of the model, the number of updates that it is made of along the longest way,
// which travels with it; what an optimizer remembers of gradients stays with the peer.
// With a linear model of hinge loss, weight decay λ and the rate 1/(λt), which is {kind: inverse,
// first: 1/λ, half: 1}, an update is that of Pegasos and MU is P2PegasosMU; with squared loss and a
// constant rate it is Adaline's.
//
// Where an update takes time, models that arrive meanwhile wait, as many as the cache holds; one
// more takes the place of the one that has waited longest, which is recorded.
//
// Messages that are lost or late cost a merge, and nobody waits for any, so the architecture takes
// them as they come. The first sending of a peer is at a random instant of the first Period.
package gossiplearning

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// PassedOver is the name under which a peer records, whenever one more model has waited in vain,
// how many have.
const PassedOver = "models passed over"

// Create says what a peer makes of a model m that it receives and of the one received before.
type Create string

// What is created (algorithm 2 of the paper).
const (
	// RW is update(m): models walk at random, and never meet.
	RW Create = "rw"
	// MU is update(merge(m, last)).
	MU Create = "mu"
	// UM is merge(update(m), update(last)): two updates, by two batches in turn.
	UM Create = "um"
)

// Predict says by which model a peer is judged.
type Predict string

// What a peer predicts by.
const (
	// Freshest is the model that was created last.
	Freshest Predict = "freshest"
	// Vote is the class that most models of the cache predict, the first of several such. The
	// average model of an evaluation, and what a run saves, are of the freshest ones all the same.
	Vote Predict = "vote"
)

// Architecture is gossip learning. Its fields are its settings in a plan, see package field.
type Architecture struct {
	// Period is Δ, the time from one turn of a peer to the next.
	Period time.Duration `plan:"period" range:">0s" doc:"time from one turn of a peer to send to the next"`
	// Create is RW, MU or UM.
	Create Create `plan:"create" words:"rw|mu|um" doc:"what becomes of a model that is received: update, merge with the one before and update, or update both and merge"`
	// Merge weighs the two models that are merged. RW merges none.
	Merge Merge `plan:"merge" words:"mean|age" doc:"how two models are averaged: half and half, or in proportion to their ages"`
	// Cache is how many models a peer keeps.
	Cache int `plan:"cache" range:"1..1000" doc:"models that a peer keeps, and that may wait for it, the newest ones of either"`
	// Predict is Freshest or Vote.
	Predict Predict `plan:"predict" words:"freshest|vote" doc:"by which model a peer is judged: the newest one, which is also what a run saves, or a vote of all that it keeps"`
	// Flow says when a peer sends.
	Flow Flow `plan:"flow" doc:"when models are sent: each period, or by a token account"`
}

// Default is P2PegasosMU's: a model every second, ten in the cache.
func Default() Architecture {
	return Architecture{Period: time.Second, Create: MU, Merge: Mean, Cache: 10, Predict: Freshest,
		Flow: Flow{Kind: Proactive}}
}

var _ train.Architecture = Architecture{}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	return field.Within(a, "Flow", a.Flow.Validate())
}

// Roles is the one role of all nodes: each trains and holds models. One alone would never be sent
// any.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "updates the models that visit it by its shard, and sends them on",
		Trains: true, Holds: true, Min: 2}}
}

var _ train.Tolerant = Architecture{}

// Tolerant is true: a model that is lost is one fewer that walks on.
func (a Architecture) Tolerant() bool { return true }

var _ train.Conserving = Architecture{}

// Conserves is no sum: the sender of a model keeps it as well.
func (a Architecture) Conserves() train.Conserved { return train.Conserved{Between: true} }

var _ train.Messenger = Architecture{}

// Messages is one model for each update, or for every two: in the mean a peer receives as many as
// it sends, and a token account spends no more than a token a period.
func (a Architecture) Messages(_, _ int) (messages, models float64) {
	if a.Create == UM {
		return 0.5, 0.5
	}
	return 1, 1
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
