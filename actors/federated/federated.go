// Package federated implements federated learning in rounds: a server draws some of the clients
// that are there and sends them its model; each makes local steps on its own samples and sends back
// by how much its model differs; the server makes one step of its outer optimizer with the weighted
// mean (H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized
// Data", AISTATS 2017, algorithm 1). See package periodic for what rounds are made of.
//
// A round ends when the updates that it wants are in, or at its deadline. Whoever leaves or
// crashes is not waited for; whoever joins can be drawn from the next round on; an update that
// comes later is dropped. The record counts the clients that were drawn in vain. Each round
// counts, also one that nobody has answered, which leaves the model as it is; the record has the
// number of these too. Updates are added in the order of the plan's nodes, never of arrival.
//
// With a Buffer it is asynchronous, see [Architecture.Buffer]: a round is what lies between two
// steps of the server, clients of earlier rounds stay at work, and another one is drawn as soon as
// an update has come. Its client is drawn again after the step, so that none counts twice in one.
//
// Clients may attack, see [Attack], and the mean may be one that resists them, see package robust.
// A round with fewer updates than that needs counts, leaves the model, and is recorded. Attackers
// falsify what they have learned and nothing else: neither their numbers of samples nor their
// controls.
//
// With a population nodes are hosts of the clients that are drawn, who take turns on them.
//
// Edge aggregators may stand between the server and clients, see [Architecture.Under]. While one is
// away, who is below it takes no part.
//
// The server is one node. If it goes, the model is lost, and the run ends.
package federated

import (
	"errors"
	"math"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/periodic"
	"github.com/gradwire/gradwire/actors/periodic/robust"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/optim"
)

// The roles of the architecture.
const (
	RoleServer     = "server"
	RoleAggregator = "aggregator"
	RoleClient     = "client"
)

