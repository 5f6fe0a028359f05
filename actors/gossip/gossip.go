// Package gossip is decentralised training without a server: every peer trains its own model on its
// shard, exchanges models with some of its neighbours, and merges what arrives into its own.
//
// The default is gossip averaging over intermittently connected networks: after every step a peer
// sends its model to a random half of its neighbours, and averages half and half on each arrival.
// It differs from gossip learning (R. Ormándi, I. Hegedűs and M. Jelasity, "Gossip learning with
// linear models on fully distributed data", Concurrency and Computation 25(4), 2013; arXiv
// 1109.1396), where models walk and a peer merges the two that it received last. The age of a model
// and the exchange on the clock come from there.
//
// A step's gradient is computed on the parameters that the peer has when the step begins. Models
// that arrive meanwhile are merged on arrival into the present model; the gradient is then applied
// to that. So a computing peer answers at once and no arrival waits for a step. The price is a
// gradient that is a few merges old.
//
// Peers that do not wait live with messages that links drop, and take them as they come. Others
// need each message delivered. Over links that drop some, a peer that waits because of Wait waits
// until the sender has gone, and one that the lead holds until it is told of the others again.
package gossip

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/compress"
)

// RolePeer is the only role of the architecture.
const RolePeer = "peer"

// Exchange says which way models go when two peers exchange.
type Exchange string

// The ways of an exchange that a peer begins.
const (
	// Push sends the peer's model: one model a neighbour.
	Push Exchange = "push"
	// Pull asks for the neighbour's model: a small message, and one model back.
	Pull Exchange = "pull"
	// PushPull sends the peer's model, and the neighbour answers with its own as it was before
	// it merged: two models a neighbour. With Mean and nothing else going on both have the same
	// model afterwards, and the sum of the two is what it was.
	PushPull Exchange = "push-pull"
)

// Architecture is decentralised training by gossip. Its fields are its settings in a plan, see
// package field.
type Architecture struct {
	// Every is the number of local steps from exchange to exchange. Either Every or Period is
	// positive.
	Every int `plan:"every,omitzero" range:"1.." either:"every|period" counts:"interval=steps|epochs|samples" doc:"steps between two exchanges; or 0.1 epochs, or 4000 samples, of all workers together"`
	// Period is the time from exchange to exchange, whatever the steps do.
	Period time.Duration `plan:"period,omitzero" range:">0s" either:"every|period" counts:"interval=time" doc:"time between two exchanges"`
	// Choice says which neighbours a peer exchanges models with.
	Choice Choice `plan:"choose" doc:"with which neighbours models are exchanged"`
	// Exchange is Push, Pull or PushPull.
	Exchange Exchange `plan:"exchange" words:"push|pull|push-pull" doc:"who sends: the peer, the chosen neighbours, or both"`
	// Wait lets the next step begin only when what was sent has arrived (Push) or all answers
	// are here (Pull, PushPull). It cannot go with Period.
	Wait bool `plan:"wait" with:"every" doc:"whether a step waits until the exchange is over"`
	// Merge weighs a model that arrives against the peer's own.
	Merge Merge `plan:"merge" words:"mean|age" doc:"how each model that arrives is averaged with the peer's own, one after the other, so that the last of several counts most with mean: half and half, or in proportion to their ages; an age counts the updates on the longest way to the model"`
	// Rule, unless nil, is a program's own, in place of Merge.
	Rule Rule
	// Moved lets an exchange happen only if the model is further than this from where it was at the
	// exchange before, in Euclidean distance; with 0 all happen.
	Moved float64 `plan:"moved" range:"0.." counts:"moved=rounds" doc:"a peer begins an exchange only if its model has moved by more than this (Euclidean norm of the parameters) since the last; 0: always; it answers others in any case"`
	// Lead bounds how many steps a peer may be ahead of the slowest; −1 is no bound. How peers hear
	// of each other's steps, says Lead of package peer.
	Lead int `plan:"lead" range:"0.." none:"-1" counts:"lead=steps" doc:"steps that a peer may be ahead of the slowest when it begins another; default: no bound"`
	// Compress, unless empty, is what is done to models before they travel: each value is written
	// with fewer bits. A peer merges what the code of another's model stands for into its own model
	// as it is. Operators that keep a part of the values are refused: peers do not know each
	// other's models, to send differences of them as CHOCO-SGD does.
	Compress compress.Chain `key:"compress"`
}

// NoLead is the Lead of peers that are not bounded.
const NoLead = -1

// Default pushes the model to a random half of the neighbours after every step, and waits until it
// has arrived.
func Default() Architecture {
	return Architecture{
		Every: 1, Choice: Choice{By: Random, Share: 0.5}, Exchange: Push, Wait: true, Merge: Mean, Lead: NoLead,
	}
}

var _ train.Architecture = Architecture{}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	return field.Within(a, "Compress", a.Compress.Models())
}

// Roles is the one role of all nodes: each trains and holds a model.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "trains a model on its shard and exchanges it with neighbours",
		Trains: true, Holds: true, Min: 1}}
}

var _ train.FreeRunner = Architecture{}

// FreeRunning reports whether a peer makes its steps whatever becomes of its exchanges.
func (a Architecture) FreeRunning() bool { return !a.Wait && a.Lead < 0 }

var _ train.Tolerant = Architecture{}

// Tolerant reports whether nobody waits for a message: a model that is lost is a merge less.
func (a Architecture) Tolerant() bool { return a.FreeRunning() }

// Kind makes a peer. It fails for an Architecture that is not valid.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		if a.Rule == nil {
			a.Rule = a.Merge
		}
		return newPeer(env, task, a)
	}
}
