package live

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// The state of a run in real time is a consistent cut, as in T. H. Lai and T. H. Yang, "On
// distributed snapshots", Information Processing Letters 25 (1987). Each node is saved by itself,
// between two of its handlers and while it computes nothing; nobody else waits for it. Every frame
// says how often its sender had been saved. A node that has a message of one that was saved more
// often is saved before it handles that. Messages that were sent before the sender was saved, and
// come after their receiver was, are on their way in the state.
//
// What is recorded of the run is saved before any node is, in the coordinator's world. What nodes
// record from then on until they are saved is its tail, and stands in the state as well: the record
// of a run that goes on has each event once.

// Checkpoints say how the state of a run in real time is saved, and where it goes on.
type Checkpoints struct {
	// Every is the time between two, on the run's clock, in the world of the coordinator.
	Every time.Duration
	// Origin identifies this run. A state of another origin is refused.
	Origin Origin
	// With are the recorders of the run, in the coordinator's world.
	With []state.Declared
	// Held calls a function at the beginning of a cut, while no recorder in With changes.
	Held func(number uint64, do func())
	// Save takes the state of the nodes that live here. An error ends the run.
	Save func(*State) error
	// From is where the nodes that live here go on; nil for their beginning. Before is how often
	// the nodes of the run were saved before, if From is nil.
	From   *State
	Before uint64
	// Begin has the other worlds of the run make a cut, and returns the names of their processes;
	// last is as in World.Cut. The coordinator's world calls it when it starts a cut, and again
	// while it waits for those worlds; nil where all nodes live here. Passed calls Passed in the
	// worlds of some processes, behind everything that this one has sent them.
	Begin  func(number uint64, last bool) (others []string)
	Passed func(number uint64, others []string)
	// Busy, if not nil, reports whether a state is still being saved: no cut begins then.
	Busy func() bool
}

// State is the state of nodes, between events of theirs.
type State struct {
	// Number is how often the nodes have been saved.
	Number uint64
	// At is when the last of them was saved, on the run's clock: of nothing that is in the state
	// can anybody say that it happened later.
	At time.Duration
	// Origin identifies the run.
	Origin Origin
	// Record is the state of the recorders when the cut began, and Events the size of the event
	// file then, in bytes. Tail holds the events that nodes recorded between the beginning of the
	// cut and their own save, in any order; Place sorts the events of a continued run by time.
	Record *state.Saved
	Events int64
	Tail   []world.Recorded
	// Void says that the cut has come to nothing, because who is there has changed meanwhile.
	Void bool
	// Nodes are those that were there, by position; the coordinator's is the number of nodes.
	Nodes map[int]NodeState
}

// NodeState is the state of a node.
type NodeState struct {
	// Actor is the state of the node's actor, with the messages in its mailbox.
	Actor *state.Saved
	// View is the announcement of the actor's view; nil for the first view.
	View *protos.View
	// Frames are the messages that were on their way to it.
	Frames [][]byte
	// Sent is what its edges had carried in this world.
	Sent []link.Count
}

// Origin identifies the run of a state. A run continues only from a state of its own origin.
type Origin struct {
	// Plan is the plan of the run, in YAML, and Seed its seed.
	Plan string
	Seed uint64
	// Data is a fingerprint of the samples; empty in a process that does not have all samples.
	Data string
}

// Check returns an error that names the difference to the origin of a state.
func (o *Origin) Check(from *Origin) error {
	switch {
	case from.Plan != o.Plan:
		return errors.New("it is of another plan")
	case from.Seed != o.Seed:
		return fmt.Errorf("it is of a run with seed %d; this run has seed %d", from.Seed, o.Seed)
	case from.Data != o.Data && from.Data != "" && o.Data != "":
		return errors.New("it was made with other samples")
	}
	return nil
}

