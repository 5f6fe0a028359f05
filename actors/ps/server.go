package ps

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// server holds some of the shards of the model, and knows where the others are.
type server struct {
	env        actors.Env
	arch       Architecture
	task       *train.Task
	layout     *layout
	begun      bool
	shards     *shards.Directory[*shard]
	replicas   *shards.Replicas[*shard] // nil for none
	gathers    []*gather
	asks       []*protos.PullShards
	parameters *protos.Messages[*protos.Parameters]
}

var _ actors.Leaver = (*server)(nil)

// HandsOver implements [actors.Leaver].
func (s *server) HandsOver() {}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	view := env.View()
	l := newLayout(a.Servers, task.Model, view.Members)
	s := &server{
		env:        env,
		arch:       a,
		task:       task,
		layout:     l,
		shards:     shards.NewDirectory[*shard](env, &l.servers, l.shards),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
	if l.servers.Replicas > 0 {
		s.replicas = shards.NewReplicas(env, s, &l.servers, s.shards)
	}
	return s
}

// begin makes the shards with which a run begins, unless this server has joined a run under way:
// then they come from others.
func (s *server) begin() {
	if s.begun {
		return
	}
	s.begun = true
	var initial []float32
	if s.replicas != nil {
		initial = s.task.Initial()
		s.replicas.Begin(func(k int) shards.Copy { return s.first(k, initial) })
	}
	for k := range s.shards.Len() {
		if !s.shards.Owns(k) {
			continue
		}
		if initial == nil {
			initial = s.task.Initial()
		}
		low, high := s.layout.bounds(k)
		h := s.newShard(k)
		h.params = s.env.Tensors().Copy(initial[low:high])
		s.shards.Put(k, h)
	}
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	if s.replicas == nil || s.replicas.Admits(m) {
		s.Take(ctx, m)
	}
	m.Release()
}

// Take takes in a message, which remains the caller's.
func (s *server) Take(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		if !head.Joins {
			s.begin()
		}
		here := []int{}
		for k, h := range s.shards.Here() {
			h.follow(ctx)
			here = append(here, k)
		}
		s.found(ctx, here...)
		if s.replicas != nil && s.begun {
			s.replicas.Replay(ctx)
		}
	case *protos.View:
		s.begun = true
		s.view(ctx)
	case *protos.Push:
		s.shards.Route(ctx, head.Shard, m)
	case *protos.Pull:
		s.shards.Route(ctx, head.Shard, m)
	case *protos.Shard:
		s.install(ctx, head, m)
	case *protos.Holdings, *protos.Replicate, *protos.Replicated, *protos.Settled:
		s.replicated(ctx, m)
	case *protos.Farewell:
		s.shards.Fleet.Heard(head)
		s.shards.Depart(ctx)
	case *protos.TakeSnapshot:
		s.snapshot(ctx, head)
	case *protos.PullShards:
		s.asked(ctx, head)
	case *protos.ShardCopy:
		s.gathered(ctx, head, m)
	default:
		actors.Unexpected(s.env, m)
	}
}

// Receive takes in what is about the shard alone.
func (h *shard) Receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Push:
		h.push(ctx, head, m)
	case *protos.Pull:
		h.pull(ctx, head)
	}
	h.replicas.Commit(ctx, h)
}

// replicated takes in a message about the replicas of shards.
func (s *server) replicated(ctx actor.Context, m *protos.Message) {
	if s.replicas == nil {
		actors.Unexpected(s.env, m)
		return
	}
	s.replicas.Receive(ctx, m)
}

// view takes in a view: who has come and gone, and which shards belong elsewhere now.
func (s *server) view(ctx actor.Context) {
	if s.replicas != nil {
		if moved, _, ok := s.shards.Fleet.Follow(); ok {
			s.follow(ctx, moved)
		}
		return
	}
	ok := s.shards.Follow(ctx, func(h *shard) { h.follow(ctx) })
	if ok {
		s.again(ctx)
		s.shards.Depart(ctx)
	}
}

// follow takes in a view where shards have replicas.
func (s *server) follow(ctx actor.Context, moved bool) {
	if !s.replicas.Enter(ctx, moved) {
		for _, h := range s.shards.Here() {
			h.follow(ctx)
		}
	}
	s.again(ctx)
	s.replicas.Replay(ctx)
}

// install takes in a shard that another server has handed over, and what has come for it.
func (s *server) install(ctx actor.Context, head *protos.Shard, m *protos.Message) {
	if !s.shards.Awaits(head.Shard) {
		return
	}
	k := int(head.Shard)
	h := s.newShard(k)
	if err := h.unpack(head, m); err != nil {
		actors.Fail(s.env, "shard %d: %w", k, err)
		return
	}
	s.shards.Put(k, h)
	h.follow(ctx)
	s.shards.Deliver(ctx, k)
	s.found(ctx, k)
	s.shards.HandOver(ctx, k, head.View)
	s.shards.Depart(ctx)
}
