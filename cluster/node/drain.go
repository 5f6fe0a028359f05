package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/protos"
)

// A process that is stopped drains before it leaves: no run begins on it any more, the runs that it
// conducts are saved once more, and its nodes in the runs of others hand over what they hold.

const (
	// drainPatience bounds all this, and savePatience how long the runs are saved.
	drainPatience = 10 * time.Second
	savePatience  = 5 * time.Second
	// saveEvery is how often a process looks whether a run is saved, and savePause is the pause after a
	// cut that came to nothing.
	saveEvery = 5 * time.Millisecond
	savePause = 50 * time.Millisecond
)

// drain prepares the end of this process.
func (p *process) drain() {
	p.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drainPatience)
	defer cancel()
	var draining sync.WaitGroup
	draining.Go(func() {
		if err := p.members.Drain(ctx); err != nil {
			p.log("%v", err) // the others may place a run here
		}
	})
	for _, c := range p.conductors() {
		draining.Go(func() {
			if c.isSaved() && c.saveLast(ctx, p.config.Name) && p.holders.Holds(c.message.Submission) {
				if err := p.holders.Commit(ctx, c.message.Submission); err != nil {
					c.log("no other process has the state of the run yet: %v", err)
				}
			}
		})
	}
	p.leaveRuns(ctx)
	draining.Wait()
}

// placeable are the members of the cluster on which runs can be placed.
func (p *process) placeable() []membership.Member {
	p.mu.Lock()
	leavers := maps.Clone(p.leavers)
	p.mu.Unlock()
	return slices.DeleteFunc(p.present(), func(m membership.Member) bool {
		return m.Leaves || leavers[m.Name] == m.Meta.Incarnation || m.Name == p.config.Name && p.draining.Load()
	})
}

// errVoid means that a cut came to nothing, because nodes came or went meanwhile.
var errVoid = errors.New("nodes came or went meanwhile")

// saveLast saves the run because a process leaves, and reports whether it could. The nodes handle
// nothing from then on, so the run loses no step if it goes on elsewhere.
func (c *conductor) saveLast(ctx context.Context, leaver string) bool {
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	c.drains.Store(true)
	err := c.cutLast(ctx)
	if err == nil {
		c.folder.Lock()
		err = c.stage.AwaitSaved()
		c.folder.Unlock()
	}
	if err != nil {
		c.drains.Store(false)
		c.World().CutNow(false)
		c.log("is not saved before process %s leaves: %v", leaver, err)
		return false
	}
	at := time.Duration(c.storedAt.Load()).Round(time.Millisecond)
	c.log("is saved at %v, because process %s leaves", at, leaver)
	return true
}

// cutLast makes the last cut. If it comes to nothing, an ordinary one follows, in which nodes that leave
// can hand over what they hold.
func (c *conductor) cutLast(ctx context.Context) error {
	for last := true; ; last = !last {
		err := c.awaitStored(ctx, c.World().CutNow(last))
		if err == nil && last || err != nil && !errors.Is(err, errVoid) || len(c.process.placeable()) == 0 {
			return err
		}
		if err := pause(ctx, savePause); err != nil {
			return cmp.Or(err, errVoid)
		}
	}
}

// leave has the nodes here leave, when the process that conducts the run says so. The run may go on
// elsewhere instead.
func (h *hosted) leave(ctx context.Context, w *live.World) error {
	asks := &protos.LeaveRun{}
	for _, i := range w.HandOvers() {
		asks.HandOver = append(asks.HandOver, int32(i))
	}
	h.process.report(h.Lead(), h.Number(), asks)
	select {
	case <-h.stop.Done():
		return nil
	case <-h.allowed.Done():
	case <-time.After(savePatience + savePause): // the conductor may be gone
	}
	return w.Leave(ctx)
}

// leaves has the nodes of a process that leaves do so, if the run can do without the process. Otherwise
// the run goes on on other processes from its state.
func (c *conductor) leaves(name string, handOver []int32) {
	p := c.process
	if peer, known := p.node.Peer(name); known {
		p.mu.Lock()
		p.leavers[name] = peer.Peer.Incarnation
		p.mu.Unlock()
	}
	node := ""
	if c.isSaved() && !c.drains.Load() {
		node = c.lastOfItsKind(name, handOver)
	}
	if node == "" || !c.saveLast(c.stop, name) {
		p.report(name, c.Number(), &protos.LeaveRun{})
		return
	}
	c.moves.Store(true)
	c.end(fmt.Errorf("process %s leaves, and no other has what %s holds", name, node))
}

// lastOfItsKind names a node of a process that can hand what it holds over to no other node, or that has
// the last model; empty if there is none.
func (c *conductor) lastOfItsKind(name string, handOver []int32) string {
	nodes, roles := c.NodesOf(name), c.stage.Point.Spec.Roles
	if c.history.HoldLastModel(c.now(), nodes) {
		return c.stage.Names[nodes[0]]
	}
	for _, i := range nodes {
		others := false
		for j := range roles {
			host := c.Host(j)
			others = others || !roles[j].Trains && host != name && (host == c.process.config.Name || c.takesPart(host))
		}
		if !roles[i].Trains && (!others || !slices.Contains(handOver, int32(i))) {
			return c.stage.Names[i]
		}
	}
	return ""
}

// isSaved reports whether the run has begun, and is saved from time to time.
func (c *conductor) isSaved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun && c.states != nil
}

// awaitStored waits until the states of all processes are there, as of the cut of a number. The error
// is errVoid if the cut comes to nothing.
func (c *conductor) awaitStored(ctx context.Context, number uint64) error {
	for {
		missing := c.World().Cutting() || c.states.Waits(c.takesPart) || c.saves.Load() > 0 // in this order
		switch {
		case c.stored.Load() >= number:
			return nil
		case !c.isSaved():
			return errRunOver
		case !missing:
			return errVoid
		}
		if err := pause(ctx, saveEvery); err != nil {
			return err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
