package shards

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/protos"
)

// Log is what the owner of a shard with replicas sends down their chain, and the answers that it
// holds back until the last of them has that. It sends what updates are made of: of a round the sum
// of the gradients, once. That of a shard without replicas is nil: it answers at once.
type Log struct {
	index    int              // of the shard
	sequence uint64           // of the last change that was sent
	acked    uint64           // by the last replica
	changed  bool             // the shard has, since
	updates  []*protos.Tensor // of the changes since, as they were applied
	held     []held           // oldest first
}

// held is a message that waits for the replicas.
type held struct {
	sequence uint64 // that they are to have
	to       *actor.PID
	message  *protos.Message
}

// NewLog is that of a shard that has just come.
func NewLog(index int) *Log { return &Log{index: index} }

// Touch notes that the shard changes.
func (l *Log) Touch() {
	if l != nil {
		l.changed = true
	}
}

// Update notes a tensor of a change, of which it takes a reference.
func (l *Log) Update(t *protos.Tensor) {
	if l != nil {
		l.updates = append(l.updates, t.Retain())
	}
}

// Send sends a message about the shard as it is, once its replicas have that.
func (l *Log) Send(ctx actor.Context, to *actor.PID, m *protos.Message) {
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

// next begins a change, if those since the last one are an update or somebody waits for them. A
// push that is neither comes again from its worker if this server crashes.
func (l *Log) next() bool {
	owed := len(l.updates) > 0 || len(l.held) > 0 && l.held[len(l.held)-1].sequence > l.sequence
	if !l.changed || !owed {
		return false
	}
	l.sequence++
	l.changed = false
	return true
}

// ack notes that the last replica has a change.
func (l *Log) ack(ctx actor.Context, sequence uint64) {
	l.acked = max(l.acked, sequence)
	l.release(ctx)
}

// release sends what has waited for nothing but changes that the replicas have.
func (l *Log) release(ctx actor.Context) {
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
func (l *Log) drop() {
	for _, h := range l.held {
		h.message.Release()
	}
	for _, t := range l.updates {
		t.Release()
	}
}
