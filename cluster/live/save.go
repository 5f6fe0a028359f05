package live

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// cut is how far a node has been saved. It is guarded by its mailbox.
type cut struct {
	times    uint64          // it was saved
	asked    uint64          // it is to be: it handles nothing before it has been
	held     int             // number of saves after which the node has not gone on
	parked   int             // number of those saves that were for a last cut; unpark ends them
	still    []chan struct{} // are closed when no handler is at work and no job is under way
	collects bool            // messages that were sent before it was saved
	late     [][]byte        // the frames of these
	restored bool            // the node goes on where it was saved
}

// begins says of how many cuts a life is not part that begins now.
func (m *mailbox) begins(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut.times, m.cut.asked = number, number
}

// judge returns how often the sender of a frame had been saved. If that was more often than its
// receiver, that is saved before it handles the message. Called under the lock.
func (m *mailbox) judge(f *wire.Frame) uint64 {
	since := f.Cut.Since(m.cut.times)
	number := uint64(int64(m.cut.times) + int64(since))
	switch {
	case since < 0 && m.cut.collects:
		whole, err := wire.Encode(nil, f)
		if err != nil {
			m.life.node.world.fail(err)
			break
		}
		m.cut.late = append(m.cut.late, whole)
	case since > 0: // its own world is about to be told of the cut
		m.cut.asked = max(m.cut.asked, number)
	}
	return number
}

// ask has the node handle nothing more until it has been saved so often. What it returns is closed
// when no handler is at work and no job under way.
func (m *mailbox) ask(number uint64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	still := make(chan struct{})
	m.cut.asked, m.cut.still = max(m.cut.asked, number), append(m.cut.still, still)
	m.rest()
	return still
}

// rest tells who waits for it that the node rests. Called under the lock.
func (m *mailbox) rest() {
	if m.running || m.jobs > 0 {
		return
	}
	for _, still := range m.cut.still {
		close(still)
	}
	m.cut.still = nil
}

// begin counts a job, and end one that has ended.
func (m *mailbox) begin() {
	m.life.node.world.jobs.Add(1)
	m.mu.Lock()
	m.jobs++
	m.mu.Unlock()
}

func (m *mailbox) end() {
	m.mu.Lock()
	m.jobs--
	m.rest()
	m.mu.Unlock()
	m.life.node.world.jobs.Add(-1)
}

// saved is what is saved of a node.
type saved struct {
	actor     actor.Actor
	env       *env
	walk      *world.Walk
	cores     *world.Cores
	number    int
	started   bool
	announced *protos.View
	entered   uint64 // number of the latest timer or job
	due       map[uint64]timer
	control   []letter
	user      []letter
}

// saved is what is to be saved of a life, without what waits for it.
func (l *life) saved() *saved {
	return &saved{actor: l.actor, env: l.env, walk: l.walk, cores: l.cores, number: l.number,
		started: l.started.Load(), announced: l.node.world.announced.Load()}
}

// take takes what waits for the actor of a node that rests, which counts as saved from now on, and
// handles nothing until release or unpark. It is false if the node is to be saved for a later cut.
func (m *mailbox) take(s *saved, number uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut.asked > number || m.cut.times >= number {
		return false
	}
	sent := func(l letter) bool { return l.cut < number }
	s.due, s.entered = maps.Clone(m.timers.due), m.timers.entered
	s.control, s.user = slices.Collect(m.queues.Control.All(sent)), slices.Collect(m.queues.User.All(sent))
	m.cut.times, m.cut.collects, m.cut.late = number, true, nil
	m.cut.held++
	return true
}

// release lets a node handle messages again after its save.
func (m *mailbox) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut.held--
	m.goOn()
}

// unpark lets a node handle messages again after park.
func (m *mailbox) unpark() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut.held, m.cut.parked = m.cut.held-m.cut.parked, 0
	m.goOn()
}

// park has a node handle nothing after its save for a last cut, until unpark.
func (m *mailbox) park() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut.parked++
}

