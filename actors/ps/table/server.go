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
// ends the run.
type Server struct {
	env     actors.Env
	layout  *Layout
	shards  *shards.Directory[*held]
	begun   bool
	answers *protos.Messages[*protos.Accessed]
}

var (
	_ actor.Actor   = (*Server)(nil)
	_ actors.Leaver = (*Server)(nil)
)

// held is a shard at a server of a run.
type held struct {
	*shard
	server *Server
	index  int
}

// Servers is the number of nodes of the role server, present or not.
func Servers(env actors.Env) (n int) {
	members := env.View().Members
	for i := range members {
		if members[i].Role == shards.RoleServer {
			n++
		}
	}
	return n
}

// NewServer is the server that lives in env. An error is about the layout, see [NewLayout], or
// about an optimiser that cannot work on a table.
func NewServer(env actors.Env, tables []*Table, s *shards.Servers) (*Server, error) {
	l, err := NewLayout(tables, s, Servers(env))
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		if _, err := t.Update.New(); err != nil {
			return nil, err
		}
	}
	return &Server{env: env, layout: l, shards: shards.NewDirectory[*held](env, &l.servers, l.Shards()),
		answers: protos.NewMessages(func() *protos.Accessed { return &protos.Accessed{} })}, nil
}

// HandsOver implements [actors.Leaver].
func (s *Server) HandsOver() {}

// Receive implements [actor.Actor].
func (s *Server) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*protos.Message)
	if !ok {
		return
	}
	defer m.Release()
	switch head := m.Head.(type) {
	case *protos.Start:
		if !head.Joins {
			s.begin(ctx)
		}
	case *protos.View:
		s.begun = true // one that was not there at the beginning gets its shards from others
		if s.shards.Follow(ctx, func(*held) {}) {
			s.shards.Depart(ctx)
		}
	case *protos.Access:
		s.shards.Route(ctx, head.Shard, m)
	case *protos.TableShard:
		s.install(ctx, head, m)
	case *protos.Farewell:
		s.shards.Fleet.Heard(head)
		s.shards.Depart(ctx)
	default:
		actors.Unexpected(s.env, m)
	}
}

// begin makes the shards with which a run begins.
func (s *Server) begin(ctx actor.Context) {
	if s.begun {
		return
	}
	s.begun = true
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
func (s *Server) newHeld(k int) *held {
	of, err := newShard(s.layout, k)
	if err != nil {
		actors.Fail(s.env, "%w", err)
		return nil
	}
	return &held{of, s, k}
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
func (h *held) Pack() *protos.Message { return h.pack(h.index, h.server.env.View().Number) }

// Receive carries out what a client asks for, and answers it, if it is still there.
func (h *held) Receive(ctx actor.Context, m *protos.Message) {
	env := h.server.env
	head := m.Head.(*protos.Access)
	if !env.View().Has(head.Node) {
		actors.Fail(env, "a task of node %d, of %d nodes", head.Node, len(env.View().Members))
		return
	}
	answer, to := h.server.answers.Get()
	to.Life, to.Time, to.Shard, to.Keys, to.Version = head.Life, head.Time, head.Shard, 0, 0
	pulled, list, work, err := h.access(env.Tensors(), head, m.Tensors, to)
	if err != nil {
		answer.Release()
		actors.Fail(env, "task %d of node %d at shard %d of table %s: %w", head.Time, head.Node, h.index, h.table.Name,
			err)
		return
	}
	answer.Tensors = appendTensors(answer.Tensors, pulled, list)
	env.Charge(work)
	ctx.Send(env.View().Members[head.Node].PID, answer)
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