// cuts are those of a world.
type cuts struct {
	mu       sync.Mutex
	number   uint64            // of the latest that has begun
	others   []string          // the processes that make it as well
	finished uint64            // the latest of which the others know that all has passed
	running  bool              // one is being made
	spoiled  bool              // who is there has changed since the latest began
	last     uint64            // number of the last cut, after which nodes handle nothing; 0 for none
	closed   bool              // there will be no more
	passed   map[string]uint64 // by process: the latest that it has finished
	saving   sync.WaitGroup
	flights  wire.Flights

	recorded uint64           // the latest for which the record was saved, in the coordinator's world
	tail     []world.Recorded // of nodes that were not saved for it; both are guarded by World.observe

	fresh []int // nodes that begin anew in a run that goes on
}

// beginCuts makes ready for cuts, if there are to be any. A run that goes on counts on.
func (w *World) beginCuts() {
	c := w.config.Checkpoints
	if c == nil {
		return
	}
	w.door.Cuts, w.door.Flights = make([]wire.Cut, len(w.names)), &w.cuts.flights
	w.cuts.number, w.cuts.passed = c.Before, map[string]uint64{}
	if c.From != nil {
		w.cuts.number = c.From.Number
	}
}

// Cuts is the number of the latest cut that has begun here.
func (w *World) Cuts() uint64 {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	return w.cuts.number
}

// Cut saves the nodes that live here, for a cut that the worlds of other processes make as well.
// The caller repeats it while it waits for other processes, without those that are gone. After the
// last cut the nodes handle nothing until an ordinary cut follows. Place must have been called.
func (w *World) Cut(number uint64, others []string, last bool) {
	c := &w.cuts
	c.mu.Lock()
	defer c.mu.Unlock()
	if number > c.number {
		w.setLast(number, last)
	}
	w.cut(number, others)
}

// CutNow starts a cut in the coordinator's world and returns its number; last is as in Cut.
func (w *World) CutNow(last bool) (number uint64) {
	c := &w.cuts
	c.mu.Lock()
	defer c.mu.Unlock()
	number = c.number + 1
	w.setLast(number, last)
	w.cut(number, nil)
	return number
}

// setLast notes whether the cut that starts is the last one. An ordinary cut lets the nodes go on
// that an earlier last cut has held. The caller holds w.cuts.mu.
func (w *World) setLast(number uint64, last bool) {
	c := &w.cuts
	switch {
	case last && c.last == 0:
		c.last = number
	case !last && c.last != 0:
		c.last = 0
		for _, n := range w.nodes {
			if !n.away {
				n.life.Load().mailbox.unpark()
			}
		}
	}
}

// afterSave lets a node go on after its save, unless the save was for the last cut or a later one.
func (w *World) afterSave(m *mailbox, number uint64) {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	if w.cuts.isLast(number) {
		m.park()
	} else {
		m.release()
	}
}

// Cutting reports whether a cut is under way here.
func (w *World) Cutting() bool {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	return w.cuts.running
}

// isLast reports whether nodes handle nothing after a cut.
func (w *World) isLast(number uint64) bool {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	return w.cuts.isLast(number)
}

// isLast is World.isLast for a caller that holds c.mu.
func (c *cuts) isLast(number uint64) bool { return c.last != 0 && number >= c.last }

// cut is Cut for a caller that holds w.cuts.mu and has called setLast if the cut is new.
func (w *World) cut(number uint64, others []string) {
	c := &w.cuts
	switch {
	case w.config.Checkpoints == nil || c.closed:
	case number == c.number:
		if c.others = others; number == c.finished {
			w.config.Checkpoints.Passed(number, others) // somebody has not heard it
		}
	case number > c.number:
		c.number, c.others, c.spoiled = number, others, false
		if !c.running {
			c.running = true
			c.saving.Go(w.makeCuts)
		}
	}
}

// Passed takes note that nothing comes from another process any more that was sent here before its
// nodes were saved for the cut of a number.
func (w *World) Passed(process string, number uint64) {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	if w.cuts.passed != nil {
		w.cuts.passed[process] = max(w.cuts.passed[process], number)
	}
}

