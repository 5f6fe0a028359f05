package live

import (
	"runtime"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/wire"
)

// mailbox is the mailbox of a node's actor. It handles system messages before all others, and
// control messages before actors' messages. It releases the messages that are left when the actor's
// life is over.
//
// A post to an idle mailbox starts a goroutine that handles the messages there, which costs more
// than a short message itself. A goroutine that has nothing better to do lends itself instead.
type mailbox struct {
	invoker actor.MessageInvoker
	life    *life

	mu        sync.Mutex
	queues    queue.Mailbox[letter]
	timers    timers
	cut       cut
	jobs      int // under way
	suspended bool
	pauses    int  // how many hold the node, which handles nothing but protoactor's own messages then
	running   bool // a goroutine handles messages, or is about to
	lent      int  // goroutines that will handle what is posted meanwhile
	called    bool // one of these is to run the mailbox
}

var _ actor.Mailbox = (*mailbox)(nil)

// Bounds of the messages that are handled in one go: by a goroutine before it lets others
// run, and by one that is lent before it goes about its own business.
const (
	turns     = 300
	lentTurns = 4
)

// letter is a message and the instant at which it was due; promptly if that is when it came.
type letter struct {
	message any
	due     time.Duration
	cut     uint64 // of the node that has sent it
}

// RegisterHandlers is told whom to give messages to.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	m.invoker = invoker
}

// Start does nothing: a mailbox runs when something is posted.
func (m *mailbox) Start() {}

// UserMessageCount is the number of messages of actors that wait.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queues.User.Len()
}

// busy reports whether a message waits or a handler runs.
func (m *mailbox) busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running || m.queues.Len() > 0
}

// PostUserMessage takes a message of an actor of this node: what a handler sends there is due at
// its instant.
func (m *mailbox) PostUserMessage(message any) { m.postDue(message, m.life.now()) }

// postDue takes one that was due at an instant.
func (m *mailbox) postDue(message any, due time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enqueue(&m.queues.User, letter{message, due, m.cut.times})
}

// PostSystemMessage takes one of protoactor's own.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enqueue(&m.queues.System, letter{message, promptly, m.cut.times})
}

// postFrame takes the message of a frame, which was due at an instant, from another node.
func (m *mailbox) postFrame(f *wire.Frame, message any, due time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := &m.queues.User
	if f.Kind == wire.Control {
		q, due = &m.queues.Control, promptly
	}
	m.enqueue(q, letter{message, due, m.judge(f)})
}

// enqueue is called under the lock.
func (m *mailbox) enqueue(q *queue.Ring[letter], l letter) {
	q.Push(l)
	switch {
	case m.running:
	case m.lent > 0:
		m.running, m.called = true, true
	default:
		m.running = true
		go m.run()
	}
}

// lend calls a function and then handles on this goroutine what it has delivered, a few messages
// at most.
func (m *mailbox) lend(deliver func()) {
	m.mu.Lock()
	m.lent++
	m.mu.Unlock()
	deliver()
	m.mu.Lock()
	m.lent--
	called := m.called
	m.called = false
	m.mu.Unlock()
	if called && !m.turn(lentTurns) {
		go m.run()
	}
}

// run handles messages until there are none.
func (m *mailbox) run() {
	for !m.turn(turns) {
		runtime.Gosched()
	}
}

// turn handles some messages, and reports whether there are no more: the mailbox then
// does not run any longer.
func (m *mailbox) turn(messages int) (idle bool) {
	for range messages {
		l, system, ok := m.next()
		if !ok {
			return true
		}
		m.handle(l, system)
	}
	return false
}

// next takes the most urgent message.
func (m *mailbox) next() (l letter, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, system, ok = m.queues.Next(m.suspended || m.pauses > 0 || m.cut.held > 0 || m.cut.asked > m.cut.times)
	if m.running = ok; !ok {
		m.rest()
	}
	return l, system, ok
}

func (m *mailbox) handle(l letter, system bool) {
	message := l.message
	w := m.life.node.world
	m.life.instant.begin(w.clock.Now(), l.due, w.config.Bound)
	defer m.life.instant.end()
	defer m.life.report()
	defer func() {
		if reason := recover(); reason != nil {
			m.invoker.EscalateFailure(reason, message)
		}
	}()
	if system {
		switch message.(type) {
		case *actor.SuspendMailbox:
			m.suspend(true)
		case *actor.ResumeMailbox:
			m.suspend(false)
		default:
			m.invoker.InvokeSystemMessage(message)
		}
		return
	}
	if m.life.over() {
		door.Release(message) // here, because a stopped actor is given nothing
		return
	}
	m.invoker.InvokeUserMessage(message)
}

// pause stops the handling of messages, and resume lets it go on once it has been called as often.
func (m *mailbox) pause() {
	m.mu.Lock()
	m.pauses++
	m.mu.Unlock()
}

func (m *mailbox) resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pauses--
	m.goOn()
}

// goOn handles what waits, if nothing holds it and nobody does. Called under the lock.
func (m *mailbox) goOn() {
	if m.pauses == 0 && !m.running {
		m.running = true
		go m.run()
	}
}

func (m *mailbox) suspend(suspended bool) {
	m.mu.Lock()
	m.suspended = suspended
	m.mu.Unlock()
}
