package client

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// attachment is a client's line to actors: one connection for all it says to them, made
// when it is first needed and again after it breaks.
type attachment struct {
	turn     chan struct{} // held by who writes, and guards what follows
	client   uint64        // drawn by chance
	sequence uint64
	now      *clientLine
}

// clientLine is a connection that an attachment has.
type clientLine struct {
	address string
	conn    net.Conn
	mu      sync.Mutex
	open    map[uint64]*sent
	broken  error
}

// sent is a call whose end is not known.
type sent struct {
	of     *Ref
	counts bool
	over   atomic.Bool // it has ended, or nobody waits for its end
	ended  chan struct{}
	answer *protos.Message // written before ended is closed
	err    error
}

// errClientClosed ends the calls that are under way when a client is closed.
var errClientClosed = errors.New("the client was closed")

// Close ends the client's line to actors, if it has one; what is under way there counts as lost.
// All else of a client needs no closing.
func (c *Client) Close() {
	c.attached.turn <- struct{}{}
	l := c.attached.now
	c.attached.now = nil
	<-c.attached.turn
	if l != nil {
		l.end(errClientClosed)
	}
}

// slack is how much longer than its driver the actor's node waits for an answer.
const slack = 250 * time.Millisecond

// call sends a call to the actor.
func (r *Ref) call(ctx context.Context, verb protos.ActorCall_Verb, m *protos.Message, patience time.Duration) (*sent,
	error) {
	call := &protos.ActorCall{Verb: verb, Name: r.Name, Node: r.Node, Id: r.id, Patience: int64(patience + slack)}
	if m != nil {
		if err := fillCall(call, m); err != nil {
			return nil, refusal.Input(fmt.Errorf("to %s: %w", r, err))
		}
	}
	select {
	case r.window <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %d messages are under way, which is as many as can be: %w", r, MaxUnderWay,
			context.Cause(ctx))
	}
	s := &sent{of: r, counts: verb != protos.ActorCall_STOP, ended: make(chan struct{})}
	err := r.client.put(ctx, call, s)
	if err != nil {
		<-r.window
		return nil, fmt.Errorf("to %s: %w", r, err)
	}
	return s, nil
}

// fillCall writes a message into a call.
func fillCall(call *protos.ActorCall, m *protos.Message) (err error) {
	if call.Type, call.Head, err = request.Seal(m); err != nil {
		return err
	}
	call.Vectors = request.Vectors(m.Tensors)
	if n := proto.Size(call); n > request.MaxMessage-64 {
		return fmt.Errorf("a message of %d bytes; at most %d can be sent", n, request.MaxMessage-64)
	}
	return nil
}

// put writes a call onto the line.
func (c *Client) put(ctx context.Context, call *protos.ActorCall, s *sent) error {
	a := &c.attached
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("others have the line to the cluster: %w", context.Cause(ctx))
	}
	defer func() { <-a.turn }()
	if err := c.attach(ctx); err != nil {
		return err
	}
	a.sequence++
	call.Client, call.Sequence = a.client, a.sequence
	l := a.now
	if err := l.register(call.Sequence, s); err != nil {
		return err
	}
	// Interrupted in the middle of a message the line would be of no use.
	l.conn.SetWriteDeadline(time.Now().Add(writePatience)) //nolint:errcheck // the write fails in its place
	if err := request.Write(l.conn, call); err != nil {
		l.end(err)
	}
	return nil
}

// writePatience is how long a message may take onto the line.
const writePatience = 15 * time.Second

// attach makes a line if there is none.
func (c *Client) attach(ctx context.Context) error {
	a := &c.attached
	if a.now != nil && a.now.fine() {
		return nil
	}
	if a.client == 0 {
		var draw [8]byte
		_, _ = rand.Read(draw[:]) // which never fails
		a.client = binary.LittleEndian.Uint64(draw[:])
	}
	t, err := c.ask(ctx, c.at(), &protos.Request{Kind: &protos.Request_Attach{Attach: &protos.AttachActors{}}})
	if err != nil {
		return err
	}
	if _, err := t.next(); err != nil {
		t.close()
		return err
	}
	if !t.release() { // the line outlives the context that it was made with
		t.close()
		return context.Cause(ctx)
	}
	a.now = &clientLine{address: c.at(), conn: t.conn, open: map[uint64]*sent{}}
	go a.now.read(t.in, &c.tensors)
	return nil
}

func (l *clientLine) fine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken == nil
}

// register notes a call before it is sent.
func (l *clientLine) register(sequence uint64, s *sent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	l.open[sequence] = s
	s.count(func(n *RefStats) {
		n.Sent++
		n.UnderWay++
	})
	return nil
}

// read hears the ends of calls.
func (l *clientLine) read(in *bufio.Reader, pool *protos.TensorPool) {
	for {
		var r protos.ActorReceipt
		if err := request.Read(in, &r); err != nil {
			l.end(err)
			return
		}
		l.mu.Lock()
		s := l.open[r.Sequence]
		delete(l.open, r.Sequence)
		l.mu.Unlock()
		if s != nil {
			answer, err := openReceipt(&r, pool)
			s.end(answer, err)
		}
	}
}

// openReceipt returns the answer in a receipt, nil if there is none.
func openReceipt(r *protos.ActorReceipt, pool *protos.TensorPool) (*protos.Message, error) {
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	if r.Type == "" {
		return nil, nil
	}
	head, err := wire.Message(r.Type, r.Head)
	if err != nil {
		return nil, err
	}
	return protos.NewMessage(head, request.Tensors(pool, r.Vectors)...), nil
}

// end is the end of the line: what is under way is not known to have been handled.
func (l *clientLine) end(cause error) {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = cause
		if !errors.Is(cause, errClientClosed) {
			l.broken = fmt.Errorf("the line to the cluster through %s has broken: %w", l.address, cause)
		}
	}
	open := l.open
	l.open = map[uint64]*sent{}
	err := l.broken
	l.mu.Unlock()
	l.conn.Close() //nolint:errcheck // it is of no further use
	for _, s := range open {
		s.end(nil, fmt.Errorf("whether %s has handled the message is not known: %w", s.of, err))
	}
}

// end is the end of a call.
func (s *sent) end(answer *protos.Message, err error) {
	if !s.over.Swap(true) {
		s.answer, s.err = answer, err
	} else if answer != nil {
		answer.Release()
	}
	s.count(func(n *RefStats) {
		n.UnderWay--
		if err == nil {
			n.Handled++
		} else {
			n.Lost++
			n.Cause = err
		}
	})
	close(s.ended)
	<-s.of.window
}

func (s *sent) count(change func(*RefStats)) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.counts {
		change(&s.of.stats)
	}
}

// wait waits for the end of a call, as long as the context lets it. An error that comes when it no
// longer does is the context's too.
func (s *sent) wait(ctx context.Context, not string) (*protos.Message, error) {
	select {
	case <-s.ended:
	case <-ctx.Done():
		if !s.over.Swap(true) {
			return nil, fmt.Errorf("%s %s: %w", s.of, not, context.Cause(ctx))
		}
		<-s.ended // at this moment
	}
	if s.err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", s.err, context.Cause(ctx))
	}
	return s.answer, s.err
}
