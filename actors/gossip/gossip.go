// Package gossip is decentralised training without a server: every peer trains a model of
// its own on its shard, exchanges models with some of its neighbours, and merges what
// arrives into its own.
//
// The default is gossip averaging over intermittently connected networks: after every step a
// peer sends its model to a random half of its neighbours, and averages half and half on
// each arrival. It differs from gossip learning (R. Ormándi, I. Hegedűs and M. Jelasity,
// "Gossip learning with linear models on fully distributed data", Concurrency and Computation
// 25(4), 2013; arXiv 1109.1396), where models walk and what a peer merges are the two it has
// received last; from there are the age of a model and the exchange on the clock.
//
// A step's gradient is computed on the parameters that the peer has when the step begins.
// Models that arrive meanwhile are merged on arrival into the present model; the gradient is
// then applied to that. So a peer that is computing answers at once, and no arrival waits for a
// step, at the price of a gradient that is a few merges old.
//
// A message that its link drops for good is not sent again: whoever waits for it, because of
// Wait or after joining, waits until the other has gone. Links that lose messages need
// retransmission, or an architecture that does not wait.
package gossip

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
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

// Architecture is decentralised training by gossip.
type Architecture struct {
	// Every is the number of local steps from exchange to exchange. Either Every or Period is positive.
	Every int
	// Period is the time from exchange to exchange, whatever the steps do.
	Period time.Duration
	// Choice says which neighbours a peer exchanges models with.
	Choice Choice
	// Exchange is Push, Pull or PushPull.
	Exchange Exchange
	// Wait lets the next step begin only when what was sent has arrived (Push) or all answers
	// are here (Pull, PushPull). It cannot go with Period.
	Wait bool
	// Merge weighs a model that arrives against the peer's own.
	Merge Rule
	// Moved lets an exchange happen only if the model is further than this from where it was at the
	// exchange before, in Euclidean distance; with 0 all happen.
	Moved float64
	// Lead bounds how many steps a peer may be ahead of the slowest; −1 is no bound. Every
	// peer announces its clock to all neighbours after every step.
	Lead int
}

var _ train.Architecture = Architecture{}

// NoLead is the Lead of peers that are not bounded.
const NoLead = -1

// Validate returns an error that names the first field that makes no sense.
func (a Architecture) Validate() error {
	switch {
	case a.Every < 0:
		return fmt.Errorf("every is %d steps, accepted is 1 or more", a.Every)
	case a.Period < 0:
		return fmt.Errorf("period is %v, accepted is a positive time", a.Period)
	case (a.Every > 0) == (a.Period > 0):
		return errors.New("exchanges happen either every so many steps or with a period: exactly one of every and period must be positive")
	case a.Exchange != Push && a.Exchange != Pull && a.Exchange != PushPull:
		return fmt.Errorf("exchange %q is not known, accepted are %s, %s and %s", a.Exchange, Push, Pull, PushPull)
	case a.Wait && a.Period > 0:
		return errors.New("wait goes with every only: exchanges with a period do not depend on steps, so that no step can wait for them")
	case a.Merge == nil:
		return errors.New("there is no rule to merge by")
	case !(a.Moved >= 0) || math.IsInf(a.Moved, 1):
		return fmt.Errorf("moved is %v, accepted is a distance of 0 or more", a.Moved)
	case a.Lead < NoLead:
		return fmt.Errorf("lead is %d steps, accepted is 0 or more, or %d for no bound", a.Lead, NoLead)
	}
	return a.Choice.Validate()
}

// Roles is the one role of all nodes: each trains and holds a model.
func (a Architecture) Roles() []train.Role {
	return []train.Role{{Name: RolePeer, Doc: "trains a model on its shard and exchanges it with neighbours", Trains: true, Holds: true, Min: 1}}
}

var _ train.FreeRunner = Architecture{}

// FreeRunning reports whether a peer makes its steps whatever becomes of its exchanges.
func (a Architecture) FreeRunning() bool { return !a.Wait && a.Lead < 0 }

// Kind makes a peer. It fails for an Architecture that is not valid.
func (a Architecture) Kind(task *train.Task, _ train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		if err := a.Validate(); err != nil {
			return nil, err
		}
		return newPeer(env, task, a)
	}
}
