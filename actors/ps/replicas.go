package ps

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/actors/train"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// replica is a copy of a shard. What codes build on has no copies: the first answer of a new owner,
// and the first push to it, is whole.
type replica struct {
	env       actors.Env
	head      *protos.Shard          // of the last change; nil for a shard as the run begins
	workers   []*protos.Shard_Worker // by node, of this change or of one before
	params    *protos.Tensor
	optimizer optim.Optimizer
}

var (
	_ shards.Copy           = (*replica)(nil)
	_ shards.Keeper[*shard] = (*server)(nil)
)

// newReplica returns an empty copy of a shard.
func (s *server) newReplica(k int) *replica {
	low, high := s.layout.bounds(k)
	return &replica{env: s.env, workers: make([]*protos.Shard_Worker, len(s.env.View().Members)),
		optimizer: s.task.Method.New(high - low)}
}

// first is the copy of a shard with which a run begins.
func (s *server) first(k int, initial []float32) *replica {
	low, high := s.layout.bounds(k)
	c := s.newReplica(k)
	c.params = s.env.Tensors().Copy(initial[low:high])
	return c
}

// Apply implements [shards.Copy].
func (c *replica) Apply(head *protos.Replicate, tensors []*protos.Tensor) error {
	for _, t := range tensors {
		if len(t.Data) != len(c.params.Data) {
			return shards.ErrUnfit
		}
		c.env.Charge(c.optimizer.Work(len(t.Data)))
		c.params = train.Update(c.env.Tensors(), c.optimizer, c.params, t.Data)
	}
	return c.learn(head.Shard, head.Nodes)
}

// learn takes in what a shard knows now, of some nodes.
func (c *replica) learn(shard *protos.Shard, nodes []uint32) error {
	if len(shard.Workers) != len(nodes) {
		return shards.ErrUnfit
	}
	for i, node := range nodes {
		if int(node) >= len(c.workers) {
			return shards.ErrUnfit
		}
		c.workers[node] = shard.Workers[i]
	}
	c.head = shard
	return nil
}

// Drop implements [shards.Copy].
func (c *replica) Drop() { c.params.Release() }

// Whole implements [shards.Copy].
func (c *replica) Whole(k int, head *protos.Replicate) []*protos.Tensor {
	of := c.optimizer.State()
	shard := &protos.Shard{}
	if c.head != nil {
		shard = proto.CloneOf(c.head)
		shard.Workers = slices.Clone(c.workers)
	}
	shard.Shard, shard.Steps, shard.Updates, shard.Slots = uint32(k), uint64(of.Step), uint64(of.Updates),
		uint32(len(of.Slots))
	head.Shard = shard
	tensors := []*protos.Tensor{c.params.Retain()}
	for _, slot := range of.Slots {
		tensors = append(tensors, c.env.Tensors().Copy(slot))
	}
	return tensors
}

// Unpack implements [shards.Keeper].
func (s *server) Unpack(head *protos.Replicate, tensors []*protos.Tensor) (shards.Copy, error) {
	of := head.Shard
	low, high := s.layout.bounds(int(of.Shard))
	if len(tensors) != 1+int(of.Slots) {
		return nil, shards.ErrUnfit
	}
	for _, t := range tensors {
		if len(t.Data) != high-low {
			return nil, shards.ErrUnfit
		}
	}
	c := s.newReplica(int(of.Shard))
	state := optim.State{Step: int(of.Steps), Updates: int(of.Updates)}
	for _, t := range tensors[1:] {
		state.Slots = append(state.Slots, t.Data)
	}
	if len(of.Workers) > 0 {
		c.head, c.workers = of, slices.Clone(of.Workers)
	}
	c.params = tensors[0].Retain()
	return c, c.optimizer.Restore(state)
}

// Thaw implements [shards.Keeper].
func (s *server) Thaw(k int, of shards.Copy) (*shard, error) {
	c, h := of.(*replica), s.newShard(k)
	h.params, h.optimizer = c.params, c.optimizer
	if c.head == nil {
		return h, nil
	}
	if len(c.workers) != len(h.workers) || slices.Contains(c.workers, nil) {
		return nil, shards.ErrUnfit
	}
	return h, h.unpackHead(c.head, c.workers, nil)
}

// Resume implements [shards.Keeper].
func (s *server) Resume(ctx actor.Context, k int) {
	s.shards.At(k).resume(ctx)
	s.shards.Deliver(ctx, k)
	s.found(ctx, k)
}

// Log implements [shards.Copied].
func (h *shard) Log() *shards.Log { return h.log }

// Tell implements [shards.Copied].
func (h *shard) Tell(head *protos.Replicate) { head.Shard, head.Nodes = h.head(h.told) }

// Freeze implements [shards.Copied]. The gradients of a round under way are given up: workers send
// those pushes again.
func (h *shard) Freeze() shards.Copy {
	head, _ := h.head(nil)
	if h.round != nil {
		h.round.drop()
	}
	return &replica{env: h.env, head: head, workers: head.Workers, params: h.params, optimizer: h.optimizer}
}

// fresh reports whether a push has not come before. If it has, it makes up for a gradient that was
// lost with another server, or is answered once more if the answer was.
func (h *shard) fresh(ctx actor.Context, node int, head *protos.Push, m *protos.Message) bool {
	w := &h.workers[node]
	switch {
	case head.Number == w.came+1:
		return true
	case head.Number > w.came:
		actors.Fail(h.env, "push %d of %s to shard %d comes after its push %d: what was between is lost", head.Number,
			h.env.View().Members[node].Name, h.index, w.came)
	case h.round != nil && h.round.missing[node]:
		if head.Number < w.came {
			return false
		}
		gradient, ok := h.gradient(head, m)
		if !ok {
			return false
		}
		h.log.Touch()
		if h.round.take(node, gradient, w.latest()); !h.round.short() {
			h.follow(ctx)
		}
	default:
		h.repeat(ctx, node)
	}
	return false
}

// resume goes on with a shard that this server has just taken over. Workers may have missed what
// the server before had to tell them without a push to answer: its greeting, or, where they need
// not hear of all their pushes, how many are finished.
func (h *shard) resume(ctx actor.Context) {
	lives := make([]uint64, len(h.workers))
	for node := range h.workers {
		lives[node] = h.workers[node].life
	}
	h.follow(ctx)
	for node, life := range lives {
		w := &h.workers[node]
		if (w.came == 0 || h.arch.model().Ahead() > 0) && w.life == life && life > 0 {
			h.repeat(ctx, node)
		}
	}
	h.replicas.Commit(ctx, h)
}

// repeat tells a worker once more that it may go on, if it may. One that need not hear of all its
// pushes is told how many are finished.
func (h *shard) repeat(ctx actor.Context, node int) {
	waits := h.clocks.Waits(node) && h.arch.model().Ahead() == 0
	if w := &h.workers[node]; w.pid != nil && !w.rests && !waits {
		h.answer(ctx, node)
	}
}
