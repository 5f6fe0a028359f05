package sim

import (
	"fmt"
	"time"

	"github.com/gradwire/gradwire/protos"
)

// Audit is what can be known of a run from outside of what it is made of. It has numbers of its
// own for messages, and leaves to the garbage collector to find out which tensors nobody holds. The
// zero value is ready for one run.
type Audit struct {
	// Tensors has it look for those that are left, which takes a collection of garbage.
	Tensors bool
	// Handled is how many messages, control aside, were handed to the actors of other nodes.
	Handled uint64
	// Disorder says which message was the first that was handed over twice, out of turn, or after
	// one that is missing; empty if none was. Without sessions links may have it so.
	Disorder string
	// Forgotten says which tensors nobody held, and nobody had given back, when the coordinator
	// stopped the members; empty if none. What an actor held that had crashed or left is none.
	Forgotten string
	// Repeats are when a session sent a message again, or a worker a push.
	Repeats []time.Duration
	// Pushes are those of workers to a parameter server, each once, in the order of sending.
	Pushes []Pushed

	ways   map[way]*traffic
	onWay  map[uint64]mark // by the door's number
	pushed map[Push]uint64 // with Number 0: how many there were
	graves []any
}

// way is from a life of a node to a node.
type way struct {
	from int32
	life uint32
	to   int32
}

// traffic is what went a way.
type traffic struct {
	sent  uint64
	first uint64 // that was sent in the present life of the receiver
	next  uint64 // that is to be handed over; of no meaning before it has got one
	met   bool   // it has
}

// mark is the place of a message in the traffic of its way.
type mark struct {
	*traffic
	way
	place uint64
}

// Push is what a worker's push is known by, as in [actors.Event].
type Push struct {
	Worker       int
	Shard        uint32
	Life, Number uint64
}

// Pushed is a push that was sent at an instant.
type Pushed struct {
	At time.Duration
	Push
}

// again returns what sessions tell of what they send again.
func (a *Audit) again() func(now time.Duration) {
	if a == nil {
		return nil
	}
	return func(now time.Duration) { a.Repeats = append(a.Repeats, now) }
}

// leaves takes note of a message that has passed the door.
func (a *Audit) leaves(w way, number uint64) {
	if a == nil {
		return
	}
	if a.ways == nil {
		a.ways, a.onWay = map[way]*traffic{}, map[uint64]mark{}
	}
	t := a.ways[w]
	if t == nil {
		t = &traffic{}
		a.ways[w] = t
	}
	a.onWay[number] = mark{t, w, t.sent}
	t.sent++
}

// pushes takes note of a message that is about to leave a node, if it is a worker's push.
func (a *Audit) pushes(from int32, now time.Duration, message any) {
	if a == nil {
		return
	}
	m, is := message.(*protos.Message)
	if !is {
		return
	}
	head, is := m.Head.(*protos.Push)
	if !is || head.Life == 0 || head.Node != from { // a server may hand one on
		return
	}
	p := Push{Worker: int(from), Shard: head.Shard, Life: head.Life}
	before := a.pushed[p]
	if head.Number > 0 && head.Number <= before {
		a.Repeats = append(a.Repeats, now)
		return
	}
	if a.pushed == nil {
		a.pushed = map[Push]uint64{}
	}
	a.pushed[p] = before + 1
	p.Number = before + 1
	a.Pushes = append(a.Pushes, Pushed{now, p})
}

// begins takes note of another life of a node.
func (a *Audit) begins(node int32) {
	if a == nil {
		return
	}
	for w, t := range a.ways { // in any order: each for itself
		if w.to == node {
			t.first, t.met = t.sent, false
		}
	}
}

// comes takes note of a message that is handed over.
func (a *Audit) comes(now time.Duration, number uint64) {
	if a == nil {
		return
	}
	a.Handled++
	m, known := a.onWay[number]
	delete(a.onWay, number)
	if !known {
		a.complain("at %v: a message was handed over twice", now)
		return
	}
	t := m.traffic
	switch {
	case t.met && m.place != t.next:
		a.complain("at %v: node %d was handed message %d of node %d, where message %d is the next", now, m.to,
			m.place, m.from, t.next)
	case !t.met && m.place > t.first:
		a.complain("at %v: node %d was handed message %d of node %d first, and message %d is missing", now, m.to,
			m.place, m.from, t.first)
	}
	t.met, t.next = true, m.place+1
}

func (a *Audit) complain(format string, args ...any) {
	if a.Disorder == "" {
		a.Disorder = fmt.Sprintf(format, args...)
	}
}

// bury keeps what is left of a node's life that is over, so that what it holds is not taken for
// forgotten.
func (a *Audit) bury(remains any) {
	if a != nil && a.Tensors {
		a.graves = append(a.graves, remains)
	}
}

// close looks for tensors that nobody holds.
func (a *Audit) close(pool *protos.TensorPool) {
	if a == nil || !a.Tensors {
		return
	}
	if lengths := pool.Forgotten(); len(lengths) > 0 {
		a.Forgotten = fmt.Sprintf("%d tensors, the first of %d values", len(lengths), lengths[0])
	}
	a.graves = nil
}