// Architecture is a server and clients that learn in rounds.
type Architecture struct {
	// Share and Count say how many clients a round wants updates of; one of the two is positive.
	// Share is of those that are there when the round begins, at least one.
	Share float64 `plan:"share,omitzero" unit:"fraction" range:">0%..100%" either:"share|count" doc:"share of the clients that are there, or of the population, that a round wants updates of, rounded to the nearest number, at least one; with under, of those below each node"`
	Count int     `plan:"count,omitzero" range:"1..16777216" either:"share|count" doc:"clients that a round wants updates of, or all that are there; with under, below each node"`
	// Population is how many clients there are, of whom the nodes are hosts; 0 is the nodes alone.
	Population int `plan:"population,omitzero" range:"1..2147483647" doc:"registered clients, which are drawn for rounds and take turns on the nodes; default: each node is one client"`
	// Spare is by which share more clients are drawn: the round ends with the first updates, as
	// many as it wants (K. Bonawitz et al., "Towards Federated Learning at Scale", MLSys 2019).
	Spare float64 `plan:"spare,omitzero" unit:"fraction" range:">0%..100%" doc:"by which share more clients are drawn than a round wants updates of; it ends with the first ones; default: none"`
	// Local is what a client does in a round.
	Local periodic.Work `plan:"local" doc:"what a client does in a round: {epochs: 1} or {steps: 10}, also with time, which ends it early"`
	// State is Fresh or Kept.
	State periodic.State `plan:"state" words:"fresh|kept" doc:"what becomes of a client's inner optimizer between its rounds: fresh forgets its momentum; the schedule of its rate counts rounds"`
	// Proximal is μ of FedProx.
	Proximal float64 `plan:"proximal" range:"0.." doc:"factor of the proximal term that pulls a client's model to the server's (FedProx, Li et al. 2020)"`
	// Controls has clients correct their gradients as SCAFFOLD does, see [client].
	Controls bool `plan:"controls" doc:"whether clients correct their gradients by control variates, the means of a round's gradients (SCAFFOLD, option II, Karimireddy et al. 2020), zero at first and when a client goes"`
	// Weights is how much an update counts.
	Weights periodic.Weights `plan:"weights" words:"samples|equal|steps-normalised" doc:"how much an update counts among those received: as many as the client has samples, all alike, or by samples, times the mean number of steps, divided by its own (FedNova, Wang et al. 2020)"`
	// Mean is what is made of the updates. With Controls, or weights that are Normalised, it is a
	// plain one.
	Mean robust.Rule `plan:"mean" doc:"of what kind the mean of the updates is: mean, or median, trimmed-mean, krum, multi-krum, bulyan or geometric-median, which resist attackers: {kind: krum, attackers: 2}"`
	// Attack is nil where all clients are honest.
	Attack *Attack `plan:"attack" doc:"clients that send false updates, by sign-flip, noise, label-flip or little-is-enough: {kind: sign-flip, share: 20%} or {kind: noise, nodes: [c1, c2], scale: 3}; default: none"`
	// Under says which nodes are directly below each aggregator, by their names or those of their
	// groups. All others are below the server.
	Under map[string][]string `plan:"under,omitzero" doc:"which clients and aggregators report to each node of role aggregator, by name or group: {edge: [client1, client2]}; all others report to the server"`
	// Deadline ends a round with what is there; 0 is none.
	Deadline time.Duration `plan:"deadline,omitzero" range:">0s" doc:"after which a round ends with the updates that are in; default: it waits for all it wants"`
	// Grace ends a round soon after those that came before; nil does not.
	Grace *Grace `plan:"grace,omitzero" doc:"ends a round by when its updates come: {quorum: 50%, mads: 3} waits for half of those that it wants, and then until median + 3·MAD of their times since it began; default: it waits for all it wants"`
	// Exchange is PseudoGradient or Parameters.
	Exchange Exchange `plan:"exchange" words:"pseudo-gradient|parameters" doc:"what a client sends: by how much its model differs from the one that it was sent, or its model, which the server compares with the one that it has by then"`
	// Buffer is with how many updates the server makes a step, which is a round in all that counts
	// rounds, while clients work on: FedBuff (Nguyen et al. 2022), or with 1 and Parameters
	// FedAsync (Xie et al. 2019). 0 is rounds.
	Buffer int `plan:"buffer,omitzero" range:"1..16777216" doc:"asynchronous: share or count clients are always at work, and the server makes a step, which counts as a round, whenever so many updates are in, one of a client at most, or no more can come; default: rounds"`
	// Staleness is how much an update counts that is late.
	Staleness periodic.Staleness `plan:"staleness,omitzero" with:"buffer" doc:"how much an update counts by how many steps the server has made since its client was drawn: {kind: polynomial}; default: all alike"`
	// Outer makes a step with the mean of the updates in each round.
	Outer optim.Method `key:"outer"`
}

var (
	_ train.Architecture = Architecture{}
	_ train.Fitter       = Architecture{}
)

// Default is FedAvg with all clients and one local epoch.
func Default() Architecture {
	return Architecture{Share: 1, Local: periodic.Work{Epochs: 1}, State: periodic.Fresh, Weights: periodic.Samples,
		Mean: robust.Rule{Kind: robust.Mean}, Exchange: PseudoGradient, Outer: optim.SGD{Rate: optim.Constant(1)}}
}

