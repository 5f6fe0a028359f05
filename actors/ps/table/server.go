package table

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/protos"
)

// Server is the actor of a node that holds shards of tables. All nodes of the role
// [shards.RoleServer] have the tables among them, and hand shards over when such nodes join or
// leave in order: no request fails, and nothing that was answered is lost. A server that crashes
// ends the run, unless others have replicas of its shards.
type Server struct {
	env      actors.Env
	layout   *Layout
	shards   *shards.Directory[*kept]
	replicas *shards.Replicas[*kept] // nil for none
	begun    bool
	answers  *protos.Messages[*protos.Accessed]
}

var (
	_ actor.Actor   = (*Server)(nil)
	_ actors.Leaver = (*Server)(nil)
)

// kept is a shard at a server of a run, or a copy of one.
type kept struct {
	*shard
	server *Server
	index  int
	log    *shards.Log // nil without replicas, and so is what follows
	place  *protos.Shard
	taken  []taken         // by node
	last   *protos.Access  // that was taken in
	listed uint64          // keys of its list; 0 for a range
	answer protos.Accessed // scratch
}

// NewServer is the server that lives in env. An error is about the layout, see [NewLayout], or
// about an optimiser that cannot work on a table.
func NewServer(env actors.Env, tables []*Table, s *shards.Servers) (*Server, error) {
	l, err := NewLayout(tables, s, shards.Count(env.View().Members))
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if _, err := t.Update.New(); err != nil {
			return nil, err
		}
	}
	of := &Server{env: env, layout: l, shards: shards.NewDirectory[*kept](env, &l.servers, l.Shards()),
		answers: protos.NewMessages(func() *protos.Accessed { return &protos.Accessed{} })}
	if l.servers.Replicas > 0 {
		of.replicas = shards.NewReplicas(env, keeper{of}, &l.servers, of.shards)
	}
	return of, nil
}

// HandsOver implements [actors.Leaver].
func (s *Server) HandsOver() {}

// Receive implements [actor.Actor].
func (s *Server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	if s.replicas == nil || s.replicas.Admits(m) {
		s.take(ctx, m)
	}
	m.Release()
}

// take takes in a message, which remains the caller's.
func (s *Server) take(ctx actor.Context, m *protos.Message) {
	switch head := m.Head.(type) {
	case *protos.Start:
		if !head.Joins {
			s.begin(ctx)
		}
	case *protos.View:
		s.begun = true // one that was not there at the beginning gets its shards from others
		s.view(ctx)
	case *protos.Access:
		s.shards.Route(ctx, head.Shard, m)
	case *protos.TableShard:
		s.install(ctx, head, m)
	case *protos.Holdings, *protos.Replicate, *protos.Replicated, *protos.Settled:
		s.replicated(ctx, m)
	case *protos.Farewell:
		s.shards.Fleet.Heard(head)
		s.shards.Depart(ctx)
	default:
		actors.Unexpected(s.env, m)
	}
}

// view takes in a view: which shards belong elsewhere now.
func (s *Server) view(ctx actor.Context) {
	if s.replicas == nil {
		if s.shards.Follow(ctx, func(*kept) {}) {
			s.shards.Depart(ctx)
		}
		return
	}
	if moved, _, ok := s.shards.Fleet.Follow(); ok {
		s.replicas.Enter(ctx, moved)
		s.replicas.Replay(ctx)
	}
}

// begin makes the shards with which a run begins.
func (s *Server) begin(ctx actor.Context) {
	if s.begun {
		return
	}
	s.begun = true
	if s.replicas != nil {
		s.replicas.Begin(func(k int) shards.Copy { return s.newHeld(k) })
		defer s.replicas.Replay(ctx)
	}
	for k := range s.shards.Len() {
		if !s.shards.Owns(k) {
			continue
		}
		if h := s.newHeld(k); h != nil {
			s.shards.Put(k, h)
			s.shards.Deliver(ctx, k)
		}
	}
}

// newHeld makes a shard; nil ends the run.
func (s *Server) newHeld(k int) *kept {
	of, err := newShard(s.layout, k)
	if err != nil {
		actors.Fail(s.env, "%w", err)
		return nil
	}
	h := &kept{shard: of, server: s, index: k}
	if s.replicas != nil {
		h.log, h.place, h.lists.kept = shards.NewLog(k), &protos.Shard{Shard: uint32(k)}, true
		h.taken = make([]taken, len(s.env.View().Members))
	}
	return h
}

// install takes in a shard that another server has handed over, and what has come for it.
func (s *Server) install(ctx actor.Context, head *protos.TableShard, m *protos.Message) {
	if !s.shards.Awaits(head.Shard) {
		return
	}
	k := int(head.Shard)
	h := s.newHeld(k)
	if h == nil {
		return
	}
	if err := h.unpack(head, m.Tensors); err != nil {
		actors.Fail(s.env, "shard %d of table %s: %w", k, h.table.Name, err)
		return
	}
	s.shards.Put(k, h)
	s.shards.Deliver(ctx, k)
	s.shards.HandOver(ctx, k, head.View)
	s.shards.Depart(ctx)
}

// Pack implements [shards.Shard].
func (h *kept) Pack() *protos.Message {
	head, tensors := h.pack(h.server.env.Tensors())
	head.Shard, head.View = uint32(h.index), h.server.env.View().Number
	return protos.NewMessage(head, tensors...)
}

// Receive carries out what a client asks for, and answers it, if it is still there.
func (h *kept) Receive(ctx actor.Context, m *protos.Message) {
	env := h.server.env
	head := m.Head.(*protos.Access)
	if !env.View().Has(head.Node) {
		actors.Fail(env, "a task of node %d, of %d nodes", head.Node, len(env.View().Members))
		return
	}
	repeat, old := false, false
	if h.log != nil && head.Push {
		repeat, old = h.taken[head.Node].has(head)
	}
	if old {
		return
	}
	answer, to := h.server.answers.Get()
	to.Life, to.Time, to.Shard, to.Keys, to.Version = head.Life, head.Time, head.Shard, 0, 0
	pulled, list, work, err := h.access(env.Tensors(), head, m.Tensors, to, repeat)
	if err != nil {
		answer.Release()
		actors.Fail(env, "task %d of node %d at shard %d of table %s: %w", head.Time, head.Node, h.index, h.table.Name,
			err)
		return
	}
	answer.Tensors = appendTensors(answer.Tensors, pulled, list)
	env.Charge(work)
	if h.log != nil && head.Push && !repeat && !to.Unknown {
		h.replicate(head, m.Tensors)
	}
	h.log.Send(ctx, env.View().Members[head.Node].PID, answer)
	h.server.replicas.Commit(ctx, h)
	h.last = nil
}

// appendTensors appends those that there are.
func appendTensors(to []*protos.Tensor, tensors ...*protos.Tensor) []*protos.Tensor {
	for _, t := range tensors {
		if t != nil {
			to = append(to, t)
		}
	}
	return to
}
