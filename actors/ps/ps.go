// Package ps implements the parameter server: servers hold the model; workers compute
// gradients, push them and go on with the parameters that they get back (M. Li et al., "Scaling
// Distributed Machine Learning with the Parameter Server", OSDI 2014, section 3; J. Dean et al.,
// "Large Scale Distributed Deep Networks", NIPS 2012, section 4.1).
//
// Several servers share the model by [Servers], in shards. Each shard is a parameter server of its
// own, with its own clocks: a worker pushes to all of them, and goes on when all have answered.
// Servers may join and leave in order while training goes on; one that crashes ends the run, unless
// others have replicas of its shards.
//
// When a worker may go on is a matter of the consistency, see package consistency. With a bound of
// 0 the server combines the gradients of a round, in the order of their workers, and makes one step
// with them; otherwise it makes one with each gradient as it arrives.
//
// Custom actors and driver programs use a parameter server by its keys: packages table, below, and
// cluster/tables.
package ps

import (
	"errors"
	"fmt"
	"math"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/nn/compress"
)

// The roles of the architecture.
const (
	RoleServer = shards.RoleServer
	RoleWorker = "worker"
)

// Scale says how much one worker's gradient counts; see [train.Scale]. Of a round, the mean is that
// of the gradients that are in it.
type Scale = train.Scale

// The scales.
const (
	Sum  = train.Sum
	Mean = train.Mean
)

// StalenessRate says how much a gradient counts by its staleness: the number of updates since the
// parameters that it was computed on.
type StalenessRate string

// The rates.
const (
	// None counts all alike.
	None StalenessRate = "none"
	// Inverse divides a gradient of staleness t by max(t, 1) (W. Zhang et al., "Staleness-aware
	// Async-SGD for Distributed Deep Learning", IJCAI 2016, equation 6).
	Inverse StalenessRate = "inverse"
)

// Architecture is a parameter server with any number of servers and workers.
type Architecture struct {
	// Consistency says when a worker may go on; nil stands for asynchronous.
	Consistency consistency.Model `key:"consistency"`
	// Scale is Sum or Mean.
	Scale Scale `plan:"scale" words:"sum|mean" doc:"whether gradients count in full or divided by the number of workers that are there, or, with bsp, of the gradients in the round"`
	// Every is how many steps a worker makes between two pushes; 0 stands for 1. Beyond 1 the
	// worker updates its copy of the parameters with its own optimiser after each step, and the
	// server makes one step of its optimiser with the sum of the gradients.
	Every int `plan:"every,omitzero" range:"1..1048576" counts:"interval=steps|epochs|samples" doc:"steps that a worker makes on its own copy between two pushes, whose gradients it sums up (Dean et al. 2012, section 4.1); or 0.1 epochs, or 4000 samples, of all workers together"`
	// Compress is what is done to gradients and models before they travel.
	Compress compress.Both `key:"compress"`
	// Servers says how the parameters are spread over several servers; nil stands for the defaults,
	// and for one server with all of them.
	Servers *Servers `plan:"servers" doc:"how the parameters are cut into shards, and how several nodes of role server share these"`
	// Backup is how many workers a round ends without, the slowest ones (J. Chen et al.,
	// "Revisiting Distributed Synchronous SGD", ICLR 2016 workshop, section 3).
	Backup int `plan:"backup,omitzero" range:"1..65536" doc:"with bsp: how many workers, the slowest, a round of a shard ends without; their gradients are dropped, and counted by the first shard"`
	// StalenessRate is None or Inverse.
	StalenessRate StalenessRate `plan:"staleness-rate" words:"none|inverse" doc:"inverse: a gradient that is t updates old counts 1/max(t, 1)"`
	// EpochShare is which share of the samples makes an epoch, whose end all workers wait for and
	// begin the next pass through their shards with; 0 lets each go at its own pace.
	EpochShare float64 `plan:"epoch-share,omitzero" unit:"fraction" range:">0%..100%" doc:"an epoch ends for all workers when this share of the samples has been processed, or no worker has any left (Project Adam, OSDI 2014); left out: each walks through its shard at its own pace"`
}

var (
	_ train.Architecture = Architecture{}
	_ train.FreeRunner   = Architecture{}
	_ train.Epochs       = Architecture{}
	_ train.Teams        = Architecture{}
)

// Default is asynchronous, counts every gradient in full, and pushes each.
func Default() Architecture {
	return Architecture{Consistency: consistency.ASP{}, Scale: Sum, Every: 1, StalenessRate: None}
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	if a.Servers != nil {
		if err := a.Servers.Validate(); err != nil {
			return err
		}
	}
	if a.Backup > 0 && a.model().Bound() != 0 {
		return field.Errorf(a, "Backup", "left out without consistency: bsp")
	}
	if c := &a.Compress; a.model().Ahead() > 0 && (c.Down != nil || c.Up != nil && c.Feedback == compress.EF21) {
		return field.Errorf(a, "Compress", "of gradients alone, with another feedback than ef21, where messages may "+
			"overtake each other, as with consistency: bounded-delay")
	}
	return nil
}

// replicated reports whether shards have replicas.
func (a Architecture) replicated() bool { return a.Servers != nil && a.Servers.Replicas > 0 }

// model is the consistency.
func (a Architecture) model() consistency.Model {
	if a.Consistency == nil {
		return consistency.ASP{}
	}
	return a.Consistency
}

// FreeRunning reports whether workers never wait for the server.
func (a Architecture) FreeRunning() bool {
	return a.model().Ahead() == consistency.Unbounded && a.EpochShare == 0
}

// RoundsAhead is the bound of the consistency.
func (a Architecture) RoundsAhead() (rounds uint64, steps int, bounded bool) {
	bound := a.model().Bound()
	return bound, max(a.Every, 1), bound != consistency.Unbounded && a.Backup == 0 && a.EpochShare == 0
}

// InShards reports whether the model is cut.
func (a Architecture) InShards(servers int) bool { return a.Servers != nil || servers > 1 }

// EpochSamples is how many of the training samples make an epoch.
func (a Architecture) EpochSamples(samples int) int {
	if a.EpochShare == 0 {
		return samples
	}
	return int(math.Ceil(a.EpochShare * float64(samples)))
}

// CheckThreads refuses threads unless a worker makes several steps on its own copy.
func (a Architecture) CheckThreads() error {
	if a.Every < 2 {
		return errors.New("with every: 1 a worker pushes each gradient, so threads have no copy to share; every: 2 " +
			"or more has one")
	}
	return nil
}

// Fit refuses as many backup workers as there are workers, and as many replicas as there are
// servers.
func (a Architecture) Fit(first, _ *actors.View) error {
	if err := a.Servers.Fit(shards.Count(first.Members)); err != nil {
		return err
	}
	if n := len(first.Role(RoleWorker)); a.Backup >= n && a.Backup > 0 {
		return fmt.Errorf("a round cannot end without %d workers where %d are there at the beginning", a.Backup, n)
	}
	return nil
}

// Roles are servers, which hold the model among them, and workers, which train it.
func (a Architecture) Roles() []train.Role {
	return []train.Role{
		{Name: RoleServer, Doc: "holds the model, or some shards of it, and applies the workers' gradients",
			Holds: true, Joint: true, Copied: a.replicated(), Min: 1, ByName: true},
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
