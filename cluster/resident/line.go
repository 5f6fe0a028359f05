package resident

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// maxOnLine is how many calls of one line are under way at a time. No more are read meanwhile.
const maxOnLine = 8192

// line is a client's connection to actors, at the process that it leads to.
type line struct {
	of       *Service
	id       uint64
	receipts chan *protos.ActorReceipt
	slots    chan struct{} // one for each call that was read and whose receipt is not written
	gone     chan struct{} // closed when the client is

	mu   sync.Mutex
	open map[uint64]forwarded // by sequence
}

// forwarded is a call that is under way.
type forwarded struct {
	actor, node string
	connections uint64 // to the node, when the call was forwarded
}

// Attach serves a line until the client is gone.
func (r *Service) Attach(c *request.Caller, in *bufio.Reader) error {
	if err := c.May("send to actors", identity.Operator); err != nil {
		return err
	}
	if err := c.Done(); err != nil {
		return err
	}
	l := &line{
		of: r, receipts: make(chan *protos.ActorReceipt, maxOnLine), slots: make(chan struct{}, maxOnLine),
		gone: make(chan struct{}),
		open: map[uint64]forwarded{},
	}
	r.mu.Lock()
	r.lastLine++
	l.id = r.lastLine
	r.lines[l.id] = l
	r.mu.Unlock()
	var writing sync.WaitGroup
	writing.Go(func() { l.write(c) })
	l.read(in)
	r.mu.Lock()
	delete(r.lines, l.id)
	r.mu.Unlock()
	close(l.gone)
	writing.Wait()
	return nil
}

// read forwards calls, in their order.
func (l *line) read(in *bufio.Reader) {
	for {
		var call protos.ActorCall
		if err := request.Read(in, &call); err != nil {
			return
		}
		select {
		case l.slots <- struct{}{}:
		case <-l.of.config.Running.Done():
			return
		}
		call.Line = l.id
		l.forward(&call)
	}
}

// write tells the client the ends of its calls.
func (l *line) write(c *request.Caller) {
	for {
		select {
		case r := <-l.receipts:
			if proto.Size(r) > request.MaxMessage {
				r = &protos.ActorReceipt{Sequence: r.Sequence,
					Error: fmt.Sprintf("the answer has %d bytes; at most %d can be sent", proto.Size(r),
						request.MaxMessage)}
			}
			if err := request.Write(c.Conn, r); err != nil {
				c.Conn.Close() //nolint:errcheck // it is of no further use, and read hears of it
			}
			<-l.slots
		case <-l.gone:
			return
		}
	}
}

// forward hands a call over to its actor's node.
func (l *line) forward(call *protos.ActorCall) {
	f := forwarded{actor: call.Name, node: call.Node}
	if s, ok := l.of.node.Peer(call.Node); ok {
		f.connections = s.Connections
	}
	l.mu.Lock()
	_, twice := l.open[call.Sequence]
	if !twice {
		l.open[call.Sequence] = f
	}
	l.mu.Unlock()
	if twice { // which no client of ours does
		<-l.slots
		return
	}
	tensors := request.Tensors(l.of.config.Tensors, call.Vectors)
	call.Vectors = nil
	if call.Node == l.of.config.Node {
		l.of.take("", call, tensors)
		return
	}
	frame := wire.Frame{Kind: wire.User, Head: call, Tensors: tensors}
	if err := l.of.node.Send(call.Node, &frame); err != nil {
		frame.Release()
		l.end(&protos.ActorReceipt{Sequence: call.Sequence,
			Error: fmt.Sprintf("actor %s on node %s cannot be reached: %v", call.Name, call.Node, err)})
	}
}

// end tells the end of a call, once.
func (l *line) end(r *protos.ActorReceipt) {
	l.mu.Lock()
	_, open := l.open[r.Sequence]
	delete(l.open, r.Sequence)
	l.mu.Unlock()
	if open {
		l.receipts <- r // there is room: the call has a slot
	}
}

// lose ends all calls that which picks.
func (l *line) lose(which func(f forwarded) (why string)) {
	var lost []*protos.ActorReceipt
	l.mu.Lock()
	for sequence, f := range l.open {
		if why := which(f); why != "" {
			lost = append(lost, &protos.ActorReceipt{Sequence: sequence,
				Error: fmt.Sprintf("actor %s on node %s: %s", f.actor, f.node, why)})
		}
	}
	l.mu.Unlock()
	for _, r := range lost {
		l.end(r)
	}
}

