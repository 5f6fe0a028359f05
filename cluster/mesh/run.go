package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Run is a run as one of its processes sees it. It carries the messages of the run's world here to
// the worlds of other processes.
type Run struct {
	mesh   *Mesh
	number uint64
	where  []string // the process of each node, and of the coordinator as the last one
	needed func(process string) bool
	home   atomic.Pointer[home]

	mu      sync.Mutex
	dropped map[string]uint64 // messages for each other process that were given up because it was silent
}

// home is where frames of other processes are delivered.
type home struct {
	world *live.World
	nodes map[string]int32 // positions, by name
}

var _ live.Carrier = (*Run)(nil)

// Run returns the run of a number, which every process of it knows by that. where names the process
// of each node, by position, and of the coordinator as the last one: the process that conducts the
// run. needed reports whether messages for a process that is silent must be kept
// for it, because the run waits until it is heard of again.
func (m *Mesh) Run(number uint64, where []string, needed func(process string) bool) *Run {
	return &Run{
		mesh: m, number: number, where: where, needed: needed, dropped: map[string]uint64{},
	}
}

// Number distinguishes the run from others that its processes take part in.
func (r *Run) Number() uint64 { return r.number }

// Lead is the process that conducts the run.
func (r *Run) Lead() string { return r.where[len(r.where)-1] }

// Attach delivers from now on what arrives for the nodes of the run: to a world, which has been
// placed. names are the positions of all nodes.
func (r *Run) Attach(w *live.World, names map[string]int32) { r.home.Store(&home{w, names}) }

// World is the run's world here; nil before Attach.
func (r *Run) World() *live.World {
	if h := r.home.Load(); h != nil {
		return h.world
	}
	return nil
}

// Hosts reports whether a node lives in this process.
func (r *Run) Hosts(node int) bool { return r.where[node] == r.mesh.config.Name }

// Host is the process of a node.
func (r *Run) Host(node int) string { return r.where[node] }

// NodesOf are the nodes, without the coordinator, that live in a process.
func (r *Run) NodesOf(process string) (nodes []int) {
	for i, where := range r.where[:len(r.where)-1] {
		if where == process {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// Others are the other processes of the run, once each, by name.
func (r *Run) Others() []string {
	names := slices.Compact(slices.Sorted(slices.Values(r.where)))
	return slices.DeleteFunc(names, func(name string) bool { return name == r.mesh.config.Name })
}

// Peer reports whether there is a connection with another process over which it was heard of in
// time, and how many messages for it were lost: on connections, which runs share, and in this run
// because the process was silent and its queue full.
func (r *Run) Peer(process string) (up bool, lost uint64) {
	peer, _ := r.mesh.node.Load().Peer(process)
	r.mu.Lock()
	defer r.mu.Unlock()
	return peer.State == transport.Up, peer.Lost + r.dropped[process]
}

// Up is the first result of Peer.
func (r *Run) Up(process string) bool {
	up, _ := r.Peer(process)
	return up
}

// RoundTrip is what heartbeats take to the process of a node and back; 0 if that is not known.
func (r *Run) RoundTrip(node int) time.Duration {
	peer, _ := r.mesh.node.Load().Peer(r.where[node])
	return peer.RoundTrip
}

// reachPatience is how long a process may take to connect with all others of a run.
const reachPatience = 10 * time.Second

// Reach waits until there is a connection with each other process of the run but those that are
// gone: what is sent to one without would be lost. It returns the cause where ctx ends, and an
// error after ten seconds.
func (r *Run) Reach(ctx context.Context, gone []string) error {
	patience := time.NewTimer(reachPatience)
	defer patience.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for _, name := range r.Others() {
		for !slices.Contains(gone, name) && !r.Up(name) {
			select {
			case <-look.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-patience.C:
				return fmt.Errorf("there is no connection with process %s, which takes part as well", name)
			}
		}
	}
	return nil
}

// Send sends a packet of the world here to the process of its node. It returns an error that wraps
// live.ErrGone where that process is gone, or is silent and not needed.
func (r *Run) Send(node int, p *wire.Packet) error {
	p.SetRun(r.number)
	to := r.where[node]
	err := r.mesh.node.Load().SendPacket(to, p)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrDown), errors.Is(err, transport.ErrUnknown), errors.Is(err, transport.ErrClosed):
		return fmt.Errorf("%w: %w", live.ErrGone, err)
	case errors.Is(err, transport.ErrQueueFull) && !r.Up(to) && !r.needed(to):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.dropped[to]++
		return fmt.Errorf("%w for now: %w", live.ErrGone, err)
	}
	return err
}

// Changed tells the process that conducts the run that a node of this process has gone, leaves or
// is there.
func (r *Run) Changed(c world.MemberChange) error {
	p, err := packed(&protos.NodeChanged{Node: int32(c.Node), Present: c.Present, Leaving: c.Leaving,
		Departed: c.Departed})
	if err != nil {
		return err
	}
	return r.Send(len(r.where)-1, p)
}

// packed is a message to another process about a run.
func packed(m proto.Message) (*wire.Packet, error) {
	return wire.Pack(&wire.Frame{Kind: wire.KindOf(m), Head: m}, wire.Eager)
}

// Halt tells all other processes that the part of the run's nodes is over.
func (r *Run) Halt() { r.Tell(r.Others(), &protos.HaltRun{}) }

// Tell tells some processes of the run something, behind the packets that were sent them before if
// it is no control message.
func (r *Run) Tell(processes []string, m proto.Message) {
	for _, name := range processes {
		p, err := packed(m)
		if err == nil {
			p.SetRun(r.number)
			err = r.mesh.node.Load().SendPacket(name, p)
		}
		if err != nil {
			r.mesh.config.Log("run %x: %v", r.number, err)
		}
	}
}
