package live_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// mesh is a run over several worlds, which share nothing: frames are encoded and decoded.
type mesh struct {
	hosts []int         // the world of each node, the coordinator's last
	make  []live.Config // of each world, its own
	// sending, if not nil, is called before a frame is taken; its error is the carrier's.
	sending func(from, node int, f *wire.Frame) error
	// carrying, if not nil, is called before a frame that was taken is carried, and may wait.
	carrying func(from, node int, f *wire.Frame)

	posted atomic.Int64 // tensors for which their receivers had memory ready

	mu     sync.RWMutex
	worlds []*live.World
	gone   []bool // worlds that are cut off

	running  sync.WaitGroup
	carried  sync.WaitGroup
	ends     []context.CancelCauseFunc // of each world
	ended    []chan struct{}           // closed when each has
	results  []live.Result
	failures []error
	halting  chan int // worlds that told the others to halt, if anybody asks
	halts    []int    // how often each world has told the others to halt
}

// carrier serves one world of a mesh. It has a lane for the control messages to each node and one
// for all others.
type carrier struct {
	mesh  *mesh
	from  int
	pool  protos.TensorPool
	lanes [][2]lane
}

// lane does what is put there, in its order.
type lane struct {
	mu      sync.Mutex
	waiting []func()
	busy    bool // a goroutine is at it
}

func (c *carrier) put(node int, kind wire.Kind, do func()) {
	l := &c.lanes[node][0]
	if kind != wire.User {
		l = &c.lanes[node][1]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting = append(l.waiting, do); !l.busy {
		l.busy = true
		c.mesh.carried.Go(l.empty)
	}
}

func (l *lane) empty() {
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.busy = false
			l.mu.Unlock()
			return
		}
		do := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		do()
	}
}

var _ live.Carrier = (*carrier)(nil)

// world returns the world that a node lives in, nil where it or the one that asks is gone.
func (m *mesh) world(from, node int) *live.World {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if to := m.hosts[node]; !m.gone[from] && !m.gone[to] {
		return m.worlds[to]
	}
	return nil
}

func (c *carrier) Send(node int, p *wire.Packet) error {
	f, err := p.Frame()
	if err != nil {
		return err
	}
	if c.mesh.sending != nil {
		if err := c.mesh.sending(c.from, node, &f); err != nil {
			return err
		}
	}
	if c.mesh.world(c.from, node) == nil {
		return fmt.Errorf("world %d is cut off: %w", c.mesh.hosts[node], live.ErrGone)
	}
	for i, t := range f.Tensors {
		f.Tensors[i] = c.pool.Copy(t.Data)
	}
	p.Release()
	c.put(node, f.Kind, func() { c.carry(node, &f) })
	return nil
}

// carry brings a frame to the world that its node lives in by now.
func (c *carrier) carry(node int, arrived *wire.Frame) {
	if c.mesh.carrying != nil {
		c.mesh.carrying(c.from, node, arrived)
	}
	w := c.mesh.world(c.from, node)
	if w == nil {
		for _, t := range arrived.Tensors {
			t.Release()
		}
		return
	}
	for i, t := range arrived.Tensors {
		if ready := w.Posted(node, arrived, i, len(t.Data)); ready != nil {
			copy(ready.Data, t.Data)
			t.Release()
			arrived.Tensors[i] = ready
			c.mesh.posted.Add(1)
		}
	}
	w.Deliver(node, arrived)
}

func (c *carrier) Changed(change world.MemberChange) error {
	lead := len(c.mesh.hosts) - 1
	c.put(lead, wire.Control, func() {
		if w := c.mesh.world(c.from, lead); w != nil {
			w.Change(change)
		}
	})
	return nil
}

func (c *carrier) Halt() {
	c.mesh.mu.Lock()
	c.mesh.halts[c.from]++
	worlds := slices.Clone(c.mesh.worlds)
	c.mesh.mu.Unlock()
	select {
	case c.mesh.halting <- c.from:
	default:
	}
	for _, w := range worlds {
		w.Halt()
	}
}