// Presets are the names that the field has for some settings: those that differ from Default, in a
// plan's flow style, with the constants of their papers. The rates of fedadam, fedyogi and fedbuff
// depend on the task there.
var Presets = map[string]string{
	"fedavg":   "{}",
	"fedprox":  "{proximal: 0.01}",
	"fednova":  "{weights: steps-normalised}",
	"scaffold": "{controls: true, weights: equal}",
	"fedavgm":  "{outer: {kind: momentum, rate: 1, momentum: 0.9}}",
	"fedadam":  "{outer: {kind: adaptive, second: adam, rate: 0.01}}",
	"fedyogi":  "{outer: {kind: adaptive, second: yogi, rate: 0.01}}",
	"fedasync": "{buffer: 1, exchange: parameters, staleness: {kind: polynomial}, outer: {kind: sgd, rate: 0.6}}",
	"fedbuff":  "{buffer: 10, weights: equal, staleness: {kind: polynomial}}",
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := errors.Join(field.Check(a), field.Within(a, "Mean", a.Mean.Validate())); err != nil {
		return err
	}
	if a.Grace != nil {
		if err := a.Grace.Validate(); err != nil {
			return field.Within(a, "Grace", err)
		}
	}
	plain := a.Mean.Kind == robust.Mean
	switch {
	case !plain && a.Controls:
		return field.Errorf(a, "Controls", "false with mean: %s, which no mean of controls goes with", a.Mean.Kind)
	case !plain && a.Weights == periodic.Normalised:
		return field.Errorf(a, "Weights", "samples or equal with mean: %s, which compares updates as they are",
			a.Mean.Kind)
	case !plain && a.Staleness.Kind != "":
		return field.Errorf(a, "Staleness", "left out with mean: %s, which compares updates as they are", a.Mean.Kind)
	}
	return errors.Join(a.checkAsynchronous(), a.checkPopulation(), a.checkEdges())
}

// Fit returns an error about attackers that are no clients, aggregators that are in no tree, and a
// mean that no round can have.
func (a Architecture) Fit(first, _ *actors.View) error {
	var clients []string
	for _, m := range first.Members {
		if m.Role == RoleClient {
			clients = append(clients, m.Name)
		}
	}
	if a.Attack != nil {
		if err := field.Within(a, "Attack", a.Attack.fit(clients)); err != nil {
			return err
		}
	}
	return a.fitEdges(first.Members)
}

// wanted is how many updates a round wants of a number of clients that are there, and how many of
// these are drawn.
func (a *Architecture) wanted(there int) (updates, drawn int) {
	updates = min(a.Count, there)
	if a.Count == 0 {
		updates = max(int(math.Round(a.Share*float64(there))), 1)
	}
	return updates, min(updates+int(math.Ceil(a.Spare*float64(updates))), there)
}

// tensors is how many vectors of parameters travel at once.
func (a *Architecture) tensors() int {
	if a.Controls {
		return 2
	}
	return 1
}

// OuterOptimizer implements [train.Outer]. It steps once a round, and so do the rate schedules of the
// clients.
func (a Architecture) OuterOptimizer() (optim.Method, int) { return a.Outer, 1 }

// InRounds is true: a run can be evaluated and ended by rounds.
func (Architecture) InRounds() bool { return true }

// Messages is a model there and back for each round; of epochs a client makes a step at least.
func (a Architecture) Messages(_, _ int) (messages, models float64) {
	rounds := 1 / float64(max(a.Local.Steps, a.Local.Epochs, 1))
	return 2 * rounds, 2 * rounds * float64(a.tensors())
}

var (
	_ train.Rounds    = Architecture{}
	_ train.Messenger = Architecture{}
)

// Roles are a server, which holds the model, and clients, which train it.
func (Architecture) Roles() []train.Role {
	return []train.Role{
		{Name: RoleServer, Doc: "holds the model, and takes in what clients have learned in a round",
			Holds: true, Min: 1, Max: 1},
		{Name: RoleAggregator, Doc: "sends a round's model on to those below it, and the mean of their updates up",
			ByName: true},
		{Name: RoleClient, Doc: "trains the server's model on its shard in the rounds that it is drawn for",
			Trains: true, Min: 1},
	}
}

// Kind makes the server or a client.
func (a Architecture) Kind(task *train.Task, place train.Place) actors.Kind {
	if place.Role == RoleServer {
		return func(env actors.Env) (actor.Actor, error) { return newServer(env, task, a), nil }
	}
	if place.Role == RoleAggregator {
		return func(env actors.Env) (actor.Actor, error) { return newAggregator(env, task, a), nil }
	}
	return func(env actors.Env) (actor.Actor, error) { return newClient(env, task, a) }
}
