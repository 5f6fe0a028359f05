package table

import (
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/protos"
)

// taken is what a shard has taken in of a node's pushes: the client sends again what is not
// answered when servers come or go, and each push counts once.
type taken struct {
	life   uint64
	oldest uint64   // of its tasks that have not finished: what is older does not come again
	times  []uint64 // of its tasks whose pushes are here, none older than that, in order
}

// has reports whether a push is here. An old one is of a former life or of a finished task, and
// nobody waits for its answer.
func (t *taken) has(head *protos.Access) (here, old bool) {
	if head.Life != t.life {
		return false, head.Life < t.life
	}
	_, here = slices.BinarySearch(t.times, head.Time)
	return here, head.Time < t.oldest
}

// note notes a push that has just been taken in.
func (t *taken) note(head *protos.Access) {
	if head.Life != t.life {
		*t = taken{life: head.Life, times: t.times[:0]}
	}
	t.oldest = max(t.oldest, head.Oldest)
	finished, _ := slices.BinarySearch(t.times, t.oldest)
	t.times = slices.Delete(t.times, 0, finished)
	i, _ := slices.BinarySearch(t.times, head.Time)
	t.times = slices.Insert(t.times, i, head.Time)
}

// replicate has a push that this shard has just taken in go to its replicas, with the keys.
func (h *kept) replicate(head *protos.Access, tensors []*protos.Tensor) {
	h.taken[head.Node].note(head)
	h.log.Touch()
	h.log.Update(tensors[0])
	h.last, h.listed = head, head.Keys
	switch {
	case len(tensors) > 1:
		h.log.Update(tensors[1])
	case head.List != 0:
		c := h.lists.by[head.List]
		h.log.Update(c.list)
		h.listed = uint64(c.count)
	}
}

// Log implements [shards.Copied].
func (h *kept) Log() *shards.Log { return h.log }

// Tell implements [shards.Copied].
func (h *kept) Tell(head *protos.Replicate) {
	if head.Access == nil {
		head.Access = &protos.Access{}
	}
	head.Shard = h.place
	a, of := head.Access, h.last
	a.Node, a.Life, a.Time, a.Oldest = of.Node, of.Life, of.Time, of.Oldest
	a.Push, a.First, a.Last, a.List, a.Keys = true, of.First, of.Last, of.List, h.listed
}

// Freeze implements [shards.Copied]: a shard and a copy of it are the same.
func (h *kept) Freeze() shards.Copy {
	h.log = shards.NewLog(h.index)
	return h
}

// Apply implements [shards.Copy].
func (h *kept) Apply(head *protos.Replicate, tensors []*protos.Tensor) error {
	a := head.Access
	if a == nil || int(a.Node) >= len(h.taken) || a.Node < 0 || !a.Push || a.Pull {
		return shards.ErrUnfit
	}
	_, _, work, err := h.access(h.server.env.Tensors(), a, tensors, &h.answer, false)
	if err != nil || h.answer.Unknown {
		return shards.ErrUnfit
	}
	h.taken[a.Node].note(a)
	h.server.env.Charge(work)
	return nil
}

// Whole implements [shards.Copy].
func (h *kept) Whole(_ int, head *protos.Replicate) []*protos.Tensor {
	of, tensors := h.pack(h.server.env.Tensors())
	for i := range h.taken {
		t := &h.taken[i]
		of.Clients = append(of.Clients, &protos.TableShard_Client{Life: t.life, Oldest: t.oldest,
			Times: slices.Clone(t.times)})
	}
	head.Shard, head.Table = h.place, of
	return tensors
}

// Drop implements [shards.Copy].
func (h *kept) Drop() { h.lists.drop() }

// keeper is the server as its replicas see it.
type keeper struct{ *Server }

// Unpack implements [shards.Keeper].
func (s keeper) Unpack(head *protos.Replicate, tensors []*protos.Tensor) (shards.Copy, error) {
	if head.Table == nil || len(head.Table.Clients) != len(s.env.View().Members) {
		return nil, shards.ErrUnfit
	}
	h := s.newHeld(int(head.Shard.Shard))
	if h == nil {
		return nil, shards.ErrUnfit
	}
	for i, c := range head.Table.Clients {
		if !slices.IsSorted(c.Times) {
			return nil, shards.ErrUnfit
		}
		h.taken[i] = taken{c.Life, c.Oldest, slices.Clone(c.Times)}
	}
	return h, h.unpack(head.Table, tensors)
}

// Thaw implements [shards.Keeper].
func (s keeper) Thaw(_ int, c shards.Copy) (*kept, error) { return c.(*kept), nil }

// Resume implements [shards.Keeper].
func (s keeper) Resume(ctx actor.Context, k int) { s.shards.Deliver(ctx, k) }

// Take implements [shards.Keeper].
func (s keeper) Take(ctx actor.Context, m *protos.Message) { s.take(ctx, m) }

// replicated takes in a message about the replicas of shards.
func (s *Server) replicated(ctx actor.Context, m *protos.Message) {
	if s.replicas == nil {
		actors.Unexpected(s.env, m)
		return
	}
	s.replicas.Receive(ctx, m)
}