// spoil has the cut that is under way come to nothing: who is there has changed.
func (w *World) spoil() {
	w.cuts.mu.Lock()
	w.cuts.spoiled = true
	w.cuts.mu.Unlock()
}

// endCuts waits for the cut that is under way, and begins no more.
func (w *World) endCuts() {
	w.cuts.mu.Lock()
	w.cuts.closed = true
	w.cuts.mu.Unlock()
	w.cuts.saving.Wait()
}

// makeCuts makes the cuts that are asked for, one after the other.
func (w *World) makeCuts() {
	for {
		c := &w.cuts
		c.mu.Lock()
		number := c.number
		c.mu.Unlock()
		saved := w.makeCut(number)
		c.mu.Lock()
		c.running = c.number > number && !c.closed
		more := c.running
		c.mu.Unlock()
		if !more {
			w.nextCut(saved)
			return
		}
	}
}

// makeCut makes a cut, and reports whether it is whole here. It ends when all that was sent before
// it, here and in other worlds, has arrived: there are never messages of two cuts ago.
func (w *World) makeCut(number uint64) bool {
	c := w.config.Checkpoints
	s := &State{Number: number, Origin: c.Origin, Nodes: map[int]NodeState{}}
	if !w.lead().away {
		w.record(s)
	}
	if c.Begin != nil {
		w.Cut(number, c.Begin(number, w.isLast(number)), false)
	}
	nodes, ok := w.present()
	ok = ok && w.saveAll(s, nodes)
	if s.At = w.clock.Now(); !ok {
		w.skip(number)
	}
	arrived := w.await(number, func() bool { return w.cuts.flights.Before(number) == 0 })
	if arrived && c.Passed != nil {
		w.cuts.mu.Lock()
		w.cuts.finished = number
		others := w.cuts.others
		w.cuts.mu.Unlock()
		c.Passed(number, others)
		arrived = w.await(number, func() bool { return w.othersPassed(number) })
	}
	for i, n := range s.Nodes {
		n.Frames = nodes[i].mailbox.collected()
		s.Nodes[i] = n
	}
	if s.Tail = w.tail(); !w.going() {
		return false
	}
	if s.Void = !ok || !arrived || w.vain(number); s.Void {
		s.Nodes, s.Record, s.Tail = nil, nil, nil
	}
	if err := c.Save(s); err != nil {
		w.fail(err)
	}
	return !s.Void
}

// vain reports whether a cut has come to nothing.
func (w *World) vain(number uint64) bool {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	return w.cuts.spoiled || w.cuts.number > number
}

// skip gives up a cut for the nodes that live here.
func (w *World) skip(number uint64) {
	for _, n := range w.nodes {
		if !n.away {
			n.life.Load().mailbox.skip(number)
			w.sendsAfter(n, number)
		}
	}
}

// sendsAfter has what a node sends and records from now on say that it was saved so often.
func (w *World) sendsAfter(n *node, times uint64) {
	w.Locked(func() { w.door.Cuts[n.index] = wire.CutOf(times) })
	w.observe.Lock()
	n.saved = times
	w.observe.Unlock()
}

// Saved is how often a node that lives here has been saved. It is for the deployment's observer, of
// the node whose event it is told.
func (w *World) Saved(node int) uint64 { return w.nodes[node].saved }

// record saves what is recorded of the run, for a cut for which no node is saved yet.
func (w *World) record(s *State) {
	c := w.config.Checkpoints
	w.observe.Lock()
	defer w.observe.Unlock()
	w.cuts.recorded = s.Number
	var err error
	c.Held(s.Number, func() { s.Record, err = save(state.All(c.With), "record") })
	if err != nil {
		w.fail(fmt.Errorf("the record of this run cannot be saved: %w", err))
	}
}

// lately returns what was recorded since the record was saved, by nodes that were not.
func (w *World) tail() (tail []world.Recorded) {
	w.observe.Lock()
	defer w.observe.Unlock()
	tail, w.cuts.tail = w.cuts.tail, nil
	return tail
}

