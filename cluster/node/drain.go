package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/protos"
)

// A process that receives a stop signal drains before it leaves: it places no new nodes, saves the
// runs that it conducts for the last time, and its nodes in other processes' runs hand over their
// shards.

const (
	// drainPatience bounds the whole drain, and savePatience the last save of one run.
	drainPatience = 10 * time.Second
	savePatience  = 5 * time.Second
	// saveEvery is the interval at which a conductor polls whether a cut is stored, and savePause
	// the pause after a void cut.
	saveEvery = 5 * time.Millisecond
	savePause = 50 * time.Millisecond
)

// finalSave makes the last save of a run at most once at a time. Without it, two processes that
// leave together would each void the other's last cut.
type finalSave struct {
	mu     sync.Mutex
	active atomic.Bool // the last save is under way or has succeeded
}

// once calls save unless an earlier call has succeeded. It waits for a call that is under way.
func (s *finalSave) once(save func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active.Load() {
		return nil
	}
	s.active.Store(true)
	err := save()
	if err != nil {
		s.active.Store(false)
	}
	return err
}

// drain tells the other processes that this one leaves, saves its runs and empties its nodes.
func (p *process) drain() {
	p.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), drainPatience)
	defer cancel()
	var draining sync.WaitGroup
	draining.Go(func() {
		if err := p.members.Drain(ctx); err != nil {
			p.log("%v", err) // the other processes may still place nodes here
		}
	})
	for _, c := range p.conductors() {
		draining.Go(func() {
			if c.isSaved() && c.saveLast(ctx, p.config.Name) && p.holders.Holds(c.message.Submission) {
				if err := p.holders.Commit(ctx, c.message.Submission); err != nil {
					c.log("no other process has a copy of the run's last state yet: %v", err)
				}
			}
		})
	}
	p.leaveRuns(ctx)
	draining.Wait()
}

// placeable returns the members of the cluster that can host nodes of a new run.
func (p *process) placeable() []membership.Member {
	p.mu.Lock()
	leavers := maps.Clone(p.leavers)
	p.mu.Unlock()
	return slices.DeleteFunc(p.present(), func(m membership.Member) bool {
		return m.Leaves || leavers[m.Name] == m.Meta.Incarnation || m.Name == p.config.Name && p.draining.Load()
	})
}

// errVoid means that a cut is void, because nodes joined or left while it was made.
var errVoid = errors.New("nodes joined or left while it was being saved")

// saveLast saves the run because a process leaves, and reports whether the run's last state is
// saved. The nodes handle no message after that save, so a run that continues from it loses no
// step.
func (c *conductor) saveLast(ctx context.Context, leaver string) bool {
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	err := c.final.once(func() error {
		err := c.cutLast(ctx)
		if err == nil {
			c.folder.Lock()
			err = c.stage.AwaitSaved()
			c.folder.Unlock()
		}
		if err != nil {
			c.World().CutNow(false)
			return err
		}
		at := time.Duration(c.storedAt.Load()).Round(time.Millisecond)
		c.log("is saved at %v, because process %s leaves", at, leaver)
		return nil
	})
	if err != nil {
		c.log("could not be saved before process %s leaves: %v", leaver, err)
	}
	return err == nil
}

// cutLast makes the last cut. After a void one it makes an ordinary cut, which lets nodes that
// leave hand over their shards, and tries again.
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

// leave asks the conductor whether the nodes here can leave, and has them leave once it permits
// that. The conductor may instead end the run here and continue it on other processes.
func (h *hosted) leave(ctx context.Context, w *live.World) error {
	message := &protos.LeaveRun{}
	for _, i := range w.HandOvers() {
		message.HandOver = append(message.HandOver, int32(i))
	}
	h.process.report(h.Lead(), h.Number(), message)
	select {
	case <-h.stop.Done():
		return nil
	case <-h.allowed.Done():
	case <-time.After(savePatience + savePause): // the conductor may have died
	}
	return w.Leave(ctx)
}

// answerLeave permits the nodes of another process to leave the run if the run can continue without
// that process. Otherwise it saves the run and ends it here; the run continues on other processes.
func (c *conductor) answerLeave(name string, handOver []int32) {
	p := c.process
	if peer, known := p.node.Peer(name); known {
		p.mu.Lock()
		p.leavers[name] = peer.Peer.Incarnation
		p.mu.Unlock()
	}
	node := ""
	if c.isSaved() {
		node = c.lastOfItsKind(name, handOver)
	}
	// A conductor that drains does not end the run: it hands the submission over.
	if node == "" || !c.saveLast(c.stop, name) || p.draining.Load() {
		p.report(name, c.Number(), &protos.LeaveRun{})
		return
	}
	c.moves.Store(true)
	c.end(fmt.Errorf("process %s leaves, and no other process has the state of node %s", name, node))
}

// isLeaver reports whether a process has said that it leaves a run conducted here.
func (p *process) isLeaver(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	incarnation, leaves := p.leavers[name]
	peer, _ := p.node.Peer(name)
	return leaves && incarnation == peer.Peer.Incarnation
}

// lastOfItsKind returns the name of a node on a process that no node elsewhere can replace: it
// holds the last model, or has no server to hand its shards over to. It returns "" if there is no
// such node.
func (c *conductor) lastOfItsKind(name string, handOver []int32) string {
	nodes, roles := c.NodesOf(name), c.stage.Point.Spec.Roles
	if c.history.HoldLastModel(c.now(), nodes) {
		return c.stage.Names[nodes[0]]
	}
	for _, i := range nodes {
		otherServer := false
		for j := range roles {
			host := c.Host(j)
			otherServer = otherServer ||
				!roles[j].Trains && host != name && !c.process.isLeaver(host) &&
					(host == c.process.config.Name || c.takesPart(host))
		}
		if !roles[i].Trains && (!otherServer || !slices.Contains(handOver, int32(i))) {
			return c.stage.Names[i]
		}
	}
	return ""
}

// isSaved reports whether the run has begun and makes checkpoints.
func (c *conductor) isSaved() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun && c.states != nil
}

// awaitStored waits until the states of all processes are stored, as of a cut or a later one. It
// returns errVoid if the cut is void.
func (c *conductor) awaitStored(ctx context.Context, number uint64) error {
	for {
		// A state passes from the world to c.states and then to a save, so the checks keep this
		// order.
		missing := c.World().Cutting() || c.states.Waits(c.takesPart) || c.saves.Load() > 0
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
