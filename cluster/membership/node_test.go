package membership

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patienceOfTests is how long an event may take that must come.
const patienceOfTests = 2 * time.Minute

var testKey = bytes.Repeat([]byte("k"), keySize)

func TestMain(m *testing.M) {
	if name := os.Getenv(childName); name != "" {
		os.Exit(child(name))
	}
	flag.Parse()
	// Most tests wait, for others than the processor: more of them than there are cores go on at a
	// time.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	if code == 0 {
		code = leftOver()
	}
	os.Exit(code)
}

// leftOver says whether goroutines are left when all tests are over. What memberlist waits for
// after a shutdown ends within awarenessFactor probes.
func leftOver() int {
	var err error
	for end := time.Now().Add((awarenessFactor + 2) * probeInterval); time.Now().Before(end); {
		if err = goleak.Find(); err == nil {
			return 0
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// brief says whether tests leave out what takes long by its nature: CI runs that too, by setting
// GRADWIRE_LENGTHY.
func brief() bool { return os.Getenv("GRADWIRE_LENGTHY") == "" }

var addresses atomic.Uint32

// loopback returns an address that no other node of a test has, nor the near end of a connection,
// so that a node can come back to it.
func loopback() string {
	if runtime.GOOS != "linux" { // elsewhere there is one address
		return "127.0.0.1:0"
	}
	n := addresses.Add(1)
	return fmt.Sprintf("127.%d.%d.%d:0", 1+os.Getpid()%250, n/250, 1+n%250)
}

// eventually waits until something holds of a node; if it does not the test goes on, as other
// goroutines of it may.
func (n *node) eventually(what string, holds func() bool) {
	n.tb.Helper()
	for end := time.Now().Add(patienceOfTests); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.tb.Errorf("%s in vain: %s; its view is %v", n.name, what, n.names())
			return
		}
	}
}

// eventually waits until something holds.
func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for end := time.Now().Add(patienceOfTests); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("in vain: %s", what)
		}
	}
}

// wires is a network of which parts can be cut off from each other.
type wires struct {
	mu    sync.Mutex
	sides map[string]int // of addresses; those on different sides do not hear each other
}

func (w *wires) split(side int, addresses ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sides == nil {
		w.sides = map[string]int{}
	}
	for _, a := range addresses {
		w.sides[a] = side
	}
}

func (w *wires) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sides = nil
}

func (w *wires) cut(a, b string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sides[a] != w.sides[b]
}

// packets is a socket on those wires.
type packets struct {
	net.PacketConn
	own   string
	wires *wires
}

func (p *packets) WriteTo(b []byte, to net.Addr) (int, error) {
	if p.wires.cut(p.own, to.String()) {
		return len(b), nil
	}
	return p.PacketConn.WriteTo(b, to)
}

// port is the TCP side of a process: plain connections, all of them gossip.
type port struct {
	listener net.Listener
	own      string
	conns    chan net.Conn
	wires    *wires
	running  sync.WaitGroup
	closing  chan struct{}
}

func openPort(tb testing.TB, address string, w *wires) *port {
	tb.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	p := &port{listener: l, own: l.Addr().String(), conns: make(chan net.Conn), wires: w, closing: make(chan struct{})}
	p.running.Go(p.accept)
	return p
}

func (p *port) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		select {
		case p.conns <- c:
		case <-p.closing:
			_ = c.Close()
		}
	}
}

func (p *port) close() {
	close(p.closing)
	_ = p.listener.Close()
	p.running.Wait()
}

func (p *port) Conns() <-chan net.Conn { return p.conns }

func (p *port) Dial(address string, timeout time.Duration) (net.Conn, error) {
	if p.wires.cut(p.own, address) {
		return nil, errors.New("no route")
	}
	return net.DialTimeout("tcp", address, timeout)
}

// node is a member under test.
type node struct {
	*Members
	tb      testing.TB
	name    string
	address string
	port    *port
	events  chan Event
}

// spec says what is special about a node.
type spec struct {
	address     string
	seeds       []string
	incarnation uint64
	wires       *wires
	pace        time.Duration // of the protocol, by default the usual
	patience    time.Duration // of Join, by default patienceOfTests
	change      func(*Config)
	listen      func(netip.AddrPort) (net.PacketConn, error) // by default Join's
}