// going reports whether the members are still at work.
func (w *World) going() bool {
	select {
	case <-w.halted:
		return false
	default:
		return true
	}
}

// nextCut has the coordinator's world begin the next cut when it is due, or soon, if the one before
// has come to nothing.
func (w *World) nextCut(saved bool) {
	c := w.config.Checkpoints
	if c == nil || c.Every <= 0 || w.lead().away {
		return
	}
	at := w.clock.Now() + c.Every/sooner
	if saved {
		at = (w.clock.Now()/c.Every + 1) * c.Every
	}
	number := w.Cuts() + 1
	w.clock.Watch(at, func() {
		switch {
		case w.isLast(w.Cuts()):
		case c.Busy != nil && c.Busy():
			c.Begin(w.Cuts(), false) // other worlds may still wait for a process that is gone
			w.nextCut(false)
		default:
			w.startDue(number)
		}
	})
}

// startDue starts a cut that is due in the coordinator's world, unless CutNow has started it
// already.
func (w *World) startDue(number uint64) {
	w.cuts.mu.Lock()
	defer w.cuts.mu.Unlock()
	if number > w.cuts.number {
		w.cut(number, nil)
	}
}

// sooner is by how much sooner a cut that came to nothing is made again.
const sooner = 4

// present returns the lives of the nodes that are there. It is false if one of them hands over what
// it holds, or if the run is over.
func (w *World) present() (nodes map[int]*life, ok bool) {
	found := make(chan map[int]*life, 1)
	if !w.change(func() {
		there := map[int]*life{}
		for i, n := range w.nodes {
			switch {
			case n.away || !w.cycle.There(i):
			case w.cycle.Leaving(i):
				found <- nil
				return
			default:
				there[i] = n.life.Load()
			}
		}
		found <- there
	}) {
		return nil, false
	}
	select {
	case nodes = <-found:
		return nodes, nodes != nil
	case <-w.end:
		return nil, false
	}
}

// saveAll saves nodes, each as soon as it rests, unless the cut comes to nothing before.
func (w *World) saveAll(s *State, nodes map[int]*life) (ok bool) {
	var mu sync.Mutex
	var saving sync.WaitGroup
	given, all := make(chan struct{}), make(chan struct{})
	ok = true
	for i, l := range nodes {
		saving.Go(func() {
			state, err := l.save(s.Number, given)
			if err != nil {
				w.fail(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok = ok && state != nil; state != nil {
				s.Nodes[i] = *state
			}
		})
	}
	go func() {
		saving.Wait()
		close(all)
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-all:
			return ok
		case <-look.C:
			if w.vain(s.Number) {
				close(given)
				<-all
				return false
			}
		}
	}
}

// await waits until something holds that a cut ends with. It is false if the run is over before, or
// another cut has begun.
func (w *World) await(number uint64, holds func() bool) bool {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for looks := 1; !holds(); looks++ {
		if w.Cuts() > number {
			return false
		}
		if c := w.config.Checkpoints; looks%askAgain == 0 && c.Begin != nil {
			// A process is gone, or the order to it or its report was lost.
			w.Cut(number, c.Begin(number, w.isLast(number)), false)
		}
		select {
		case <-look.C:
		case <-w.halted:
			return false
		}
	}
	return true
}

// othersPassed reports whether everything has arrived here that was sent in other worlds before the
// cut of a number.
func (w *World) othersPassed(number uint64) bool {
	w.cuts.mu.Lock()
	for _, process := range w.cuts.others {
		if w.cuts.passed[process] < number {
			w.cuts.mu.Unlock()
			return false
		}
	}
	w.cuts.mu.Unlock()
	w.arrivals.Lock()                         // what has come before is with the actors,
	w.arrivals.Unlock()                       //nolint:staticcheck // which this stands for waiting for,
	return w.cuts.flights.Before(number) == 0 // or on a downlink
}

const (
	// lookEvery is how often a cut looks for messages that are still on their way, and after
	// askAgain looks the others are told of it again.
	lookEvery = 5 * time.Millisecond
	askAgain  = 200
)
