package node

import (
	"bufio"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/protos"
)

// Bounds of the connections of clients that are open at a time.
const (
	maxClients = 256
	// maxOthers is how many of them those have together that are no operators: the rest is kept for
	// operators.
	maxOthers = 192
	// maxOperator is how many one operator has, and maxOther anybody else.
	maxOperator = 192
	maxOther    = 64
	// declinePatience is how long a caller that is turned away may take to hear why.
	declinePatience = time.Second
	// maxDeclined is how many callers hear why at a time; others are turned away without a word.
	maxDeclined = 16
)

// client takes a client's connection.
func (p *process) client(conn net.Conn, from transport.Peer) {
	c := &request.Caller{Conn: conn, Name: from.Name, Role: from.Role, Process: p.config.Name}
	if p.config.Identity == nil { // then everybody may do everything
		c.Name, c.Role = "somebody", identity.Operator
	}
	p.serve(c)
}

// serve answers a caller, or tells it why not.
func (p *process) serve(c *request.Caller) {
	if err := p.admit(c); err != nil {
		p.decline(c, err)
		return
	}
	go func() {
		defer p.work.Done()
		if err := p.attend(c); err != nil {
			c.Refuse(err)
		}
		p.dismiss(c)
	}()
}

// admit lets a caller in, or says why not.
func (p *process) admit(c *request.Caller) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop.Err() != nil {
		return refusal.Again(fmt.Errorf("process %s is stopping", p.config.Name))
	}
	if err := p.room(c); err != nil {
		return refusal.Again(fmt.Errorf("process %s has %w", p.config.Name, err))
	}
	p.clients[c] = true
	p.work.Add(1)
	return nil
}

// room returns an error if a caller has all the connections that are for it; p.mu is held.
func (p *process) room(c *request.Caller) error {
	own, others := 0, 0
	for o := range p.clients {
		if o.Name == c.Name && o.Role == c.Role {
			own++
		}
		if o.Role != identity.Operator {
			others++
		}
	}
	most := maxOther
	if c.Role == identity.Operator {
		most = maxOperator
	}
	switch {
	case own >= most:
		return fmt.Errorf("%d connections with %s %s already, which is as many as one has", own, c.Role, c.Name)
	case len(p.clients) >= maxClients:
		return fmt.Errorf("%d connections, which is as many as it takes", len(p.clients))
	case c.Role != identity.Operator && others >= maxOthers:
		return fmt.Errorf("%d connections; the others are kept for operators", others)
	}
	return nil
}

// dismiss closes a caller's connection.
func (p *process) dismiss(c *request.Caller) {
	p.mu.Lock()
	delete(p.clients, c)
	p.mu.Unlock()
	c.Conn.Close() //nolint:errcheck // the answer is complete, or the client is gone
}

// decline tells a caller why it is not let in. It reads the request first: closing the connection
// earlier would lose the answer.
func (p *process) decline(c *request.Caller, why error) {
	defer c.Conn.Close() //nolint:errcheck // there is nothing more to say
	select {
	case p.declining <- struct{}{}:
		defer func() { <-p.declining }()
	default:
		return
	}
	if err := c.Conn.SetDeadline(time.Now().Add(declinePatience)); err != nil {
		return
	}
	var r protos.Request
	if request.Read(bufio.NewReader(c.Conn), &r) == nil {
		c.Refuse(why)
	}
}

// closeClients ends all connections of clients.
func (p *process) closeClients() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.clients {
		c.Conn.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // who does not hear the end finds out
	}
}

// attend carries out the request of a caller. One at which the process fails ends alone.
func (p *process) attend(c *request.Caller) (err error) {
	defer p.survive("a request of "+c.Name, &err)
	return p.answer(c)
}

// survive, deferred, makes the panic of a function its error. Where it was is in the process's log.
func (p *process) survive(what string, err *error) {
	if cause := recover(); cause != nil {
		*err = p.failed(what, cause)
	}
}

// failed makes the cause of a panic an error.
func (p *process) failed(what string, cause any) error {
	p.log("%s has panicked: %v\n%s", what, cause, debug.Stack())
	return fmt.Errorf("process %s has failed at this, by a fault that its log shows: %v", p.config.Name, cause)
}

// entered returns an error unless the process is part of the cluster and knows what was submitted
// to it before.
func (p *process) entered() error {
	if !p.joined.Load() {
		return refusal.Again(fmt.Errorf("process %s is joining the cluster", p.config.Name))
	}
	p.remember() // which takes no longer than to read the ledger
	return nil
}
