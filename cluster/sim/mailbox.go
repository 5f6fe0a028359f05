package sim

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/protos"
)

// queue is a first-in-first-out queue that reuses its memory.
type queue struct {
	items []any
	head  int
}

func (q *queue) empty() bool { return q.head == len(q.items) }

func (q *queue) push(x any) {
	if q.head > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, x)
}

func (q *queue) pop() any {
	x := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return x
}

// mailbox runs one user message a turn, on the world's run queue. All mailboxes
// of a world take turns on one goroutine.
type mailbox struct {
	world     *World
	node      int32
	env       *env // of an actor that the world placed, whose failure ends the run
	dead      bool // its node has crashed
	queued    bool
	suspended bool
	waiting   bool // an event at busy will post the mailbox
	busy      time.Duration
	invoker   actor.MessageInvoker
	process   *process
	user      queue
	control   queue // ahead of user, however busy the actor is
	system    queue
}

var _ actor.Mailbox = (*mailbox)(nil)

func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}
func (m *mailbox) Start()                {}
func (m *mailbox) UserMessageCount() int { return len(m.user.items) - m.user.head }

func (m *mailbox) PostUserMessage(message any) {
	m.user.push(message)
	m.post()
}

func (m *mailbox) PostSystemMessage(message any) {
	m.system.push(message)
	m.post()
}

// postControl takes a message of the control protocol.
func (m *mailbox) postControl(message any) {
	m.control.push(message)
	m.post()
}

func (m *mailbox) post() {
	if !m.queued {
		m.queued = true
		m.world.ready.push(m)
	}
}

// turn handles the system messages, the control messages, which take no time, and
// at most one user message.
func (m *mailbox) turn() {
	w := m.world
	m.queued = false
	if m.dead || m.sleep(w.nodes[m.node].resumes) {
		return
	}
	w.source, w.charge = m.node, 0
	defer m.recover()
	for !m.system.empty() {
		m.handleSystem(m.system.pop())
	}
	for !m.control.empty() && !m.suspended {
		m.handleControl(m.control.pop())
	}
	w.charge = 0
	if m.willing() {
		m.invoker.InvokeUserMessage(m.user.pop())
	}
	if w.charge > 0 {
		m.busy = w.now + w.charge
	}
	if !m.system.empty() || !m.control.empty() || m.willing() {
		m.post()
	}
}

// willing reports whether there is a user message to handle now.
func (m *mailbox) willing() bool { return !m.suspended && !m.user.empty() && !m.wait() }

// wait reports whether the actor is still busy with what it charged, and sees to
// it that the mailbox runs again when it no longer is.
func (m *mailbox) wait() bool {
	return m.sleep(m.busy)
}

// sleep reports whether an instant is yet to come, and has the mailbox run again then.
func (m *mailbox) sleep(until time.Duration) bool {
	if until <= m.world.now {
		return false
	}
	if !m.waiting {
		m.waiting = true
		m.world.enter(until, slot{what: wakeUp, mailbox: m})
	}
	return true
}

// handleControl hands over a control message; that of a new view comes with the view.
func (m *mailbox) handleControl(message any) {
	if announced, ok := protos.Announced(message); ok && m.env != nil {
		m.env.view = m.world.announced(announced)
	}
	m.invoker.InvokeUserMessage(message)
}

// die drops everything that waits to be handled.
func (m *mailbox) die() {
	m.dead = true
	for _, q := range []*queue{&m.user, &m.control, &m.system} {
		for !q.empty() {
			door.Release(q.pop())
		}
	}
}

func (m *mailbox) handleSystem(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.suspended = true
	case *actor.ResumeMailbox:
		m.suspended = false
	default:
		m.invoker.InvokeSystemMessage(message)
		m.process.refresh()
	}
}

func (m *mailbox) recover() {
	reason := recover()
	if reason == nil {
		return
	}
	if m.env != nil {
		m.world.fail(fmt.Errorf("node %s, actor %s: %w", m.world.names[m.node], m.process.id, actors.PanicError(reason)))
		return
	}
	m.invoker.EscalateFailure(reason, nil)
	m.post()
}
