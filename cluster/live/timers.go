package live

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// timers are what is due in a life: messages of timers, and results of computations.
type timers struct {
	box     *mailbox // whose lock guards them
	entered uint64
	due     map[uint64]timer // by number; saved with the messages in the mailbox
}

// timer is a message that is due.
type timer struct {
	at       time.Duration
	message  any
	computed bool          // it is a result,
	asked    time.Duration // which should be there at this instant
	call     uint64        // of the clock
}

func newMailbox(l *life) *mailbox {
	m := &mailbox{life: l}
	m.timers = timers{box: m, due: map[uint64]timer{}}
	return m
}

// enter has a message delivered when it is due, and returns its number.
func (t *timers) enter(x timer) (number uint64) {
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	t.entered++
	t.schedule(t.entered, x)
	return t.entered
}

// schedule enters a message into the clock. What the coordinator alone waits for moves nothing on.
// Called under the lock.
func (t *timers) schedule(number uint64, x timer) {
	n := t.box.life.node
	enter := n.world.clock.At
	if n.coordinates() && !x.computed {
		enter = n.world.clock.Watch
	}
	x.call = enter(x.at, func() { t.ring(number) })
	t.due[number] = x
}

// ring delivers a message that is due.
func (t *timers) ring(number uint64) {
	m := t.box
	m.mu.Lock()
	x, due := t.due[number]
	delete(t.due, number)
	handles := m.life.alive(m.life.pid.Id) && !m.life.over()
	if due && handles {
		m.enqueue(&m.queues.User, letter{x.message, x.at, m.cut.times})
	}
	m.mu.Unlock()
	switch {
	case !due: // it was cancelled
		return
	case !handles:
		m.life.tell(x.message, x.at) // in vain
	}
	if x.computed {
		m.life.computed(x.asked)
	}
}

// CancelTimer prevents a message that has not been delivered yet.
func (t *timers) CancelTimer(number uint64) {
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	if x, there := t.due[number]; there {
		delete(t.due, number)
		t.box.life.node.world.clock.CancelTimer(x.call)
	}
}

// restore enters the messages that were due when the node was saved. Called under the lock.
func (t *timers) restore(due map[uint64]timer) {
	for _, number := range slices.SortedFunc(maps.Keys(due), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(due[a].at, due[b].at), cmp.Compare(a, b))
	}) {
		t.schedule(number, due[number])
	}
}
