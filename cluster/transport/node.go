package transport

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/identity"
	"github.com/gradwire/gradwire/cluster/naming"
	"github.com/gradwire/gradwire/cluster/protocol"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// The errors that a program may want to tell apart.
var (
	// ErrUnknown says that a peer has neither called nor has an address.
	ErrUnknown = errors.New("nothing is known of this peer: call Connect first")
	// ErrDown says that a peer is gone.
	ErrDown = errors.New("the peer is down")
	// ErrQueueFull says that there was no room in a peer's queue for Limits.Patience.
	ErrQueueFull = errors.New("the queue for this peer stayed full")
	// ErrClosed says that the node is closed or closing.
	ErrClosed = errors.New("the node is closed")
	// ErrLeft is why a peer is down that has taken its leave.
	ErrLeft = errors.New("the peer has left")
	// ErrRefused is why a peer is down if its connection broke and nobody listens at its address,
	// or if it knows a later incarnation of this node.
	ErrRefused = errors.New("the peer no longer takes calls")
	// ErrRestarted is why a peer is down if its next incarnation has called or answered.
	ErrRestarted = errors.New("the peer has restarted")
	// ErrAbsent is why a silent peer is suspended, absent or down.
	ErrAbsent = errors.New("nothing was heard of the peer")
	// ErrRemoved is why a peer is down that was removed.
	ErrRemoved = errors.New("the peer was removed")
)

// Limits bound what a node does and keeps. Each zero stands for its default.
type Limits struct {
	// QueueBytes is how much of what Send took may wait for one peer, 64 MiB by default. A frame
	// that is larger is taken when no other of its class waits.
	QueueBytes int
	// Backlog is how many times as much may wait of eager and of urgent packets, 32 by default. The
	// same holds for their number, of which 4096 may wait that Send took.
	Backlog int
	// Patience is how long Send waits for room, 10 s by default.
	Patience time.Duration
	// Frame is the largest size in bytes of the tensors of a frame that is received, 256 MiB
	// by default, at most 4 × wire.MaxValues.
	Frame int
	// Handshake is how long a caller may take to prove who it is, 5 s by default.
	Handshake time.Duration
	// Heartbeat is the time between two heartbeats, 250 ms by default.
	Heartbeat time.Duration
	// Suspend is after which silence a peer is suspended, six heartbeats by default.
	Suspend time.Duration
	// Absent is the silence after which a peer is absent, three times Suspend by default.
	Absent time.Duration
	// GiveUp is the silence after which a peer is down, ten times Suspend by default.
	GiveUp time.Duration
	// Backoff is the longest pause between two calls, 2 s by default.
	Backoff time.Duration
	// Drain is how long Close waits until everything has arrived, 5 s by default.
	Drain time.Duration
}

// Bounds that no configuration changes.
const (
	queueFrames = 4096 // of what Send took, that wait for one peer
	maxPeers    = 1024 // that are known at a time
	// maxHandshakes is how many callers may be about to prove who they are. Of more, those go first
	// that say nothing.
	maxHandshakes = 64
)

func (l *Limits) fill() error {
	preset(&l.QueueBytes, 64<<20)
	preset(&l.Backlog, 32)
	preset(&l.Patience, 10*time.Second)
	preset(&l.Frame, 256<<20)
	preset(&l.Handshake, 5*time.Second)
	preset(&l.Heartbeat, 250*time.Millisecond)
	preset(&l.Suspend, 6*l.Heartbeat)
	preset(&l.Absent, 3*l.Suspend)
	preset(&l.GiveUp, 10*l.Suspend)
	preset(&l.Backoff, 2*time.Second)
	preset(&l.Drain, 5*time.Second)
	if min(l.QueueBytes, l.Frame, l.Backlog) < 0 || l.Frame > 4*wire.MaxValues ||
		min(l.Heartbeat, l.Suspend, l.Patience, l.Handshake, l.Absent, l.GiveUp, l.Backoff, l.Drain) < 0 {
		return fmt.Errorf("transport: limits %+v, accepted are positive ones, for Frame at most %d", *l,
			4*wire.MaxValues)
	}
	return nil
}

// preset gives a limit that is not set its default.
func preset[T comparable](limit *T, value T) { *limit = cmp.Or(*limit, value) }

