package sim

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/protos"
)

// mailbox runs one user message a turn, on the world's run queue. All mailboxes
// of a world take turns on one goroutine.
type mailbox struct {
	world     *World
	node      int32
	env       *env // of an actor that the world placed, whose failure ends the run
	dead      bool // its node has crashed
	queued    bool
	suspended bool
	waiting   bool // an event at busy makes the mailbox ready
	busy      time.Duration
	invoker   actor.MessageInvoker
	process   *process
	queues    queue.Mailbox[any] // while the actor is busy only messages of actors wait
}

var _ actor.Mailbox = (*mailbox)(nil)

func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}
func (m *mailbox) Start()                {}
func (m *mailbox) UserMessageCount() int { return m.queues.User.Len() }

func (m *mailbox) PostUserMessage(message any) {
	m.queues.User.Push(message)
	m.makeReady()
}

func (m *mailbox) PostSystemMessage(message any) {
	m.queues.System.Push(message)
	m.makeReady()
}

// postControl takes a message of the control protocol.
func (m *mailbox) postControl(message any) {
	m.queues.Control.Push(message)
	m.makeReady()
}

// makeReady has the mailbox get a turn.
func (m *mailbox) makeReady() {
	if !m.queued {
		m.queued = true
		m.world.ready.Push(m)
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
	for m.queues.System.Len() > 0 {
		m.handleSystem(m.queues.System.Pop())
	}
	for m.queues.Control.Len() > 0 && !m.suspended {
		m.handleControl(m.queues.Control.Pop())
	}
	w.charge = 0
	if m.willing() {
		m.invoker.InvokeUserMessage(m.queues.User.Pop())
	}
	if w.charge > 0 {
		m.busy = w.now + w.charge
	}
	if m.queues.System.Len() > 0 || m.queues.Control.Len() > 0 || m.willing() {
		m.makeReady()
	}
}

// willing reports whether there is a user message to handle now. An actor that is still busy with
// what it charged gets it when it no longer is.
func (m *mailbox) willing() bool { return !m.suspended && m.queues.User.Len() > 0 && !m.sleep(m.busy) }

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

// handleControl hands over a control message, a new view's with the view in place.
func (m *mailbox) handleControl(message any) {
	if announced, ok := protos.Announced(message); ok && m.env != nil {
		m.env.view = m.world.announced(announced)
	}
	m.invoker.InvokeUserMessage(message)
}

// die drops the queued messages and the reference to the actor. A pending wake-up may still refer to the
// mailbox, and must not keep the actor in memory.
func (m *mailbox) die() {
	m.world.config.Audit.bury(m.invoker)
	m.dead, m.invoker, m.env = true, nil, nil
	for message, _, ok := m.queues.Next(false); ok; message, _, ok = m.queues.Next(false) {
		door.Release(message)
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
		m.world.fail(fmt.Errorf("node %s, actor %s: %w", m.world.names[m.node], m.process.id, world.PanicError(reason)))
		return
	}
	m.invoker.EscalateFailure(reason, nil)
	m.makeReady()
}
