package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/checkpoint"
	"github.com/gradwire/gradwire/cluster/journal"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/transport"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// party is another process of a run.
type party struct {
	placed bool
	result *protos.RunResult
	state  *protos.RunState // its latest
	err    error            // why it cannot take part, or no longer does
	first  error            // the err that it is out for, when it could not come back since
	lives  uint32           // that it had before
	again  time.Time        // from when on it may be taken in again, if it is out
	silent *time.Duration   // the instant at which nothing was heard of it, while the run waits for it
	// connection is the number of the one over which it was told to place its nodes.
	connection uint64
	asked      time.Time // when it was
}

// in reports whether the process takes part.
func (q *party) in() bool { return q.placed && q.err == nil && q.result == nil }

// missed reports whether the run is without the process, or was once it had begun.
func (q *party) missed() bool { return !q.placed || q.err != nil || q.lives > 0 }

// How long a process stays out at least, if it did not come back by itself.
const (
	leavePause  = 3 * time.Second  // of one that says that it is going, and may be about to
	refusePause = 10 * time.Second // of one that could not place its nodes
)

// heard takes in what another process of the run says. What an earlier life of it has said is not
// heeded: messages come in their order, and the first of a life, but for what it needs to place its
// nodes, is RunPlaced.
func (c *conductor) heard(name string, m proto.Message) {
	switch m := m.(type) {
	case *protos.AskSamples:
		if c.stage != nil {
			c.process.begin(func() { c.supply(name, m) })
		}
		return
	case *protos.AskState:
		if c.stage != nil {
			c.process.begin(func() { c.supplyState(name) })
		}
		return
	case *protos.RunPlaced:
		c.note(name, func(q *party) { q.place(m) })
		return
	}
	c.mu.Lock()
	q := c.parties[name]
	heeded := q != nil && q.in()
	c.mu.Unlock()
	if !heeded {
		return
	}
	switch m := m.(type) {
	case *protos.RunEvents:
		if c.events != nil {
			c.events.Add(name, m)
		}
	case *protos.StatePart:
		c.gather(name, m)
	case *protos.RunState:
		c.note(name, func(q *party) { q.state = m })
	case *protos.NodeChanged:
		if w := c.World(); w != nil && slices.Contains(c.NodesOf(name), int(m.Node)) {
			if m.Leaving {
				c.history.HandsOver(int(m.Node))
			}
			w.Change(world.MemberChange{Node: int(m.Node), Present: m.Present, Leaving: m.Leaving,
				Departed: m.Departed})
		}
	case *protos.LeaveRun:
		c.process.begin(func() { c.answerLeave(name, m.HandOver) })
	case *protos.RunResult:
		if m.Left {
			c.gone(name, "it has left the run", leavePause)
			return
		}
		c.note(name, func(q *party) { q.result = m })
		if m.Error != "" {
			c.end(fmt.Errorf("process %s: %s", name, m.Error))
		}
	}
}

// place takes in whether the process has placed its nodes.
func (q *party) place(m *protos.RunPlaced) {
	switch {
	case m.Lives != q.lives || q.err != nil:
	case m.Unusable:
		q.err = fmt.Errorf("its checkpoint %w: %s", checkpoint.ErrUnusable, m.Error)
	case m.Error != "":
		q.err = errors.New(m.Error)
	default:
		q.placed = true
	}
}

// silent takes note that a process has not been heard of for a while. The run goes on without it,
// until it is heard of again, if it can. Where there are several, it is seen first whether the
// others are silent as well: a process that hears nobody is likely to be cut off itself, as a
// machine is that has slept, and throws nobody out.
func (c *conductor) silent(name, why string) {
	c.mu.Lock()
	q := c.parties[name]
	in := c.begun && q != nil && q.in()
	c.mu.Unlock()
	switch node := c.needed(name); {
	case !in:
	case node != "":
		c.waitFor(name, fmt.Sprintf("%s is silent (%s); the run waits for it, because %s lives there", name, why, node))
	case len(c.parties) > 1:
		c.process.begin(func() { c.judgeSilence(name, why, beat) })
	default:
		c.gone(name, why, 0)
	}
}

