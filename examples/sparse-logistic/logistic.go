package main

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/ps/table"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/nn/optim"
)

// The roles of the architecture.
const (
	roleServer = shards.RoleServer
	roleWorker = "worker"
	roleJudge  = "judge"
)

// weights is the name of the table.
const weights = "weights"

// logistic is sparse logistic regression by proximal steps on a parameter server: M. Li et al.,
// "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014, section 5.1. Its
// fields are its settings in a plan.
type logistic struct {
	// Penalty is λ, the factor of the ℓ1 norm.
	Penalty float64 `plan:"penalty" range:"0.." doc:"factor of the l1 norm of the weights"`
	// Keys is how many keys the table can have, 0 for the inputs of the data.
	Keys uint64 `plan:"keys,omitzero" doc:"keys that the table can have, of which the inputs of the data are some; left out: the inputs alone"`
	// Shards is how many ranges of equal length the keys are cut into.
	Shards int `plan:"shards" range:"1..65536" doc:"ranges of keys, which the servers share"`
	// Delay is the bounded delay of each worker.
	Delay int `plan:"delay" range:"-1..1000000" doc:"how many tasks of a worker a task may overtake at most; -1: any number"`
	// Filters are what workers leave out.
	Filters filters `plan:"filters" doc:"what workers leave out of what they send"`
	// Servers says how keys are spread over several servers.
	Servers *shards.Servers `plan:"servers" doc:"with several servers: how they share the keys"`
}

var (
	_ train.Architecture = logistic{}
	_ train.Fitter       = logistic{}
)

// Roles are the servers of the table, workers, and a judge, which looks at the whole table.
func (l logistic) Roles() []train.Role {
	return []train.Role{
		{Name: roleServer, Doc: "holds weights, or some of them", Min: 1, ByName: true,
			Copied: l.Servers != nil && l.Servers.Replicas > 0},
		{Name: roleJudge, Doc: "puts the model together that is judged", Holds: true, Min: 1, Max: 1, ByName: true},
		{Name: roleWorker, Doc: "computes gradients on its batches", Trains: true, Min: 1},
	}
}

// Fit refuses as many replicas as there are servers.
func (l logistic) Fit(first, _ *actors.View) error { return l.Servers.Fit(shards.Count(first.Members)) }

// Kind makes the actor of a node.
func (l logistic) Kind(task *train.Task, place train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		switch place.Role {
		case roleServer:
			tables, err := l.tables(task)
			if err != nil {
				return nil, err
			}
			return table.NewServer(env, tables, l.Servers)
		case roleJudge:
			return newJudge(env, task, l)
		default:
			return newWorker(env, task, l)
		}
	}
}

// keys is how many keys the table can have.
func (l logistic) keys(task *train.Task) uint64 {
	if l.Keys == 0 {
		return uint64(task.Train.Inputs)
	}
	return l.Keys
}

// tables is the one table that there is: a weight for each key that was pushed to.
func (l logistic) tables(task *train.Task) ([]*table.Table, error) {
	sgd, ok := task.Method.(optim.SGD)
	switch m := task.Model; {
	case !ok:
		return nil, catalog.About("penalty", fmt.Errorf("proximal steps need optimizer sgd, for its rate"))
	case m.Classes() != 2 || m.Params() != 2*(m.Inputs()+1):
		return nil, fmt.Errorf("the model of logistic regression is an mlp of %d inputs, no hidden layer and 2 classes",
			m.Inputs())
	case l.keys(task) < uint64(m.Inputs()):
		return nil, catalog.About("keys", fmt.Errorf("%d keys for %d inputs", l.Keys, m.Inputs()))
	}
	return []*table.Table{{Name: weights, Keys: l.keys(task), Width: 1, Sparse: true, Shards: l.Shards,
		Update: table.Proximal(sgd.Rate, l.Penalty)}}, nil
}