// loseCalls ends all calls that which picks, on all lines.
func (r *Service) loseCalls(which func(f forwarded) (why string)) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.lines))
	r.mu.Unlock()
	for _, l := range all {
		l.lose(which)
	}
}

// Gone ends what a process owes that is gone.
func (r *Service) Gone(node, why string) {
	r.mu.Lock()
	for _, a := range r.asked {
		if a.node == node {
			a.end(nil)
		}
	}
	r.mu.Unlock()
	r.loseCalls(func(f forwarded) string {
		if f.node != node {
			return ""
		}
		return fmt.Sprintf("node %s is gone (%s)", node, why)
	})
}

// watchEvery is how soon calls are given up that a connection has taken with it.
const watchEvery = time.Second

// Watch gives up calls that were under way to or from a node whose connection has broken and was
// made again: nobody will tell their end.
func (r *Service) Watch() {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-r.config.Running.Done():
			return
		case <-t.C:
		}
		now := map[string]uint64{}
		for _, s := range r.node.Peers() {
			now[s.Peer.Name] = s.Connections
		}
		r.loseCalls(stale(now))
	}
}

// stale picks the calls that were forwarded on a connection before the present one, of which now
// counts how many there were with each node.
func stale(now map[string]uint64) func(f forwarded) string {
	return func(f forwarded) string {
		if f.connections == 0 || now[f.node] <= f.connections {
			return ""
		}
		return "whether the message was handled is not known, because the connection with the node has broken meanwhile"
	}
}

// take hands a call to an actor of this process. It comes from a process, or from a line of this
// one.
func (r *Service) take(from string, m *protos.ActorCall, tensors []*protos.Tensor) {
	c := &Call{Want: m, Done: func(answer *protos.Message, err error) { r.done(from, m, answer, err) }}
	switch {
	case protos.ActorCall_Verb_name[int32(m.Verb)] == "":
		release(tensors)
		c.refuse(fmt.Errorf("node %s does not know the verb %d: is it older than the others?", r.config.Node, m.Verb))
		return
	case m.Verb != protos.ActorCall_STOP:
		head, err := wire.Message(m.Type, m.Head)
		if err != nil {
			release(tensors)
			c.refuse(fmt.Errorf("actor %s on node %s: %w", m.Name, r.config.Node, err))
			return
		}
		c.Message = protos.NewMessage(head, tensors...)
	}
	r.host.Deliver(c)
}

// done tells the end of a call to the process whose line it came on.
func (r *Service) done(from string, m *protos.ActorCall, answer *protos.Message, err error) {
	receipt := &protos.ActorReceipt{Line: m.Line, Sequence: m.Sequence}
	var tensors []*protos.Tensor
	if answer != nil {
		defer answer.Release()
		if receipt.Type, receipt.Head, err = request.Seal(answer); err == nil {
			tensors = slices.Clone(answer.Tensors) // which the answer forgets
		}
	}
	if err != nil {
		receipt = &protos.ActorReceipt{Line: m.Line, Sequence: m.Sequence,
			Error: request.Text(err.Error(), request.MaxText)}
	}
	for _, t := range tensors {
		t.Retain()
	}
	if from == "" {
		r.receipt(receipt, tensors)
		return
	}
	frame := &wire.Frame{Kind: wire.User, Head: receipt, Tensors: tensors}
	lost := func(err error) {
		r.host.log("the end of a message to actor %s, to node %s: %v", m.Name, from, err)
	}
	err = r.node.TrySend(from, frame)
	switch {
	case errors.Is(err, transport.ErrQueueFull):
		// Calls are refused on the goroutine that reads the connection, which must go on.
		r.telling.Go(func() {
			if err := r.node.SendOn(r.config.Running, from, frame); err != nil {
				lost(err)
			}
		})
	case err != nil:
		frame.Release()
		lost(err)
	}
}

// receipt tells a line the end of a call.
func (r *Service) receipt(m *protos.ActorReceipt, tensors []*protos.Tensor) {
	r.mu.Lock()
	l := r.lines[m.Line]
	r.mu.Unlock()
	if l != nil {
		for _, t := range tensors {
			m.Vectors = append(m.Vectors, &protos.Vector{Values: append([]float32(nil), t.Data...)})
		}
		l.end(m)
	}
	release(tensors)
}

// release gives up tensors that nobody wants.
func release(tensors []*protos.Tensor) {
	for _, t := range tensors {
		t.Release()
	}
}
