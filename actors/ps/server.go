package ps

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// server holds some of the shards of the model, and knows where the others are. When servers come
// or go in order it hands shards over to those that own them from then on. What comes for a shard
// that it has handed over goes on to the owner; what comes for one that is still on its way waits.
type server struct {
	env        actors.Env
	arch       Architecture
	task       *train.Task
	layout     *layout
	begun      bool
	shards     []*shard            // by index; nil for those that are elsewhere
	given      []bool              // by index: handed over, and not come back
	waiting    [][]*protos.Message // by index: what came before the shard
	owners     []int               // of each shard in the view
	since      []uint64            // by node: the view in which this server saw it come; 0 if it was there
	fleet      fleet
	gathers    []*gather
	asks       []*protos.PullShards
	dropped    int
	parameters *protos.Messages[*protos.Parameters]
}

var _ actors.Leaver = (*server)(nil)

// HandsOver implements [actors.Leaver].
func (s *server) HandsOver() {}

func newServer(env actors.Env, task *train.Task, a Architecture) *server {
	view := env.View()
	l := newLayout(a.Servers, task.Model, view.Members)
	return &server{
		env:        env,
		arch:       a,
		task:       task,
		layout:     l,
		shards:     make([]*shard, l.shards),
		given:      make([]bool, l.shards),
		waiting:    make([][]*protos.Message, l.shards),
		owners:     l.owners(view),
		since:      make([]uint64, len(view.Members)),
		fleet:      newFleet(env),
		parameters: protos.NewMessages(func() *protos.Parameters { return &protos.Parameters{} }),
	}
}

// begin makes the shards with which a run begins, unless this server has joined a run under way:
// then they come from others.
func (s *server) begin() {
	if s.begun {
		return
	}
	s.begun = true
	var initial []float32
	for k, owner := range s.owners {
		if owner != s.env.Node() {
			continue
		}
		if initial == nil {
			initial = s.task.Initial()
		}
		low, high := s.layout.bounds(k)
		s.shards[k] = s.newShard(k)
		s.shards[k].params = s.env.Tensors().Copy(initial[low:high])
	}
}

func (s *server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		if !head.Joins {
			s.begin()
		}
		s.followAll(ctx)
	case *protos.View:
		s.begun = true
		s.view(ctx)
	case *protos.Push:
		s.route(ctx, head.Shard, m)
	case *protos.Pull:
		s.route(ctx, head.Shard, m)
	case *protos.Shard:
		s.install(ctx, head, m)
	case *protos.Farewell:
		s.fleet.heard(head)
		s.depart(ctx)
	case *protos.TakeSnapshot:
		s.begin()
		s.snapshot(ctx, head)
	case *protos.PullShards:
		s.asked(ctx, head)
	case *protos.ShardCopy:
		s.gathered(ctx, head, m)
	default:
		actors.Unexpected(s.env, m)
	}
}

// route hands a message about a shard to it, or sends it where the shard is.
func (s *server) route(ctx actor.Context, index uint32, m *protos.Message) {
	switch k := int(index); {
	case k >= len(s.shards):
		actors.Fail(s.env, "a message about shard %d of %d", index, len(s.shards))
	case s.shards[k] != nil:
		s.shards[k].receive(ctx, m)
	case s.given[k] && s.owners != nil && s.owners[k] != s.env.Node():
		ctx.Send(s.env.View().Members[s.owners[k]].PID, m.Retain(1))
	default:
		s.waiting[k] = append(s.waiting[k], m.Retain(1))
	}
}

// receive takes in what is about the shard alone.
func (h *shard) receive(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Push:
		h.push(ctx, head, m)
	case *protos.Pull:
		h.pull(ctx, head)
	}
}

// followAll has all shards here take in the members of the view.
func (s *server) followAll(ctx actor.Context) {
	for _, h := range s.shards {
		if h != nil {
			h.follow(ctx)
		}
	}
}

// view takes in a view: who has come and gone, and which shards belong elsewhere now.
func (s *server) view(ctx actor.Context) {
	view := s.env.View()
	for node := range view.Members {
		if m := &view.Members[node]; m.Present && !s.fleet.present[node] {
			s.since[node] = view.Number
		}
	}
	moved, leaving, ok := s.fleet.follow()
	if !ok {
		return
	}
	for _, h := range s.shards {
		if h != nil {
			h.follow(ctx)
			h.advance(ctx)
		}
	}
	if moved {
		s.move(ctx)
	}
	s.fleet.farewell(ctx, leaving)
	s.again(ctx)
	s.depart(ctx)
}

// move hands over the shards that belong to other servers now.
func (s *server) move(ctx actor.Context) {
	view := s.env.View()
	if s.owners = s.layout.owners(view); s.owners == nil {
		if slices.ContainsFunc(s.shards, func(h *shard) bool { return h != nil }) {
			actors.Fail(s.env, "%s leaves, and no other server is there to take over the parameters",
				view.Members[s.env.Node()].Name)
		}
		return
	}
	for k := range s.shards {
		s.handOver(ctx, k)
	}
}

// handOver sends a shard that is here to its owner, unless that is this server.
func (s *server) handOver(ctx actor.Context, k int) {
	h := s.shards[k]
	if h == nil || s.owners == nil || s.owners[k] == s.env.Node() {
		return
	}
	s.shards[k], s.given[k] = nil, true
	ctx.Send(s.env.View().Members[s.owners[k]].PID, h.pack())
}

// install takes in a shard that another server has handed over, and what has come for it.
func (s *server) install(ctx actor.Context, head *protos.Shard, m *protos.Message) {
	k := int(head.Shard)
	if k >= len(s.shards) || s.shards[k] != nil {
		actors.Fail(s.env, "shard %d of %d, which is here or is none", head.Shard, len(s.shards))
		return
	}
	h := s.newShard(k)
	if err := h.unpack(head, m); err != nil {
		actors.Fail(s.env, "shard %d: %w", k, err)
		return
	}
	s.shards[k], s.given[k] = h, false
	h.follow(ctx)
	h.advance(ctx)
	waiting := s.waiting[k]
	s.waiting[k] = nil
	for _, m := range waiting {
		h.receive(ctx, m)
		m.Release()
	}
	s.found(ctx, k)
	if head.View <= s.env.View().Number { // otherwise a view with other owners is on its way here
		s.handOver(ctx, k)
	}
	s.depart(ctx)
}

// depart ends this server if it leaves, and nothing is to come any more: neither shards that are on
// their way, nor what was sent here by those who did not know yet.
func (s *server) depart(ctx actor.Context) {
	if !slices.ContainsFunc(s.shards, func(h *shard) bool { return h != nil }) {
		s.fleet.depart(ctx)
	}
}
