package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/live"
	"github.com/gradwire/gradwire/protos"
)

// Where a plan has checkpoints, each process sends the state of its nodes to the one that conducts
// the run, which saves that of all. In a run that goes on each process asks for the state of its
// nodes.

// checkpoints say how the world here is saved of a run that another process conducts.
func (h *hosted) checkpoints(m *protos.PlaceRun, events *forwarder) (*live.Checkpoints, error) {
	if !m.Saved {
		return nil, nil
	}
	c := &live.Checkpoints{Before: m.Cuts, Passed: h.passed,
		Save: func(s *live.State) error {
			events.send() // with what belongs to the state
			if err := h.sendState(h.Lead(), s); err != nil {
				h.process.log("run %x: the state of the nodes here is not saved: %v", h.Number(), err)
			}
			return nil
		}}
	if !m.Resumes {
		return c, nil
	}
	if err := h.process.tell(h.Lead(), h.Number(), &protos.AskState{}); err != nil {
		return nil, err
	}
	select {
	case c.From = <-h.resume:
		return c, nil
	case <-h.stop.Done():
		return nil, context.Cause(h.stop)
	}
}

// passed tells other processes that all has reached them that was sent there before a cut.
func (h *hosted) passed(number uint64, others []string) {
	h.Tell(others, &protos.CutPassed{Number: number})
}

// cut has the nodes here saved, as the process that conducts the run has said.
func (h *hosted) cut(m *protos.CutRun) {
	if w := h.World(); w != nil {
		own := h.process.config.Name
		w.Cut(m.Number, slices.DeleteFunc(m.Processes, func(name string) bool { return name == own }), m.Last)
	}
}

// sendState sends a process a state.
func (h *hosted) sendState(name string, s *live.State) error {
	for part, err := range checkpoint.Split(s) {
		if err == nil {
			err = h.process.node.SendOn(h.stop, name, h.frame(part))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stated takes a part of the state in which the nodes here go on, or of those of another process.
func (h *hosted) stated(name string, m *protos.StatePart) {
	if h.conductor != nil {
		h.conductor.heard(name, m)
		return
	}
	if name != h.Lead() {
		return
	}
	s, err := h.parts.Add(m)
	switch {
	case err != nil:
		h.end(fmt.Errorf("from %s: %w", h.Lead(), err))
	case s != nil:
		select {
		case h.resume <- s:
		default: // it was not asked for
		}
	}
}

// ownCheckpoints say how the world is saved of the process that conducts the run.
func (c *conductor) ownCheckpoints() *live.Checkpoints {
	if c.stage == nil || !c.stage.Saves() {
		return nil
	}
	own := c.process.config.Name
	c.states = checkpoint.NewGatherer(own, func(s *live.State) error {
		c.saves.Add(1)
		c.saving.Go(func() { c.save(s) }) // while more arrives
		return nil
	})
	return &live.Checkpoints{Begin: c.beginCut, Passed: c.passed,
		Busy: func() bool { return c.states.Waits(c.takesPart) || c.saves.Load() > 0 }, // in this order
		Save: func(s *live.State) error { return c.states.Add(own, s) }}
}

// takesPart reports whether a process is in the run.
func (c *conductor) takesPart(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.parties[name]
	return q != nil && q.in()
}

// beginCut has the other processes save the state of their nodes, and returns their names. A last
// cut is as in live.World.Cut.
func (c *conductor) beginCut(number uint64, last bool) (others []string) {
	for _, name := range c.names {
		if c.takesPart(name) {
			others = append(others, name)
		}
	}
	all := append(slices.Clone(others), c.process.config.Name)
	c.states.Expect(number, all)
	c.Tell(others, &protos.CutRun{Number: number, Processes: all, Last: last})
	return others
}

// save begins to write the state of all nodes.
func (c *conductor) save(s *live.State) {
	defer c.saves.Add(-1)
	c.folder.Lock()
	defer c.folder.Unlock()
	s.Tail = append(s.Tail, c.events.Tail()...)
	for i := range s.Tail {
		s.At = max(s.At, s.Tail[i].At) // by the clocks of other processes
	}
	if err := c.stage.Save(s); err != nil {
		c.end(err)
	} else if !s.Void {
		c.storedAt.Store(int64(s.At))
		c.stored.Store(s.Number)
	}
}

// begins has the other processes know how the run is saved, and where it goes on.
func (c *conductor) begins(m *protos.PlaceRun) {
	if m.Saved = c.states != nil; c.stage.From() != nil {
		m.Start, m.Cuts, m.Resumes = int64(c.stage.From().At), c.stage.From().Number, true
	}
}

// gather takes a part of the state of another process's nodes.
func (c *conductor) gather(name string, m *protos.StatePart) {
	if c.states == nil {
		return
	}
	if err := c.states.Part(name, m); err != nil {
		c.log("the state of process %s: %v", name, err)
	}
}

// supplyState sends a process the state in which its nodes go on.
func (c *conductor) supplyState(name string) {
	from := c.stage.From()
	if from == nil {
		return
	}
	s := &live.State{Number: from.Number, Origin: from.Origin, At: from.At, Nodes: map[int]live.NodeState{}}
	for _, i := range c.NodesOf(name) {
		if n, there := from.Nodes[i]; there {
			s.Nodes[i] = n
		}
	}
	if err := c.sendState(name, s); err != nil {
		c.note(name, func(q *party) {
			if !q.placed {
				q.err = errors.Join(q.err, fmt.Errorf("the state of its nodes cannot be sent: %w", err))
			}
		})
	}
}
