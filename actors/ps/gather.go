package ps

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/protos"
)

// gather is a snapshot of the whole model under way, at the server that was asked for it.
type gather struct {
	request *protos.TakeSnapshot
	params  *protos.Tensor
	there   []bool // by shard
	missing int
	version uint64 // of the first shard
}

// snapshot answers the coordinator with the whole model, once the shards of other servers are here.
func (s *server) snapshot(ctx actor.Context, request *protos.TakeSnapshot) {
	if h := s.shards.At(0); s.shards.Len() == 1 && h != nil && s.replicas == nil {
		train.AnswerSnapshot(ctx, s.env, request, h.params, h.version)
		return
	}
	n := s.shards.Len()
	g := &gather{request: &protos.TakeSnapshot{Evaluation: request.Evaluation},
		params: s.env.Tensors().Get(s.layout.params), there: make([]bool, n), missing: n}
	s.gathers = append(s.gathers, g)
	for k := range s.shards.Here() {
		s.include(ctx, g, k)
	}
	s.ask(ctx, g)
	s.finish(ctx)
}

// include takes a shard that is here into a snapshot. One with replicas comes back as those of
// other servers do, when all replicas have it.
func (s *server) include(ctx actor.Context, g *gather, k int) {
	if h := s.shards.At(k); h.log == nil {
		s.put(g, k, h.params.Data, h.version)
		return
	}
	s.show(ctx, &protos.PullShards{Node: int32(s.env.Node()), Evaluation: g.request.Evaluation}, k)
}

// ask asks the other servers for their shards.
func (s *server) ask(ctx actor.Context, g *gather) {
	view := s.env.View()
	if g.missing == 0 {
		return
	}
	for _, node := range view.Role(RoleServer) {
		if node != s.env.Node() {
			ctx.Send(view.Members[node].PID, protos.NewMessage(&protos.PullShards{Node: int32(s.env.Node()),
				Evaluation: g.request.Evaluation, View: view.Number}))
		}
	}
}

// asked answers another server with the shards that are here, and with those that are on their way,
// or that this server is yet to begin with, when they have come.
func (s *server) asked(ctx actor.Context, head *protos.PullShards) {
	if !s.env.View().Has(head.Node) {
		actors.Fail(s.env, "shards are asked for by node %d of %d", head.Node, len(s.env.View().Members))
		return
	}
	for k := range s.shards.Here() {
		s.show(ctx, head, k)
	}
	s.asks = append(s.asks, head)
	s.forget()
}

// show sends a server that asks a shard, once its replicas have it.
func (s *server) show(ctx actor.Context, to *protos.PullShards, k int) {
	h := s.shards.At(k)
	head := &protos.ShardCopy{Evaluation: to.Evaluation, Shard: uint32(k), Version: h.version}
	h.log.Send(ctx, s.env.View().Members[to.Node].PID, protos.NewMessage(head, h.params.Retain()))
	h.replicas.Commit(ctx, h)
}

// forget drops the questions that are answered: of servers that knew no later view than this one,
// once no shard is on its way here.
func (s *server) forget() {
	for k := range s.shards.Len() {
		if s.shards.Owns(k) && !s.shards.Has(k) {
			return
		}
	}
	number := s.env.View().Number
	s.asks = slices.DeleteFunc(s.asks, func(a *protos.PullShards) bool { return a.View <= number })
}

// found shows shards that have come to all who have asked.
func (s *server) found(ctx actor.Context, shards ...int) {
	for _, k := range shards {
		for _, a := range s.asks {
			s.show(ctx, a, k)
		}
		for _, g := range s.gathers {
			s.include(ctx, g, k)
		}
	}
	s.forget()
	s.finish(ctx)
}

// again asks the servers of a new view for what is still missing.
func (s *server) again(ctx actor.Context) {
	s.forget()
	for _, g := range s.gathers {
		s.ask(ctx, g)
	}
}

// gathered takes in a shard of another server.
func (s *server) gathered(ctx actor.Context, head *protos.ShardCopy, m *protos.Message) {
	k := int(head.Shard)
	low, high := s.layout.bounds(k)
	if k >= s.shards.Len() || !actors.IsVector(m.Tensors, high-low) {
		actors.Fail(s.env, "shard %d of %d does not fit", head.Shard, s.shards.Len())
		return
	}
	for _, g := range s.gathers {
		if g.request.Evaluation == head.Evaluation {
			s.put(g, k, m.Tensors[0].Data, head.Version)
		}
	}
	s.finish(ctx)
}

// put takes one shard into a snapshot.
func (s *server) put(g *gather, k int, params []float32, version uint64) {
	if g.there[k] {
		return
	}
	low, _ := s.layout.bounds(k)
	copy(g.params.Data[low:], params)
	if g.there[k] = true; k == 0 {
		g.version = version
	}
	g.missing--
}

// finish answers the coordinator with the snapshots that are whole.
func (s *server) finish(ctx actor.Context) {
	s.gathers = slices.DeleteFunc(s.gathers, func(g *gather) bool {
		if g.missing > 0 {
			return false
		}
		train.AnswerSnapshot(ctx, s.env, g.request, g.params, g.version)
		g.params.Release()
		return true
	})
}
