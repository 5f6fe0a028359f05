// Package mesh is the data path between the worlds of a run in several processes. It knows which
// process hosts which node, and which world belongs to a run's number.
//
// A frame for an actor of a run names its receiver. The mesh sends it to the process of that
// receiver's node, where the mesh of that process delivers it to the run's world. All other frames,
// with which processes agree on runs, name no receiver; Config.Unaddressed takes them.
package mesh

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Config is what a mesh is for.
type Config struct {
	// Name is this process's.
	Name string
	// Unaddressed takes frames that are for no actor of a run, with one reference to each tensor.
	// It is called as transport.Config.Receive is.
	Unaddressed func(from transport.Peer, f *wire.Frame)
	// Log is told of messages that could not be sent.
	Log func(format string, args ...any)
}

// Mesh leads frames to the worlds of this and of other processes. It may be used by many
// goroutines.
type Mesh struct {
	config Config
	node   atomic.Pointer[transport.Node]

	mu   sync.Mutex                      // held while runs are replaced
	runs atomic.Pointer[map[uint64]*Run] // by number; never written
}

// New returns a mesh without runs. Its Receive and Posted are for the transport.Config of the node
// that Use is then called with.
func New(config Config) *Mesh {
	m := &Mesh{config: config}
	m.runs.Store(&map[uint64]*Run{})
	return m
}

// Use says how other processes are reached. It must be called before a run is entered.
func (m *Mesh) Use(node *transport.Node) { m.node.Store(node) }

// Enter makes a run known, so that frames reach its world once it has one. It reports false if a
// run of that number is known already.
func (m *Mesh) Enter(r *Run) bool {
	return m.change(r, func(runs map[uint64]*Run) bool {
		if runs[r.number] != nil {
			return false
		}
		runs[r.number] = r
		return true
	})
}

// Leave forgets a run that was entered. What arrives for it from then on is released.
func (m *Mesh) Leave(r *Run) {
	m.change(r, func(runs map[uint64]*Run) bool {
		delete(runs, r.number)
		return true
	})
}

func (m *Mesh) change(r *Run, do func(runs map[uint64]*Run) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	runs := maps.Clone(*m.runs.Load())
	if !do(runs) {
		return false
	}
	m.runs.Store(&runs)
	return true
}

// Receive delivers a frame of another process to the world that it is for.
func (m *Mesh) Receive(from transport.Peer, f *wire.Frame) {
	if f.Target == "" {
		m.config.Unaddressed(from, f)
		return
	}
	if w, node := m.home(f); w != nil {
		w.Deliver(node, f)
		return
	}
	f.Release()
}

// Posted asks the world that a frame is for where the values of a tensor belong.
func (m *Mesh) Posted(f *wire.Frame, tensor, values int) *protos.Tensor {
	if w, node := m.home(f); w != nil {
		return w.Posted(node, f, tensor, values)
	}
	return nil
}

// home returns the world and the node that a frame is for; nil if there is none.
func (m *Mesh) home(f *wire.Frame) (w *live.World, node int) {
	r := (*m.runs.Load())[f.Run]
	if r == nil {
		return nil, 0
	}
	h := r.home.Load()
	if h == nil {
		return nil, 0
	}
	name, _, _ := strings.Cut(f.Target, "/") // the id of an actor begins with the name of its node
	i, known := h.nodes[name]
	if !known {
		return nil, 0
	}
	return h.world, int(i)
}
