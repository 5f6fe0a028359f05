package live

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
)

// mailbox is protoactor's own, with a second queue: messages of the control protocol are
// handled before all others that wait. What is left when the life is over is released.
type mailbox struct {
	actor.Mailbox
	invoker actor.MessageInvoker
	life    *life

	waiting atomic.Int32 // messages in control
	mu      sync.Mutex
	control []any
	first   int // in control
}

var _ actor.MessageInvoker = (*mailbox)(nil)

// nudge runs the mailbox, in the place of a control message that an earlier turn may
// have taken.
type nudge struct{}

func newMailbox(l *life) *mailbox { return &mailbox{Mailbox: actor.Unbounded()(), life: l} }

// RegisterHandlers puts the mailbox between its queues and the actor.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker = invoker
	m.Mailbox.RegisterHandlers(m, dispatcher)
}

// postControl takes a message of the control protocol.
func (m *mailbox) postControl(message any) {
	m.mu.Lock()
	m.control = append(m.control, message)
	m.waiting.Add(1)
	m.mu.Unlock()
	m.PostUserMessage(nudge{})
}

// takeControl returns the oldest control message, nil if there is none.
func (m *mailbox) takeControl() (message any) {
	if m.waiting.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	message, m.control[m.first] = m.control[m.first], nil
	if m.first++; m.first == len(m.control) {
		m.control, m.first = m.control[:0], 0
	}
	m.waiting.Add(-1)
	return message
}

func (m *mailbox) InvokeSystemMessage(message any)     { m.invoker.InvokeSystemMessage(message) }
func (m *mailbox) EscalateFailure(reason, message any) { m.invoker.EscalateFailure(reason, message) }

// InvokeUserMessage hands over what control messages there are, and then this message.
func (m *mailbox) InvokeUserMessage(message any) {
	for c := m.takeControl(); c != nil; c = m.takeControl() {
		m.invoke(c)
	}
	if _, ok := message.(nudge); !ok {
		m.invoke(message)
	}
}

func (m *mailbox) invoke(message any) {
	if m.life.over() {
		door.Release(message) // here, because a stopped actor is given nothing any more
		return
	}
	m.invoker.InvokeUserMessage(message)
}
