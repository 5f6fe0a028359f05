package resident

import (
	"fmt"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/protos"
)

// Call is what a client wants of an actor.
type Call struct {
	// Want is the call as it has travelled, but for its message. Client and Sequence give the
	// order: see the package. SEND wants the message handled, ASK an answer, which the actor gives
	// with Respond, and STOP the actor to end, once all calls before this one are handled.
	Want *protos.ActorCall
	// Message is nil for STOP. Deliver takes over the caller's reference.
	Message *protos.Message
	// Done is told the end, once: the answer, if there is one, whose reference is the
	// receiver's, or why the call is lost. It must not wait long.
	Done func(answer *protos.Message, err error)

	of      *resident
	begun   bool // under of.mu, as are those below
	handled bool
	over    bool
	asker   uint64
	timer   *time.Timer
}

// refuse ends a call that no actor has seen.
func (c *Call) refuse(err error) {
	if c.Message != nil {
		c.Message.Release()
	}
	c.Done(nil, err)
}

// payload is what the actor is given.
func (c *Call) payload() any {
	switch c.Want.Verb {
	case protos.ActorCall_STOP:
		return &actor.PoisonPill{}
	case protos.ActorCall_ASK:
		return &actor.MessageEnvelope{Message: c.Message, Sender: actor.NewPID(asker, strconv.FormatUint(c.asker, 10))}
	default:
		return c.Message
	}
}

// deliver puts a call into the mailbox.
func (a *resident) deliver(c *Call) {
	a.mu.Lock()
	err := a.admit(c)
	if err != nil {
		a.lost++
		a.mu.Unlock()
		c.refuse(err)
		return
	}
	c.of = a
	a.calls[c] = true
	if c.Want.Verb == protos.ActorCall_ASK {
		a.asks++
		c.asker = a.host.ask(c)
		patience := time.Duration(c.Want.Patience)
		c.timer = time.AfterFunc(patience, func() {
			a.finish(c, nil, fmt.Errorf("%s has not answered within %v", a, patience))
		})
	}
	a.mailbox.PostUserMessage(c) // under the lock, to keep the order of the sequence numbers
	a.mu.Unlock()
}

// admit checks whether a call may enter the mailbox.
func (a *resident) admit(c *Call) error {
	switch last, known := a.clients[c.Want.Client]; {
	case a.grave != "":
		return fmt.Errorf("%s %s", a, a.grave)
	case a.stage != begun:
		return fmt.Errorf("%s is only about to begin", a)
	case known && c.Want.Sequence <= last.sequence:
		return fmt.Errorf("message %d to %s comes behind message %d, which was sent later", c.Want.Sequence, a,
			last.sequence)
	case c.Want.Verb != protos.ActorCall_STOP && a.mailbox.UserMessageCount() >= MaxMailbox:
		return fmt.Errorf("the mailbox of %s is full: %d messages wait", a, MaxMailbox)
	case c.Want.Verb == protos.ActorCall_ASK && a.asks == MaxAsks:
		return fmt.Errorf("%s owes %d answers, which is as many as can be", a, MaxAsks)
	}
	a.remember(c)
	return nil
}

// heard is the last call of a client.
type heard struct {
	sequence uint64
	at       time.Time
}

func (a *resident) remember(c *Call) {
	if _, known := a.clients[c.Want.Client]; !known && len(a.clients) == maxClients {
		oldest, at := uint64(0), time.Time{}
		for client, h := range a.clients {
			if at.IsZero() || h.at.Before(at) {
				oldest, at = client, h.at
			}
		}
		delete(a.clients, oldest)
	}
	a.clients[c.Want.Client] = heard{c.Want.Sequence, time.Now()}
}

// ask gives a question the id of its sender.
func (h *Host) ask(c *Call) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastAsk++
	h.asks[h.lastAsk] = c
	return h.lastAsk
}

// finish ends a call, unless it has ended.
func (a *resident) finish(c *Call, answer *protos.Message, err error) {
	a.mu.Lock()
	if c.over {
		a.mu.Unlock()
		if answer != nil {
			answer.Release()
		}
		return
	}
	c.over = true
	if answer != nil {
		a.count(c) // before the client hears of it
	}
	delete(a.calls, c)
	asked := c.Want.Verb == protos.ActorCall_ASK
	if asked {
		a.asks--
	}
	a.mu.Unlock()
	if asked {
		c.timer.Stop()
		a.host.mu.Lock()
		delete(a.host.asks, c.asker)
		a.host.mu.Unlock()
	}
	c.Done(answer, err)
}

// count counts a call as handled, once.
func (a *resident) count(c *Call) {
	if !c.handled && c.Want.Verb != protos.ActorCall_STOP {
		a.handled++
	}
	c.handled = true
}

// mailbox is protoactor's own, in which calls know what becomes of them.
type mailbox struct {
	actor.Mailbox
	invoker actor.MessageInvoker
	of      *resident
}

// RegisterHandlers puts the mailbox between its queue and the actor.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker = invoker
	m.Mailbox.RegisterHandlers(m, dispatcher)
}

func (m *mailbox) InvokeSystemMessage(message any)     { m.invoker.InvokeSystemMessage(message) }
func (m *mailbox) EscalateFailure(reason, message any) { m.invoker.EscalateFailure(reason, message) }

// InvokeUserMessage has the actor handle a message. What is left when the actor has ended is
// released here, because a stopped actor is given nothing; its call has been told.
func (m *mailbox) InvokeUserMessage(message any) {
	a := m.of
	if o, ok := message.(*outcome); ok {
		if p := a.present.Load(); p.env != o.env { // it was meant for an earlier life
			door.Release(o.message)
			return
		}
		message = o.message
	}
	if a.over() {
		door.Release(message)
		if c, ok := message.(*Call); ok && c.Message != nil {
			c.Message.Release()
		}
		return
	}
	c, ok := message.(*Call)
	if !ok {
		m.invoker.InvokeUserMessage(message)
		return
	}
	a.mu.Lock()
	c.begun = true
	a.mu.Unlock()
	m.invoker.InvokeUserMessage(c.payload()) // a panic passes through: failed tells the call
	a.mu.Lock()
	a.count(c)
	a.mu.Unlock()
	if c.Want.Verb == protos.ActorCall_SEND {
		a.finish(c, nil, nil)
	}
}
