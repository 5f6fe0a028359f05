package node

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gradwire/gradwire/cluster/membership"
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
			if err := c.saveLast(ctx); err != nil {
				c.log("is not saved before process %s leaves: %v", p.config.Name, err)
			}
		})
	}
	p.leaveRuns(ctx)
	draining.Wait()
}

// placeable are the members of the cluster on which runs can be placed.
func (p *process) placeable() []membership.Member {
	return slices.DeleteFunc(p.present(), func(m membership.Member) bool {
		return m.Leaves || m.Name == p.config.Name && p.draining.Load()
	})
}

// errVoid means that a cut came to nothing, because nodes came or went meanwhile.
var errVoid = errors.New("nodes came or went meanwhile")

// saveLast saves the run, and has a holder of the submission know its state. The nodes handle nothing
// from then on, so the run loses no step if another process goes on with it. A cut that comes to
// nothing is followed by an ordinary one, in which nodes that leave can hand over what they hold.
func (c *conductor) saveLast(ctx context.Context) error {
	if !c.isSaved() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, savePatience)
	defer cancel()
	c.drains.Store(true)
	w := c.World()
	for last := true; ; last = !last {
		err := c.awaitStored(ctx, w.CutNow(last))
		if err == nil && last {
			break
		}
		if err != nil && !errors.Is(err, errVoid) || len(c.process.placeable()) == 0 {
			return err
		}
		if err := pause(ctx, savePause); err != nil {
			return cmp.Or(err, errVoid)
		}
	}
	c.folder.Lock()
	err := c.stage.AwaitSaved()
	c.folder.Unlock()
	if err != nil {
		return err
	}
	at := time.Duration(c.storedAt.Load()).Round(time.Millisecond)
	c.log("is saved at %v, because process %s leaves", at, c.process.config.Name)
	return c.process.holders.Commit(ctx, c.message.Submission)
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
