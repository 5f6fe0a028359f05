package ps

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// log is what the owner of a shard with replicas sends down their chain, and the answers that it
// holds back until the last of them has that. It sends what updates are made of: of a round the sum
// of the gradients, once.
type log struct {
	sequence uint64           // of the last change that was sent
	acked    uint64           // by the last replica
	changed  bool             // the shard has, since
	updates  []*protos.Tensor // gradients since, as they were applied
	held     []held           // oldest first
	told     []known          // of workers, by node, with the last change
}

// held is a message that waits for the replicas.
type held struct {
	sequence uint64 // that they are to have
	to       *actor.PID
	message  *protos.Message
}

// touch notes that the shard changes.
func (h *shard) touch() {
	if h.log != nil {
		h.log.changed = true
	}
}

// send sends a message about the shard as it is, once its replicas have that.
func (h *shard) send(ctx actor.Context, to *actor.PID, m *protos.Message) {
	l := h.log
	if l == nil {
		ctx.Send(to, m)
		return
	}
	sequence := l.sequence
	if l.changed {
		sequence++
	}
	l.held = append(l.held, held{sequence, to, m})
}

// commit sends the changes since the last one to the replicas, if they are an update or somebody
// waits for them. A push that is neither comes again from its worker if this server crashes.
func (h *shard) commit(ctx actor.Context) {
	l := h.log
	if l == nil {
		return
	}
	owed := len(l.updates) > 0 || len(l.held) > 0 && l.held[len(l.held)-1].sequence > l.sequence
	if l.changed && owed {
		l.sequence++
		l.changed = false
		h.replicas.append(ctx, h, l.updates)
		l.updates = l.updates[:0]
	}
	l.release(ctx)
}

// ack notes that the last replica has a change.
func (l *log) ack(ctx actor.Context, sequence uint64) {
	l.acked = max(l.acked, sequence)
	l.release(ctx)
}

// release sends what has waited for nothing but changes that the replicas have.
func (l *log) release(ctx actor.Context) {
	n := 0
	for n < len(l.held) && l.held[n].sequence <= l.acked {
		ctx.Send(l.held[n].to, l.held[n].message)
		n++
	}
	rest := copy(l.held, l.held[n:])
	clear(l.held[rest:])
	l.held = l.held[:rest]
}

// drop gives up what is held back: its receivers ask again.
func (l *log) drop() {
	for _, h := range l.held {
		h.message.Release()
	}
	for _, t := range l.updates {
		t.Release()
	}
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
		h.touch()
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
	h.commit(ctx)
}

// repeat tells a worker once more that it may go on, if it may. One that need not hear of all its
// pushes is told how many are finished.
func (h *shard) repeat(ctx actor.Context, node int) {
	waits := h.clocks.Waits(node) && h.arch.model().Ahead() == 0
	if w := &h.workers[node]; w.pid != nil && !w.rests && !waits {
		h.answer(ctx, node)
	}
}
