package ps

import (
	"time"

	"github.com/gradwire/gradwire/actors/consistency"
	"github.com/gradwire/gradwire/actors/ps/shards"
	"github.com/gradwire/gradwire/nn/compress"
	"github.com/gradwire/gradwire/nn/optim"
	"github.com/gradwire/gradwire/protos"
)

// Pack gives the shard up for a message that has all of it.
func (h *shard) Pack() *protos.Message {
	of := h.optimizer.State()
	head, _ := h.head(nil)
	head.Steps, head.Updates, head.Slots = uint64(of.Step), uint64(of.Updates), uint32(len(of.Slots))
	tensors := []*protos.Tensor{h.params}
	for _, slot := range of.Slots {
		tensors = append(tensors, protos.NewTensor(slot))
	}
	for node := range h.workers {
		w, about := &h.workers[node], head.Workers[node]
		if about.Gradient {
			tensors = append(tensors, h.round.gradients[node])
		}
		if w.pid != nil && w.up != nil && w.up.Memory() != nil {
			about.Up = true
			tensors = append(tensors, protos.NewTensor(w.up.Memory()))
		}
		if w.pid != nil && w.down != nil {
			about.Down = true
			tensors = append(tensors, protos.NewTensor(w.down.Memory()))
		}
	}
	return protos.NewMessage(head, tensors...)
}

// head is what the shard knows beside its parameters, what its optimizer remembers, and what it has
// of workers. With what has been told before it has the nodes alone of which something else is
// known now, which it notes there.
func (h *shard) head(told []known) (head *protos.Shard, nodes []uint32) {
	head = &protos.Shard{Shard: uint32(h.index), Version: h.version, Slowest: h.clocks.Slowest(),
		View: h.env.View().Number, Dropped: uint64(h.dropped)}
	for node := range h.workers {
		w := &h.workers[node]
		now := known{told: true, clock: h.clocks.Worker(node), life: w.life, epoch: w.epoch, came: w.came,
			goes: w.goes, rests: w.rests, present: w.pid != nil, gradient: h.round != nil && h.round.has(node)}
		if told != nil {
			if told[node] == now {
				continue
			}
			told[node] = now
		}
		head.Workers, nodes = append(head.Workers, now.message()), append(nodes, uint32(node))
	}
	if h.epoch != nil {
		head.Epoch, head.Seen = h.epoch.number, uint64(h.epoch.seen)
	}
	return head, nodes
}

// known is what a head tells of a worker.
type known struct {
	told                     bool
	clock                    consistency.WorkerState
	life, epoch, came, goes  uint64
	rests, present, gradient bool
}

func (k *known) message() *protos.Shard_Worker {
	c := &k.clock
	return &protos.Shard_Worker{Life: k.life, There: c.There, Rounds: c.Rounds, Finished: c.Finished,
		Last: int64(c.Last), Previous: int64(c.Previous), Pushes: uint64(c.Pushes), Granted: c.Granted,
		Rests: k.rests, Present: k.present, Epoch: k.epoch, Came: k.came, Goes: k.goes, Gradient: k.gradient}
}

// unpack takes the state of a shard out of a message.
func (h *shard) unpack(head *protos.Shard, m *protos.Message) error {
	low, high := h.layout.bounds(h.index)
	if len(head.Workers) != len(h.workers) || len(m.Tensors) < 1+int(head.Slots) {
		return shards.ErrUnfit
	}
	for _, t := range m.Tensors {
		if len(t.Data) != high-low {
			return shards.ErrUnfit
		}
	}
	tensors := m.Tensors
	next := func() *protos.Tensor {
		if len(tensors) == 0 {
			return nil
		}
		t := tensors[0]
		tensors = tensors[1:]
		return t
	}
	h.params = next().Retain()
	state := optim.State{Step: int(head.Steps), Updates: int(head.Updates)}
	for range head.Slots {
		state.Slots = append(state.Slots, next().Data)
	}
	if err := h.optimizer.Restore(state); err != nil {
		return err
	}
	if err := h.unpackHead(head, head.Workers, next); err != nil {
		return err
	}
	if len(tensors) > 0 {
		return shards.ErrUnfit
	}
	return nil
}

// unpackHead takes in what the shard knows, and what it has of workers, tensor by tensor. Without
// those, it waits until workers have pushed the gradients of the round under way again.
func (h *shard) unpackHead(head *protos.Shard, workers []*protos.Shard_Worker, next func() *protos.Tensor) error {
	h.version, h.dropped = head.Version, int(head.Dropped)
	clocks := consistency.State{Slowest: head.Slowest}
	for node, w := range workers {
		clocks.Workers = append(clocks.Workers, consistency.WorkerState{There: w.There, Rounds: w.Rounds,
			Finished: w.Finished, Last: time.Duration(w.Last), Previous: time.Duration(w.Previous),
			Pushes: int(w.Pushes), Granted: w.Granted})
		if err := h.unpackWorker(node, w, next); err != nil {
			return err
		}
	}
	if h.epoch != nil {
		h.epoch.number, h.epoch.seen = head.Epoch, int(head.Seen)
	}
	return h.clocks.Restore(clocks)
}

// unpackWorker takes in what the shard knew of a worker. One that is not there any more leaves when
// the view is followed.
func (h *shard) unpackWorker(node int, w *protos.Shard_Worker, next func() *protos.Tensor) error {
	to := &h.workers[node]
	if w.Life == 0 {
		return nil
	}
	*to = worked{life: w.Life, rests: w.Rests, epoch: w.Epoch, came: w.Came, goes: w.Goes, up: h.decoder()}
	if w.Present {
		to.pid = h.env.View().Members[node].PID
	}
	if next == nil {
		if w.Gradient && w.Present && w.Came > 0 && h.round != nil { // a former life does not push again
			h.round.miss(node)
		}
		return nil
	}
	var take [3]*protos.Tensor
	for i, there := range []bool{w.Gradient, w.Up, w.Down} {
		if !there {
			continue
		}
		if take[i] = next(); take[i] == nil {
			return shards.ErrUnfit
		}
	}
	if t := take[0]; t != nil {
		if h.round == nil {
			return shards.ErrUnfit
		}
		h.round.take(node, t.Retain(), to.latest())
	}
	if t := take[1]; t != nil && to.up != nil && h.arch.Compress.Feedback == compress.EF21 {
		copy(to.up.Memory(), t.Data)
	}
	if t := take[2]; t != nil {
		to.down = h.compressor.sender(t.Data)
	}
	return nil
}