// build makes the world with a number, and places it.
func (m *mesh) build(t testing.TB, i int, config live.Config) *live.World {
	t.Helper()
	config.Hosted = func(node int) bool { return m.hosts[node] == i }
	config.Carrier = &carrier{mesh: m, from: i, lanes: make([][2]lane, len(m.hosts))}
	w, err := live.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Place(); err != nil {
		t.Fatal(err)
	}
	return w
}

// start places all worlds and lets them run; the function that it returns waits for them.
func (m *mesh) start(t testing.TB) (wait func()) {
	t.Helper()
	n := len(m.make)
	m.gone, m.halts = make([]bool, n), make([]int, n)
	m.results, m.failures = make([]live.Result, n), make([]error, n)
	for i := range m.make {
		w := m.build(t, i, m.make[i])
		m.mu.Lock()
		m.worlds = append(m.worlds, w)
		m.mu.Unlock()
	}
	m.ends, m.ended = make([]context.CancelCauseFunc, n), make([]chan struct{}, n)
	contexts := make([]context.Context, n)
	for i := range m.worlds {
		contexts[i], m.ends[i] = context.WithCancelCause(context.Background())
	}
	for i, w := range m.worlds {
		m.begin(contexts[i], i, w)
	}
	return func() {
		m.running.Wait()
		m.carried.Wait()
		for _, end := range m.ends {
			end(nil)
		}
		nothingLeft(t)
	}
}

// begin lets a world run. Its failure ends the others, unless it is cut off.
func (m *mesh) begin(ctx context.Context, i int, w *live.World) {
	ended := make(chan struct{})
	m.ended[i] = ended
	m.running.Go(func() {
		defer close(ended)
		m.results[i], m.failures[i] = w.Run(ctx)
		if err := m.failures[i]; err != nil && m.world(i, len(m.hosts)-1) != nil {
			for _, end := range m.ends {
				end(fmt.Errorf("world %d: %w", i, err))
			}
		}
	})
}

// replace ends a world that is cut off and gives its nodes another one.
func (m *mesh) replace(t testing.TB, i int, config live.Config) {
	t.Helper()
	m.ends[i](errors.New("the process is lost"))
	<-m.ended[i]
	w := m.build(t, i, config)
	ctx, cancel := context.WithCancelCause(context.Background())
	m.mu.Lock()
	m.worlds[i], m.gone[i], m.make[i] = w, false, config
	m.mu.Unlock()
	m.ends[i] = cancel
	m.begin(ctx, i, w)
}

// run lets the mesh happen without an error.
func (m *mesh) run(t testing.TB) {
	t.Helper()
	m.start(t)()
	if err := errors.Join(m.failures...); err != nil {
		t.Fatal(err)
	}
	for i, r := range m.results {
		if r.Now >= limit {
			t.Fatalf("world %d ended only at %v", i, r.Now)
		}
	}
}

// cut separates a world from all others.
func (m *mesh) cut(world int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone[world] = true
}

// total adds up what the worlds know of an edge.
func (m *mesh) total(from, to int32) (sum link.Stats) {
	for _, c := range m.make {
		s := c.Network.Edge(from, to).Stats()
		sum.Sent, sum.Delivered, sum.Dropped = sum.Sent+s.Sent, sum.Delivered+s.Delivered, sum.Dropped+s.Dropped
		sum.Control, sum.TookSum = sum.Control+s.Control, sum.TookSum+s.TookSum
	}
	return sum
}

// split spreads the nodes of a stage over worlds.
func (s *stage) split(hosts ...int) *mesh {
	m := &mesh{hosts: hosts, halting: make(chan int, 1)}
	for range slices.Max(hosts) + 1 {
		m.make = append(m.make, s.config())
	}
	return m
}

// log keeps events by node.
type log struct {
	mu     sync.Mutex
	events map[int][]actors.Event
}

func (l *log) Observe(_ time.Duration, node int, e actors.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == nil {
		l.events = map[int][]actors.Event{}
	}
	l.events[node] = append(l.events[node], e)
}