// Config is what a node is.
type Config struct {
	// Name is unique among the processes of a cluster; package naming says what it may be. With an
	// Identity it is the one in the certificate, and may be left out.
	Name string
	// Incarnation is larger than in all earlier processes of this name; not 0.
	Incarnation uint64
	// Protocol is the range of versions of the protocol that the process speaks; the zero Range
	// stands for this build's range.
	Protocol protocol.Range
	// Address is where to listen, "127.0.0.1:0" for instance; empty for a node that calls
	// but cannot be called, such as a client's.
	Address string
	// Advertise is where others call, port 0 standing for that of Address; empty stands for the
	// address that Listen got, if that
	// names a host, and otherwise says that nobody can.
	Advertise string
	// Identity proves who this is; nil stands for connections without TLS, which are for
	// loopback addresses only.
	Identity *identity.Identity
	// SocketsOnly has connections with processes of this machine go over sockets. Otherwise two of
	// one user share memory, and the socket only says that the other is gone (Linux).
	SocketsOnly bool
	// Tensors is where the tensors of received frames come from.
	Tensors *protos.TensorPool
	// Receive takes a frame that has arrived, and with it one reference to each of its
	// tensors. The frame is good until Receive returns, its head and tensors longer.
	// Receive is called for one frame of a peer at a time, on the goroutine that reads from it:
	// the next one waits, and in the end the peer's sender does. It must not call Close, nor wait
	// for another frame of this peer, nor remove it and wait for room for what is sent to it then.
	// It may Send; two nodes whose queues for each other are both full, and whose Receive waits for
	// room there, wait for Limits.Patience.
	Receive func(from Peer, f *wire.Frame)
	// Posted, if not nil, is asked for the memory of a tensor with a number of values when the head
	// of its frame has arrived, with a reference for the frame; nil stands for Tensors. Of small
	// tensors it is not asked. It is called on the goroutine that reads from the peer, must not
	// wait, and is followed by Receive unless the connection breaks.
	Posted func(f *wire.Frame, tensor, values int) *protos.Tensor
	// Changed, if not nil, is told of every change of a peer's state, one at a time and in
	// order, on a separate goroutine. The reason is nil for Up.
	Changed func(p Peer, state State, reason error)
	// Protocols take connections that were made by [Open] for protocols other than the actors':
	// identity.Gossip is for nodes alone, as are protocols unknown to identity;
	// identity.Clients is for every role, and its function decides what which may do. A
	// function owns the connection it is given, and must return soon.
	Protocols map[string]func(c net.Conn, from Peer)
	Limits    Limits
}

// Node is a process's end of its connections, one with each peer.
//
// A message is handled by its receiver at most once, and in the order of sending within
// its class: urgent are system messages and control messages without tensors, bulk all others.
// What a connection had under way when it broke, and the peer has not read, is sent again on the
// next one to the same incarnation, and so is what waited. Every message that Send took is
// counted as delivered, when the peer says that it was handled, or as lost.
type Node struct {
	config   Config
	listener *net.TCPListener
	began    time.Time
	attempts atomic.Uint64
	closing  atomic.Bool
	identity atomic.Pointer[identity.Identity] // nil without TLS
	stop     context.Context
	halt     context.CancelFunc
	work     sync.WaitGroup
	news     news

	mu      sync.RWMutex
	peers   map[string]*peer
	removed map[string]<-chan struct{} // peers of whose connection the end has not come yet: when it does

	// Callers that did not become peers: strangers did not prove that they belong to the cluster,
	// or spoke another protocol; malformed proved that, but not who they are, or did not say so as
	// nodes do; double had a connection already; stale were earlier incarnations; crowds were too
	// many at a time; others wanted another node, or were one peer too many; accept were gone.
	refused struct{ stranger, malformed, double, stale, crowd, accept, other atomic.Uint64 }
}

// Listen returns a node that takes calls. It makes none until Connect or Send.
func Listen(config Config) (*Node, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Protocol == (protocol.Range{}) {
		config.Protocol = protocol.Spoken()
	}
	n := &Node{config: config, began: time.Now(), peers: map[string]*peer{},
		removed: map[string]<-chan struct{}{}}
	n.identity.Store(config.Identity)
	if err := n.listen(); err != nil {
		return nil, err
	}
	n.stop, n.halt = context.WithCancel(context.Background())
	n.news.ready = sync.NewCond(&n.news.mu)
	if n.listener != nil {
		n.work.Go(n.serve)
	}
	n.work.Go(n.keep)
	n.work.Go(func() { n.news.tell(config.Changed) })
	return n, nil
}

func (n *Node) listen() error {
	if n.config.Address == "" {
		return nil
	}
	if err := mayBePlain(n.config.Identity, n.config.Address); err != nil {
		return err
	}
	l, err := net.Listen("tcp", n.config.Address)
	if err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	n.listener = l.(*net.TCPListener)
	at := n.listener.Addr().(*net.TCPAddr)
	switch host, port, err := net.SplitHostPort(n.config.Advertise); {
	case n.config.Advertise == "" && !at.IP.IsUnspecified():
		n.config.Advertise = at.String()
	case err == nil && port == "0":
		n.config.Advertise = net.JoinHostPort(host, strconv.Itoa(at.Port))
	}
	return nil
}