// absent handles a process that has become absent. If the run waits for the process, and replicas
// have all the state that the process hosts, the run goes on without it.
func (c *conductor) absent(name, why string) {
	c.mu.Lock()
	q := c.parties[name]
	in := c.begun && q != nil && q.in()
	c.mu.Unlock()
	switch {
	case !in || c.needed(name) == "" || c.irreplaceable(name):
	case len(c.parties) > 1:
		c.process.begin(func() { c.judgeSilence(name, why, 0) })
	default:
		c.gone(name, why, 0)
	}
}

// irreplaceable reports whether a process hosts a server without replicas or the last model.
func (c *conductor) irreplaceable(name string) bool {
	nodes := c.NodesOf(name)
	if c.history.HoldLastModel(c.now(), nodes) {
		return true
	}
	return slices.ContainsFunc(nodes, func(i int) bool {
		role := c.stage.Point.Spec.Roles[i]
		return !role.Trains && !role.Copied
	})
}

// How long it takes until others that are silent as well are known to be, and until those who are
// not are heard again when the first of them is: a connection that was cut off tries again after
// pauses that grow.
const (
	beat     = 300 * time.Millisecond
	hearsAll = 10 * time.Second
)

// judgeSilence goes on without a process that is still silent after a while, if another one is
// heard of.
func (c *conductor) judgeSilence(name, why string, after time.Duration) {
	select {
	case <-time.After(after):
	case <-c.stop.Done():
		return
	}
	c.mu.Lock()
	q := c.parties[name]
	judged, known := c.begun && q.in() && !c.Up(name), q.silent != nil
	hears := false
	for other, q := range c.parties {
		hears = hears || q.in() && c.Up(other)
	}
	c.mu.Unlock()
	switch {
	case !judged:
	case hears:
		c.gone(name, why, 0)
	case !known:
		c.waitFor(name, fmt.Sprintf("%s is silent (%s), as all others are; the run waits for them, because process %s "+
			"may be cut off", name, why, c.process.config.Name))
	}
}

// waitFor has the run wait for a process that is silent.
func (c *conductor) waitFor(name, why string) {
	c.log("%s", why)
	now := c.now()
	c.note(name, func(q *party) { q.silent = &now })
}

// heardAgain takes note that a process that the run has waited for was only silent.
func (c *conductor) heardAgain(name string) {
	var since *time.Duration
	c.note(name, func(q *party) {
		if q.in() {
			since = q.silent
		}
		q.silent = nil
	})
	if since == nil {
		return
	}
	from, to := max(*since-silence, 0), c.now()
	c.interrupted(to)
	c.log("%s is heard of again", name)
	what := fmt.Sprintf("was silent until %s, with its process %s, and the run waited for it", journal.Seconds(to),
		name)
	harm := record.NoHarm
	if to-from >= pausedAfter {
		harm = record.ToTimes
	}
	c.history.Add(from, c.namesOf(name)[0], what, harm)
	for _, other := range c.remaining() {
		if other != name && !c.irreplaceable(other) && !c.Up(other) {
			c.process.begin(func() { c.judgeSilence(other, transport.ErrAbsent.Error(), hearsAll) })
		}
	}
}

// needed names a node of a process that the run cannot do without: because nobody can stand in for
// it, or because nobody else has a model. A new life of it would have lost what it alone knows. It
// is empty if there is none.
func (c *conductor) needed(name string) string {
	if node := c.needsOf(name); node != "" {
		return node
	}
	nodes := c.NodesOf(name)
	if len(nodes) > 0 && c.history != nil && c.history.HoldLastModel(c.now(), nodes) {
		return c.stage.Names[nodes[0]]
	}
	return ""
}

// isGone stands before why a process is gone.
const isGone = "it is gone: "

// crashed notes that a process has died, and has neither left nor become unreachable.
func (c *conductor) crashed(name string) {
	c.mu.Lock()
	q := c.parties[name]
	soon := q != nil && q.err == nil && q.result == nil && !q.asked.IsZero() && time.Since(q.asked) < deathSpan
	c.mu.Unlock()
	if soon && c.died != nil {
		c.died(name)
	}
}

