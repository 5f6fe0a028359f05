// Package gaia implements Gaia: sites with a parameter server and workers each, which train copies
// of one model and tell each other no more than what matters (K. Hsieh et al., "Gaia:
// Geo-Distributed Machine Learning Approaching LAN Speeds", NSDI 2017). Its approximate synchronous
// parallel (ASP) is not what package consistency calls ASP.
//
// Inside a site a worker pushes each gradient to the site's server and goes on when the site's
// consistency lets it. What the server's optimizer makes of gradients accumulates, parameter by
// parameter, until it is significant: at least v/√t of the parameter, where v is the threshold and
// t the site's clock, the rounds that all of its workers have finished. Then it goes to the servers
// of all other sites, with its index, and accumulates from zero again. They add it to their copies
// as soon as it arrives. Two rules keep the copies from drifting apart:
//
//   - The selective barrier. Where the rate of the lines between sites is given, and these are busy
//     with earlier updates, the indices of significant ones go ahead, and the updates follow when
//     the lines are free. Until they arrive no worker there reads these parameters. A worker reads
//     all, so it waits for any of them.
//   - The mirror clock. A site that is more than some rounds ahead of the slowest one lets no
//     worker read. A site without workers holds nobody back. When one comes there, its clock goes
//     on with the slowest.
//
// When a run ends at one of its bounds, servers take in no more gradients. Each sends the others
// all that it has accumulated, and shows its model when the others have done the same: the final
// models have everybody's updates, and differ by rounding alone. Models that are looked at before
// are the copies as they are; so are those with which a run ends at its target. Where links lose
// messages for good, nobody waits for the others at the end.
//
// A server that goes takes with it what its site has accumulated, so the run ends.
package gaia

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

// The roles of the architecture.
const (
	RoleServer = "server"
	RoleWorker = "worker"
)

// Architecture is servers and workers in sites.
type Architecture struct {
	// Consistency says when a worker may go on, by the clocks of its site; nil stands for BSP.
	Consistency consistency.Model `key:"consistency"`
	// Scale is over the workers of all sites.
	Scale train.Scale `plan:"scale" words:"sum|mean" doc:"whether gradients count in full or divided by the number of workers of all sites that are there"`
	// Significance is v.
	Significance float64 `plan:"significance" unit:"fraction" range:"0%..100%" counts:"significance=rounds of a site" doc:"v: what has accumulated of a parameter goes to other sites when it is at least v/√t of it, in the site's round t; 0%: always"`
	// Clock bounds how far sites are apart.
	Clock int `plan:"clock" range:"0..1048576" counts:"lead=rounds of a site" doc:"rounds that a site may be ahead of the slowest one; beyond that its workers wait"`
	// Rate is in bytes a second, 0 for no barrier.
	Rate float64 `plan:"rate,omitzero" unit:"throughput" doc:"what each line from a site to another is reckoned to carry; while it is busy, the indices of updates go ahead, and workers there wait for the updates; default: no limit, and no barrier"`
}

// Default has a threshold of 1 %, and lets a site be eight rounds ahead.
func Default() Architecture {
	return Architecture{Consistency: consistency.BSP{}, Scale: train.Sum, Significance: 0.01, Clock: 8}
}

// Validate returns an error about the first field that makes no sense, a [*field.Error].
func (a Architecture) Validate() error {
	if err := field.Check(a); err != nil {
		return err
	}
	if a.model().Ahead() > 0 {
		return field.Errorf(a, "Consistency", "one with which workers wait for answers: not bounded-delay")
	}
	return nil
}

// model is the consistency.
func (a Architecture) model() consistency.Model {
	if a.Consistency == nil {
		return consistency.BSP{}
	}
	return a.Consistency
}

var (
	_ train.Architecture = Architecture{}
	_ train.Fitter       = Architecture{}
	_ train.Bounded      = Architecture{}
	_ train.Messenger    = Architecture{}
)

// Roles are servers, one at each site, and workers.
func (Architecture) Roles() []train.Role {
	return []train.Role{
		{Name: RoleServer, Doc: "holds its site's copy of the model, and tells other sites of what matters",
			Holds: true, Flushes: true, Min: 1, ByName: true},
		{Name: RoleWorker, Doc: "computes gradients on its shard for the server of its site", Trains: true, Min: 1},
	}
}

// RoundsAhead is the bound of the consistency and, between sites, that of the clocks.
func (a Architecture) RoundsAhead() (rounds uint64, steps int, bounded bool) {
	bound := a.model().Bound()
	return bound + uint64(a.Clock), 1, bound != consistency.Unbounded
}

// Messages are a gradient and the model that answers it. What goes between sites depends on what is
// significant, and is left out.
func (Architecture) Messages(_, _ int) (messages, models float64) { return 2, 2 }

var _ train.Predictable = Architecture{}

// SendsBy is the significance threshold, also at 0 %: a site sends only parameters that changed.
func (Architecture) SendsBy() string { return "significance: sites send what has changed enough" }

// Fit refuses sites that have workers and no server, several servers, or no workers.
func (Architecture) Fit(first, _ *actors.View) error {
	servers, trains := map[int32]*actors.Member{}, map[int32]bool{}
	for i := range first.Members {
		m := &first.Members[i]
		switch other := servers[m.Site]; {
		case m.Role != RoleServer:
			trains[m.Site] = true
		case other != nil:
			return fmt.Errorf("%s and %s are servers at one site; each site has one", other.Name, m.Name)
		case !m.Present:
			return fmt.Errorf("%s is a server that is not there at the beginning, and none joins later", m.Name)
		default:
			servers[m.Site] = m
		}
	}
	for i := range first.Members {
		switch m := &first.Members[i]; {
		case m.Role == RoleServer && !trains[m.Site]:
			return fmt.Errorf("%s is a server at a site without workers", m.Name)
		case m.Role == RoleWorker && servers[m.Site] == nil:
			return fmt.Errorf("%s is a worker at a site without a server; one node of each site needs role: %s",
				m.Name, RoleServer)
		}
	}
	return nil
}

// Kind makes a server or a worker.
func (a Architecture) Kind(task *train.Task, place train.Place) actors.Kind {
	if place.Role == RoleServer {
		return func(env actors.Env) (actor.Actor, error) { return newServer(env, task, a), nil }
	}
	return func(env actors.Env) (actor.Actor, error) { return newWorker(env, task) }
}