func (c *Config) check() error {
	if c.Identity != nil {
		c.Name = cmp.Or(c.Name, c.Identity.Name())
		if c.Name != c.Identity.Name() {
			return fmt.Errorf("transport: name %.80q, the certificate says %q", c.Name, c.Identity.Name())
		}
	}
	switch {
	case naming.Problem(c.Name) != "":
		return fmt.Errorf("transport: %.80q %s", c.Name, naming.Problem(c.Name))
	case c.Incarnation == 0:
		return errors.New("transport: incarnation 0, accepted are larger ones")
	case c.Tensors == nil || c.Receive == nil:
		return errors.New("transport: Tensors and Receive must be set")
	case len(c.Advertise) > maxGreeting/2:
		return fmt.Errorf("transport: an address of %d bytes, accepted are %d", len(c.Advertise), maxGreeting/2)
	case c.Protocols[identity.Actors] != nil:
		return fmt.Errorf("transport: protocol %s is the node's own", identity.Actors)
	case binary.NativeEndian.Uint16([]byte{1, 0}) != 1:
		return errors.New("transport: this machine keeps the high byte of a number first, which is not supported")
	}
	return c.Limits.fill()
}

// mayBePlain refuses addresses to which nothing may be said without TLS, for which the identity is
// nil.
func mayBePlain(id *identity.Identity, address string) error {
	if id != nil {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("transport: %s without TLS: accepted are loopback addresses", address)
	}
	return nil
}

// Advertised is where others call; empty if that is not known.
func (n *Node) Advertised() string { return n.config.Advertise }

// Address is where the node listens; empty if it does not.
func (n *Node) Address() string {
	if n.listener == nil {
		return ""
	}
	return n.listener.Addr().String()
}

// enter returns the peer of a name, new if need be; nil if there are too many.
func (n *Node) enter(name string) *peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[name]
	if p == nil && len(n.peers) < maxPeers {
		p = &peer{node: n, name: name, about: Peer{Name: name}, heard: time.Now(), before: n.removed[name]}
		n.peers[name] = p
	}
	return p
}

func (n *Node) peer(name string) *peer {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.peers[name]
}

// all returns the peers, by name.
func (n *Node) all() []*peer {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.SortedFunc(maps.Values(n.peers), func(p, q *peer) int { return cmp.Compare(p.name, q.name) })
}

