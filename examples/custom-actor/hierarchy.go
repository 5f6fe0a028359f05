package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/protos"
)

// The roles of the architecture.
const (
	roleRoot   = "root"
	roleSite   = "site"
	roleWorker = "worker"
)

// hierarchy is a parameter server with two levels, for workers that are close to some and
// far from others. Each site has its own server, which trains a model synchronously with the
// site's workers and exchanges it with the root every Every rounds
// (hierarchical local SGD: T. Lin et al., "Don't Use Large Mini-Batches, Use Local SGD",
// ICLR 2020). Its fields are its settings in a plan.
type hierarchy struct {
	// Sites are the workers of each site's server, by name.
	Sites map[string][]string `plan:"sites,required" doc:"the workers of each site's server"`
	// Every is the number of rounds from one exchange of a site to the next, at least 1.
	Every int `plan:"every" range:"1.." doc:"rounds from one exchange with the root to the next"`
	// Wait makes the exchanges synchronous: the root waits for all sites, and their workers
	// for the root. Otherwise a site continues while an exchange is under way.
	Wait bool `plan:"wait" doc:"whether exchanges are synchronous"`
}

var (
	_ train.Architecture = hierarchy{}
	_ train.Fitter       = hierarchy{}
)

// Validate checks what needs no other section of the plan.
func (h hierarchy) Validate() error {
	site := map[string]string{}
	for _, s := range slices.Sorted(maps.Keys(h.Sites)) {
		if len(h.Sites[s]) == 0 {
			return catalog.About("sites", fmt.Errorf("site %s has no workers", s))
		}
		for _, w := range h.Sites[s] {
			if site[w] != "" {
				return catalog.About("sites", fmt.Errorf("worker %s is named twice, at %s and at %s", w, site[w], s))
			}
			site[w] = s
		}
	}
	return nil
}

// Fit checks that the sites are made of the plan's nodes, and of all of them.
func (h hierarchy) Fit(first, _ *actors.View) error {
	role := map[string]string{}
	for _, m := range first.Members {
		if !m.Present {
			return fmt.Errorf("node %s is absent at the beginning; this architecture needs all of its nodes", m.Name)
		}
		role[m.Name] = m.Role
	}
	for _, s := range slices.Sorted(maps.Keys(h.Sites)) {
		if role[s] != roleSite {
			return catalog.About("sites", fmt.Errorf("%s is not a node of the role %s", s, roleSite))
		}
		delete(role, s)
		for _, w := range h.Sites[s] {
			if role[w] != roleWorker {
				return catalog.About("sites", fmt.Errorf("%s is not a node of the role %s", w, roleWorker))
			}
			delete(role, w)
		}
	}
	for _, m := range first.Members {
		if r := role[m.Name]; r == roleSite || r == roleWorker {
			return catalog.About("sites", fmt.Errorf("%s %s is missing in sites", r, m.Name))
		}
	}
	return nil
}

// Roles are the root, the sites' servers and the workers. Only the root's model is judged.
func (h hierarchy) Roles() []train.Role {
	return []train.Role{
		{Name: roleRoot, Doc: "holds the joint model", Holds: true, Min: 1, Max: 1},
		{Name: roleSite, Doc: "trains a model with the workers of its site and exchanges with the root", Min: 1},
		{Name: roleWorker, Doc: "computes gradients on its shard", Trains: true, Min: 1},
	}
}

// Kind makes the actor of a node.
func (h hierarchy) Kind(task *train.Task, place train.Place) actors.Kind {
	return func(env actors.Env) (actor.Actor, error) {
		switch place.Role {
		case roleRoot:
			return newRoot(env, task, h), nil
		case roleSite:
			return newSite(env, task, h), nil
		default:
			return newWorker(env, task, h)
		}
	}
}

// siteOf returns the name of a worker's site.
func (h hierarchy) siteOf(worker string) string {
	for _, s := range slices.Sorted(maps.Keys(h.Sites)) {
		if slices.Contains(h.Sites[s], worker) {
			return s
		}
	}
	return ""
}

// member finds a node of the view by its name; Fit has made sure that it is there.
func member(view *actors.View, name string) *actors.Member {
	return &view.Members[slices.IndexFunc(view.Members, func(m actors.Member) bool { return m.Name == name })]
}

// name returns the name of an actor's node.
func name(env actors.Env) string { return env.View().Members[env.Node()].Name }

// other handles what is no business of a role: it ends the run if somebody is gone, without
// whom others would wait for ever, or if the message is not known here.
func other(env actors.Env, m *protos.Message) {
	switch m.Head.(type) {
	case *protos.Start:
	case *protos.View:
		for _, m := range env.View().Members {
			if !m.Present {
				env.Fail(fmt.Errorf("node %s has gone; this architecture needs all of its nodes", m.Name))
				return
			}
		}
	default:
		env.Fail(fmt.Errorf("node %s: unexpected message %T", name(env), m.Head))
	}
}

// vector returns the tensor of a message that carries one value a parameter, and ends the run if
// it does not.
func vector(env actors.Env, m *protos.Message, params int) (t *protos.Tensor, ok bool) {
	if !actors.IsVector(m.Tensors, params) {
		env.Fail(fmt.Errorf("node %s: a message %T without a vector of %d values", name(env), m.Head, params))
		return nil, false
	}
	return m.Tensors[0], true
}