// start returns a member, or the error of its Join.
func start(tb testing.TB, name string, s spec) (*node, error) {
	tb.Helper()
	if s.address == "" {
		s.address = loopback()
	}
	if s.wires == nil {
		s.wires = &wires{}
	}
	n := &node{tb: tb, name: name, port: openPort(tb, s.address, s.wires), events: make(chan Event, 1000)}
	n.address = n.port.own
	c := Config{
		Name: name, Bind: n.address, Seeds: s.seeds, Key: testKey, Label: "test",
		Meta: Meta{Role: "worker", Incarnation: max(s.incarnation, 1), Cores: 2,
			Labels: map[string]string{"zone": name}},
		Streams: n.port, Notify: func(e Event) { n.events <- e }, pace: s.pace,
	}
	if s.change != nil {
		s.change(&c)
	}
	if s.listen == nil {
		s.listen = listen
	}
	if s.patience == 0 {
		s.patience = patienceOfTests
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.patience)
	defer cancel()
	var err error
	n.Members, err = join(ctx, c, func(a netip.AddrPort) (net.PacketConn, error) {
		conn, err := s.listen(a)
		return &packets{conn, n.address, s.wires}, err
	})
	if err != nil {
		n.port.close()
		return nil, err
	}
	tb.Cleanup(n.crash)
	return n, nil
}

func mustStart(tb testing.TB, name string, s spec) *node {
	tb.Helper()
	n, err := start(tb, name, s)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// crash ends a node without a word.
func (n *node) crash() {
	if n.port == nil {
		return
	}
	if err := n.Shutdown(); err != nil {
		n.tb.Error(err)
	}
	n.port.close()
	n.port = nil
}

// next returns the next event.
func (n *node) next() Event {
	n.tb.Helper()
	select {
	case e := <-n.events:
		return e
	case <-time.After(patienceOfTests):
		n.tb.Fatalf("%s waits in vain for an event; its view is %v", n.name, n.names())
		return Event{}
	}
}

// await returns the next event, which must be of this kind and node.
func (n *node) await(kind Kind, name string) Event {
	n.tb.Helper()
	e := n.next()
	if e.Kind != kind || e.Member.Name != name {
		n.tb.Fatalf("%s heard that %s %s, want that %s %s", n.name, e.Member.Name, e.Kind, name, kind)
	}
	return e
}

// awaitAll takes as many events as there are names, one of this kind for each.
func (n *node) awaitAll(kind Kind, names ...string) {
	n.tb.Helper()
	for left := slices.Clone(names); len(left) > 0; {
		e := n.next()
		i := slices.Index(left, e.Member.Name)
		if e.Kind != kind || i < 0 {
			n.tb.Fatalf("%s heard that %s %s, want that %v %s", n.name, e.Member.Name, e.Kind, left, kind)
		}
		left = slices.Delete(left, i, i+1)
	}
}

func (n *node) names() []string {
	var names []string
	for _, m := range n.View().Members {
		names = append(names, m.Name)
	}
	return names
}

// cluster starts nodes a, b, c…, the first being the seed, and has them all hear of each other.
func cluster(tb testing.TB, n int, w *wires) []*node { return clusterAt(tb, n, w, 1) }

// clusterAt is cluster at another pace.
func clusterAt(tb testing.TB, n int, w *wires, pace time.Duration) []*node {
	tb.Helper()
	var nodes []*node
	var names []string
	for i := range n {
		s := spec{wires: w, pace: pace}
		if i > 0 {
			s.seeds = []string{nodes[0].address}
		}
		nodes = append(nodes, mustStart(tb, string(rune('a'+i)), s))
		names = append(names, nodes[i].name)
	}
	for i, n := range nodes {
		n.awaitAll(Joined, slices.Delete(slices.Clone(names), i, i+1)...)
	}
	return nodes
}

func describe(v View) string {
	s := ""
	for _, m := range v.Members {
		s += fmt.Sprintf("%s %s %+v\n", m.Name, m.Gossip, m.Meta)
	}
	return s
}