// Connect tells where a peer can be called and has it called until it is up or
// Limits.GiveUp is over. It does not wait. A peer that is down is given another chance.
func (n *Node) Connect(name, address string) error {
	if naming.Problem(name) != "" || name == n.config.Name {
		return fmt.Errorf("transport: %.80q is no name of another node; accepted are 1 to %d letters, digits, dots, "+
			"dashes and underscores", name, naming.Max)
	}
	if err := mayBePlain(n.config.Identity, address); err != nil {
		return err
	}
	p := n.enter(name)
	if p == nil {
		return fmt.Errorf("transport: to %s: %d peers are known, which is as many as can be", name, maxPeers)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.removed {
		return fmt.Errorf("transport: to %s: %w", name, ErrRemoved)
	}
	if n.closing.Load() {
		return fmt.Errorf("transport: to %s: %w", name, ErrClosed)
	}
	p.address = address
	if p.state == Down {
		p.state = Unknown
	}
	p.want(false)
	return nil
}

// Send hands a frame over for a peer. If it returns nil it has taken over one reference to each
// of the frame's tensors, the frame itself may be used again, and the message will be
// counted as delivered or as lost; otherwise all stays with the caller. Where nothing waits, the
// caller's goroutine writes, but never waits for the network; where the queue is full, Send waits
// for at most Limits.Patience and then returns an error that wraps ErrQueueFull.
func (n *Node) Send(name string, f *wire.Frame) error { return n.pack(name, f, true) }

// TrySend is Send, but where the queue is full it returns the error at once.
func (n *Node) TrySend(name string, f *wire.Frame) error { return n.pack(name, f, false) }

// SendOn is Send over however slow a network: where the queue is full it tries again until going
// ends. If it returns an error it has released the frame's tensors.
func (n *Node) SendOn(going context.Context, name string, f *wire.Frame) error {
	err := n.Send(name, f)
	for errors.Is(err, ErrQueueFull) && going.Err() == nil {
		err = n.Send(name, f)
	}
	if err != nil {
		f.Release()
	}
	return err
}

// SendPacket is TrySend of a packet, which stays with the caller if there is an error. Packets of
// class wire.Eager wait in one order with what Send took, but in other room: see Limits.Backlog.
func (n *Node) SendPacket(name string, p *wire.Packet) error { return n.send(name, p, false) }

func (n *Node) pack(name string, f *wire.Frame, patient bool) error {
	packet, err := wire.Pack(f, wire.Bulk)
	if err != nil {
		return fmt.Errorf("transport: to %.80s: %w", name, err)
	}
	if err = n.send(name, packet, patient); err != nil {
		packet.Recycle()
	}
	return err
}

func (n *Node) send(name string, packet *wire.Packet, patient bool) error {
	err := ErrUnknown
	if p := n.peer(name); p != nil {
		err = p.send(packet, patient)
	}
	if err != nil {
		return fmt.Errorf("transport: to %.80s: %w", name, err)
	}
	return nil
}

// Remove gives a peer up, as when membership says that it is gone: it is down,
// what waits for it is lost, and its counters are forgotten. If it calls, it is a peer again, once
// Receive has returned of what has arrived of it.
func (n *Node) Remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[name]
	if p == nil {
		return
	}
	delete(n.peers, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = true
	p.down(ErrRemoved)
	if c := p.conn; c != nil {
		n.removed[name] = c.done
		n.work.Go(func() { n.forget(name, c.done) })
	}
}

// forget waits for the end of a removed peer's connection.
func (n *Node) forget(name string, end <-chan struct{}) {
	<-end
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.removed[name] == end {
		delete(n.removed, name)
	}
}

// Open makes a connection as [Open] does, with the node's identity.
func (n *Node) Open(ctx context.Context, address, protocol string) (net.Conn, Peer, error) {
	return Open(ctx, n.identity.Load(), address, protocol)
}

// Open makes a connection for a protocol that the node at the address has in its Config.Protocols,
// and tells which node that is; without TLS, for which the identity is nil and the address a
// loopback one, its name is not known. A node that refuses the certificate or the protocol says so,
// with TLS 1.3, in the error of the first Read.
func Open(ctx context.Context, id *identity.Identity, address, protocol string) (net.Conn, Peer, error) {
	if err := mayBePlain(id, address); err != nil {
		return nil, Peer{}, err
	}
	s, err := connect(ctx, id, address, protocol)
	if err != nil {
		return nil, Peer{}, fmt.Errorf("transport: %s at %s: %w", protocol, address, err)
	}
	to, err := s.other()
	if err != nil {
		s.tcp.Close() //nolint:errcheck // it is of no use
		return nil, Peer{}, fmt.Errorf("transport: %s at %s: %w", protocol, address, err)
	}
	return s, to, nil
}

// Renew has connections that are made from now on use another identity of the same node.
func (n *Node) Renew(id *identity.Identity) error {
	before := n.identity.Load()
	if before == nil {
		return errors.New("transport: a node without an identity cannot get one")
	}
	if err := id.Succeeds(before); err != nil {
		return err
	}
	n.identity.Store(id)
	return nil
}

// Close takes leave of all peers, once what waits for them has arrived, but after
// Limits.Drain at the latest. It returns when all goroutines of the node have ended, and an
// error that says how many messages were lost meanwhile.
func (n *Node) Close() error {
	if n.closing.Swap(true) {
		n.work.Wait()
		return nil
	}
	if n.listener != nil {
		n.listener.Close() //nolint:errcheck // it takes no calls in either case
	}
	before := n.lost()
	patience := time.NewTimer(n.config.Limits.Drain)
	defer patience.Stop()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for drained := false; !drained && !n.quiet(); {
		select {
		case <-look.C:
		case <-patience.C:
			drained = true
		}
	}
	n.halt()
	for _, p := range n.all() {
		p.abandon()
	}
	n.news.end()
	n.work.Wait()
	if lost := n.lost(); lost > before {
		return fmt.Errorf("transport: %d messages were lost when node %s closed", lost-before, n.config.Name)
	}
	return nil
}

// lost is how many messages are lost for good. A connection's count once it has ended.
func (n *Node) lost() (lost uint64) {
	for _, p := range n.all() {
		p.mu.Lock()
		lost += p.lost
		p.mu.Unlock()
	}
	return lost
}

// quiet has all connections take their leave, and reports whether they have.
func (n *Node) quiet() bool {
	quiet := true
	for _, p := range n.all() {
		p.mu.Lock()
		p.wake()
		if c := p.conn; c != nil {
			quiet = false
			c.farewellDue = true
			p.pump(c)
			continue
		}
		quiet = quiet && (!p.dialing || !p.unsent())
		p.mu.Unlock()
	}
	return quiet
}

// abandon ends what is left when the node closes.
func (p *peer) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	if p.conn != nil {
		p.conn.close(ErrClosed)
	}
}