// gone takes note that a process is gone: its nodes have crashed. It is taken in
// again when it comes back, or, if its connection is fine, after a pause.
func (c *conductor) gone(name, why string, pause time.Duration) {
	news := false
	c.note(name, func(q *party) {
		if news = q.err == nil; news {
			q.err, q.again, q.silent = errors.New(isGone+why), time.Now().Add(pause), nil
		}
	})
	if news {
		c.left(name)
	}
}

// left lets the coordinator know of the nodes of a process that is gone, once the run has begun.
func (c *conductor) left(name string) {
	c.mu.Lock()
	q := c.parties[name]
	var why error
	if q != nil && c.begun {
		why = q.err
	}
	c.mu.Unlock()
	if why == nil {
		return
	}
	c.log("without %s from now on: %v", name, why)
	nodes, now := c.NodesOf(name), c.now()
	c.history.Gone(now, name, strings.TrimPrefix(why.Error(), isGone), nodes, c.unheard(name))
	c.change(name, false)
	c.events.Gone(name)
}

// unheard returns how long a process has been silent.
func (c *conductor) unheard(name string) time.Duration {
	if peer, known := c.process.node.Peer(name); known && peer.State != transport.Up {
		return time.Since(peer.Heard)
	}
	return 0
}

// change lets the coordinator know that the nodes of a process are there, or gone.
func (c *conductor) change(name string, present bool) {
	w := c.World()
	for _, i := range c.NodesOf(name) {
		if w != nil {
			w.Change(world.MemberChange{Node: i, Present: present})
		}
	}
}

// back has a process that was gone take part again, unless it is about to leave: a process that
// leaves may connect again before it ends.
func (c *conductor) back(name string) {
	if !c.process.holders.Leaves(name) {
		c.placeAgain(name)
	}
}

// placeAgain has a process that was gone place its nodes again, with new actors.
func (c *conductor) placeAgain(name string) {
	c.mu.Lock()
	q := c.parties[name]
	if q == nil || q.err == nil || !c.begun {
		c.mu.Unlock()
		return
	}
	first := cmp.Or(q.first, q.err)
	*q = party{lives: q.lives + 1}
	m := proto.CloneOf(c.message)
	m.Start, m.Lives, m.Resumes = int64(c.now()), q.lives, false
	if w := c.World(); w != nil {
		m.Cuts = w.Cuts()
	}
	for _, other := range c.names {
		if c.parties[other].err != nil {
			m.Gone = append(m.Gone, other)
		}
	}
	c.mu.Unlock()
	err := c.place(name, m)
	if err == nil {
		err = c.await(c.stop, func(other string, q *party) (bool, error) {
			if other != name || q.lives != m.Lives {
				return true, nil
			}
			return c.placed(name, q)
		})
	}
	if w := c.World(); err == nil && w != nil && w.Cuts() > m.Cuts+wire.Cuts/4 {
		err = fmt.Errorf("while its nodes were placed the run was saved %d times, and they know nothing of that",
			w.Cuts()-m.Cuts)
	}
	if err == nil {
		c.events.Started(name, time.Duration(m.Start))
		err = c.process.tell(name, c.Number(), &protos.BeginRun{})
	}
	c.mu.Lock()
	current := q.lives == m.Lives
	if current && err != nil {
		q.first, q.err, q.again = first, fmt.Errorf("%w; it could not come back: %w", first,
			err), time.Now().Add(refusePause)
	}
	c.mu.Unlock()
	switch {
	case !current: // it was gone meanwhile, and is coming back once more
	case err != nil:
		c.events.Gone(name)
		c.log("%s is back and stays out: %v", name, err)
	default:
		c.log("%s is back", name)
		nodes, now := c.NodesOf(name), c.now()
		c.interrupted(now, nodes...)
		c.history.Back(now, nodes)
		c.change(name, true)
		c.left(name) // if it has gone in between
	}
}

// remaining are the other processes of the run that are there.
func (c *conductor) remaining() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.names {
		if c.parties[name].err == nil {
			names = append(names, name)
		}
	}
	return names
}

// tellAll tells the other processes of the run that are there.
func (c *conductor) tellAll(m proto.Message) {
	for _, name := range c.remaining() {
		c.process.report(name, c.Number(), m)
	}
}
