package main

import (
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/peer"
	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn"
	"github.com/gradwire/gradwire/protos"
)

// site is the server of a site. In a round every worker of the site pushes one gradient, all
// of them on the same parameters, and their mean is one step of the site's model.
type site struct {
	env     actors.Env
	rules   hierarchy
	root    *actor.PID
	workers []int          // positions in the view, ascending
	model   *peer.Replica  // of the site; its version counts rounds
	base    *protos.Tensor // what the model was at the last exchange
	version uint64         // of the root's model in base
	since   int            // rounds since the last exchange
	sent    *protos.Tensor // the model of the exchange under way; nil if there is none

	gradients *actors.Gather[*protos.Tensor] // of the workers

	parameters *protos.Messages[*protos.Parameters]
	exchanges  *protos.Messages[*Exchange]
}

func newSite(env actors.Env, task *train.Task, h hierarchy) *site {
	s := &site{
		env: env, rules: h, model: peer.NewReplica(env, task),
		root:       env.View().Members[env.View().Role(roleRoot)[0]].PID,
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
		exchanges:  protos.NewMessages(func() *Exchange { return &Exchange{} }),
	}
	s.base = s.model.Params.Retain()
	for _, w := range h.Sites[name(env)] {
		view := env.View()
		s.workers = append(s.workers, slices.IndexFunc(view.Members, func(m actors.Member) bool { return m.Name == w }))
	}
	slices.Sort(s.workers)
	s.gradients = actors.NewGather[*protos.Tensor](0, s.workers)
	return s
}

// State declares the model, the exchange in flight, and the gradients of the current round.
func (s *site) State(of *state.State) {
	of.Part("model", s.model)
	of.Tensor("base", &s.base)
	state.Int(of, "version", &s.version)
	state.Int(of, "since", &s.since)
	of.Tensor("sent", &s.sent)
	actors.GatherState(of, "gradients", s.gradients, received)
}

func (s *site) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	switch head := m.Head.(type) {
	case *protos.Start:
		s.answer(ctx)
	case *protos.Push:
		s.push(ctx, head, m)
	case *protos.Parameters:
		s.adopt(ctx, head, m)
	default:
		other(s.env, m)
	}
	m.Release()
}

// push keeps a gradient; the last one of a round ends it.
func (s *site) push(ctx actor.Context, head *protos.Push, m *protos.Message) {
	gradient, ok := vector(s.env, m, len(s.base.Data))
	if !ok {
		return
	}
	if err := s.gradients.Put(int(head.Node), head.Version, gradient); err != nil {
		actors.Fail(s.env, "a push of node %d in round %d: %w", head.Node, head.Version, err)
		return
	}
	gradient.Retain()
	if s.gradients.Complete() {
		s.round(ctx)
	}
}

// round makes the step, and an exchange if one is due.
func (s *site) round(ctx actor.Context) {
	mean := s.env.Tensors().Get(len(s.base.Data))
	clear(mean.Data)
	for _, g := range s.gradients.Values() { // in a fixed order, not in the order of arrival
		nn.AddScaled(mean.Data, 1/float32(len(s.workers)), g.Data)
		g.Release()
	}
	s.gradients.Next()
	s.model.Params = train.Update(s.env.Tensors(), s.model.Optimizer, s.model.Params, mean.Data)
	s.model.Version++
	s.env.Charge(2*float64(len(s.workers)*len(mean.Data)) + s.model.Optimizer.Work(len(mean.Data)))
	mean.Release()
	if s.since++; s.since >= s.rules.Every && s.sent == nil {
		s.exchange(ctx)
	}
	if s.sent == nil || !s.rules.Wait {
		s.answer(ctx)
	}
}

// exchange sends the root what the site has learnt since the last time.
func (s *site) exchange(ctx actor.Context) {
	change := s.env.Tensors().Copy(s.model.Params.Data)
	nn.AddScaled(change.Data, -1, s.base.Data)
	s.env.Charge(2 * float64(len(change.Data)))
	s.sent, s.since = s.model.Params.Retain(), 0
	m, head := s.exchanges.Get(change)
	head.Node, head.Version, head.Rounds = int32(s.env.Node()), s.version, s.model.Version
	ctx.Send(s.root, m)
}

// adopt ends an exchange: the model becomes the root's, and what the site has learnt
// meanwhile comes on top of it, for the next exchange.
func (s *site) adopt(ctx actor.Context, head *protos.Parameters, m *protos.Message) {
	joint, ok := vector(s.env, m, len(s.base.Data))
	if !ok {
		return
	}
	if s.sent == nil {
		s.env.Fail(fmt.Errorf("node %s: parameters without an exchange", name(s.env)))
		return
	}
	own := s.model.Writable() // a copy: somebody may still read the old one
	for i := range own {
		own[i] = joint.Data[i] + (own[i] - s.sent.Data[i])
	}
	s.env.Charge(2 * float64(len(own)))
	s.sent.Release()
	s.base.Release()
	s.sent, s.base, s.version = nil, joint.Retain(), head.Version
	if s.rules.Wait {
		s.answer(ctx)
	}
}

// answer sends the site's model to all workers, who share one message.
func (s *site) answer(ctx actor.Context) {
	m, head := s.parameters.Get(s.model.Params.Retain())
	head.Version = s.model.Version
	m.Retain(len(s.workers) - 1)
	for _, w := range s.workers {
		ctx.Send(s.env.View().Members[w].PID, m)
	}
}