// collected ends the collection of the messages that were on their way, and returns their frames.
func (m *mailbox) collected() (frames [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	frames, m.cut.late, m.cut.collects = m.cut.late, nil, false
	return frames
}

// skip has a node that is not saved for the cut of a number count as if it had been: that has come
// to nothing.
func (m *mailbox) skip(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut.times < number {
		m.cut.times, m.cut.collects, m.cut.late = number, false, nil
		m.goOn()
	}
}

// save saves the node for the cut of a number. It returns nothing if the node is gone before, or if
// the cut is given up.
func (l *life) save(number uint64, given <-chan struct{}) (now *NodeState, err error) {
	m, w := l.mailbox, l.node.world
	select {
	case <-m.ask(number):
	case <-given:
		return nil, nil
	case <-l.gone:
		return nil, nil
	case <-l.node.end:
		return nil, nil
	}
	if !l.alone() {
		if l.over() {
			return nil, nil
		}
		return nil, fmt.Errorf("this run cannot be saved: node %s: %w", l.node.name(), errHidden)
	}
	s := l.saved()
	if !m.take(s, number) {
		return nil, nil
	}
	now = &NodeState{View: s.env.announced}
	w.Locked(func() { now.Sent = w.config.Network.UsedBy(l.node.index, nil) })
	w.sendsAfter(l.node, number)
	now.Actor, err = save(s, l.node.name())
	w.afterSave(m, number)
	if err != nil {
		return nil, fmt.Errorf("this run cannot be saved: node %s: %w", l.node.name(), err)
	}
	return now, nil
}

// save returns a copy of the state of a value. It turns a panic of an actor's method State into an
// error.
func save(of state.Declared, owner string) (_ *state.Saved, err error) {
	defer world.Recovered(&err)
	saved, err := state.Save(of)
	if err != nil {
		return nil, err
	}
	return saved.Own(owner + "/"), nil
}

// restore sets a value to a saved state. It turns a panic of an actor's method State into an error.
func restore(saved *state.Saved, to state.Declared, into state.Into) (err error) {
	defer world.Recovered(&err)
	if saved == nil {
		return errors.New("its state is missing")
	}
	return saved.Restore(to, into)
}

// errHidden means that protoactor holds data of an actor that the actor cannot declare.
var errHidden = errors.New("its actor has spawned others or ended itself, is watched, stashes messages, awaits an " +
	"answer in a future, or has a timeout of protoactor's")

// alone reports whether protoactor holds no data of the node that its actor cannot declare.
func (l *life) alone() bool {
	return door.Locals(l.system) == l.locals && !door.HasExtras(l.mailbox.invoker)
}

// restore brings a node into the state in which it was saved.
func (l *life) restore(from *NodeState, number uint64) error {
	m, w := l.mailbox, l.node.world
	s := l.saved()
	if err := restore(from.Actor, s, state.Into{Pool: &w.tensors, Clock: &m.timers}); err != nil {
		return fmt.Errorf("node %s: %w", l.node.name(), err)
	}
	l.actor, l.number = s.actor, s.number
	l.started.Store(s.started)
	if a := s.announced; a != nil {
		w.heard(a)
	}
	m.mu.Lock()
	m.cut.restored = true
	for _, x := range s.control {
		m.queues.Control.Push(x)
	}
	for _, x := range s.user {
		m.queues.User.Push(x)
	}
	m.timers.entered = s.entered
	m.timers.restore(s.due)
	m.mu.Unlock()
	for _, b := range from.Frames {
		f, err := wire.Decode(b, &w.tensors)
		if err != nil {
			return fmt.Errorf("node %s: %w", l.node.name(), err)
		}
		f.Cut = wire.CutOf(number)
		l.arrive(&f)
	}
	return nil
}

// resumes returns the saved state of a node that is being placed; false if the node starts anew.
func (w *World) resumes(node int) (from NodeState, there bool) {
	if c := w.config.Checkpoints; w.placing && c != nil && c.From != nil {
		from, there = c.From.Nodes[node]
	}
	return from, there
}

// resume brings the nodes that live here into the state in which they were saved. Their actors have
// been placed, and handle nothing yet.
func (w *World) resume() error {
	if w.config.Checkpoints == nil || w.config.Checkpoints.From == nil {
		return nil
	}
	from := w.config.Checkpoints.From
	if err := w.config.Checkpoints.Origin.Check(&from.Origin); err != nil {
		return err
	}
	if !w.lead().away {
		slices.SortStableFunc(from.Tail, func(a, b world.Recorded) int { return cmp.Compare(a.At, b.At) })
		if err := restore(from.Record, state.All(w.config.Checkpoints.With), state.Into{Pool: &w.tensors}); err != nil {
			return fmt.Errorf("the record: %w", err)
		}
	}
	for i, n := range w.nodes {
		saved, there := from.Nodes[i]
		if n.away || !there {
			if !n.away && w.cycle.There(i) {
				w.cuts.fresh = append(w.cuts.fresh, i)
			}
			continue
		}
		if err := n.life.Load().restore(&saved, from.Number); err != nil {
			return err
		}
	}
	d := w.config.Deployment
	for i := range d.Schedule {
		c := &d.Schedule[i]
		if c.Do == world.Crash && c.At < from.At && !w.nodes[c.Node].away && !w.cycle.There(c.Node) {
			w.cycle.Undetected(c) // as far as the coordinator knows that had its state saved
			w.clock.At(c.At+d.Detect, func() { w.change(func() { w.cycle.Detect(c) }) })
		}
	}
	return nil
}

// join tells the coordinator of the nodes that begin anew in a run that goes on: they were away
// when it was saved, of which the coordinator may not have heard.
func (w *World) join() {
	for _, i := range w.cuts.fresh {
		realm{w}.Tell(world.MemberChange{Node: i})
		realm{w}.Tell(world.MemberChange{Node: i, Present: true})
	}
}
