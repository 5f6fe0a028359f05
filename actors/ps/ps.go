// Package ps implements the parameter server: one server holds the model; workers compute
// gradients, push them and go on with the parameters that they get back.
//
// Consistency is asynchronous (ASP): the server applies every gradient as it
// arrives and answers that worker at once (M. Li et al., "Scaling Distributed
// Machine Learning with the Parameter Server", OSDI 2014, section 3; J. Dean et
// al., "Large Scale Distributed Deep Networks", NIPS 2012, section 4.1).
package ps

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// The roles of the architecture.
const (
	RoleServer = "server"
	RoleWorker = "worker"
)

// Scale says how much one worker's gradient counts.
type Scale string

// The scales.
const (
	// Sum applies every gradient whole: n workers make n steps in the time of one.
	Sum Scale = "sum"
	// Mean divides every gradient by the number of workers, as synchronous averaging does.
	Mean Scale = "mean"
)

// Architecture is a parameter server with one server and any number of workers.
type Architecture struct {
	// Scale is Sum or Mean.
	Scale Scale `plan:"scale" words:"sum|mean" doc:"whether gradients count in full or divided by the number of workers"`
	// Every is how many steps a worker makes between two pushes; 0 stands for 1. Beyond 1 the
	// worker updates its copy of the parameters with its own optimiser after each step, and the
	// server makes one step of its optimiser with the sum of the gradients.
	Every int `plan:"every,omitzero" range:"1..1048576" doc:"steps that a worker makes on its own copy between two pushes; it pushes the sum of their gradients (Dean et al. 2012, section 4.1)"`
}

var _ train.Architecture = Architecture{}

// Default counts every gradient in full, and pushes each.
func Default() Architecture { return Architecture{Scale: Sum, Every: 1} }

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error { return field.Check(a) }

// Roles are one server, which holds the model, and workers, which train it.
func (a Architecture) Roles() []train.Role {
	return []train.Role{
		{Name: RoleServer, Doc: "holds the model and applies the workers' gradients", Holds: true, Min: 1, Max: 1},
		{Name: RoleWorker, Doc: "computes gradients on its shard", Trains: true, Min: 1},
	}
}

// Kind makes a server or a worker.
func (a Architecture) Kind(task *train.Task, place train.Place) actors.Kind {
	if place.Role == RoleServer {
		return func(env actors.Env) (actor.Actor, error) { return newServer(env, task, a), nil }
	}
	return func(env actors.Env) (actor.Actor, error) { return newWorker(env, task, a) }
}
