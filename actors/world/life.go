package world

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/state"
)

// NodeEvent is what can happen to a node.
type NodeEvent uint8

// What can happen to a node.
const (
	// Crash: the node's actor and all it knows are gone at once. What it has sent is still
	// delivered, but not sent again; what is sent to it is not delivered. The coordinator hears of
	// it after Detect.
	Crash NodeEvent = iota + 1
	// Leave: like a crash that the coordinator hears of at once. An [actors.Leaver] hands over what
	// it holds first.
	Leave
	// Join: the node is there, with a new actor that knows nothing. If the coordinator has not
	// heard yet that its predecessor crashed, it hears that first. A node that still hands over
	// what it holds joins as soon as it has.
	Join
	// Pause: the node's actor handles no message for a while. A step that is under way ends as it
	// would, and is noticed afterwards; nobody takes the node for gone.
	Pause
)

// NodeChange is something that happens to a node at an instant of the run.
type NodeChange struct {
	At time.Duration
	// Node is its position; the coordinator's is the number of nodes, and it cannot Join.
	Node int
	Do   NodeEvent
	// For is how long a Pause lasts.
	For time.Duration
}

// Ends reports whether the change ends the life of its node.
func (c *NodeChange) Ends() bool { return c.Do == Crash || c.Do == Leave }

// MemberChange tells the coordinator that a node has gone or is there, as a message
// in its mailbox.
type MemberChange struct {
	// Node is the position of the node.
	Node int
	// Present says whether it takes part from now on.
	Present bool
	// Leaving says that it does not, and hands over what it holds; see [actors.Leaver]. Departed
	// says that it has.
	Leaving, Departed bool
}

var _ = state.Register[MemberChange]("world.MemberChange")

// State declares the change.
func (m *MemberChange) State(s *state.State) {
	state.Int(s, "node", &m.Node)
	s.Bool("present", &m.Present)
	s.Bool("leaving", &m.Leaving)
	s.Bool("departed", &m.Departed)
}

// ErrLeaderless ends a run whose coordinator the schedule takes away.
var ErrLeaderless = errors.New("the coordinator is gone, and nobody leads the run")

// Inhabitant is an actor to be placed on a node.
type Inhabitant struct {
	ID      string
	Profile Profile
	Kind    actors.Kind
}

// Realm is a world as the life cycle of its nodes needs it.
type Realm interface {
	// Now is the instant.
	Now() time.Duration
	// Place gives a node a new actor, which knows nothing, and says so with Settle.
	Place(node int) error
	// Remove takes a node's actor with everything that it knows out of the world, and says so with
	// Settle. With left it has left, and what it has sent is still delivered, if need be by sending
	// it again.
	Remove(node int, left bool)
	// Hold has a node's actor handle nothing for a while.
	Hold(node int, d time.Duration)
	// Tell lets the coordinator know.
	Tell(change MemberChange)
	// Fail ends the run.
	Fail(err error)
}

// LifeCycle carries out what a schedule does to the nodes of a realm. It has no clock: the realm
// calls Happen when a change is due, and Detect when the coordinator is to hear of a crash.
type LifeCycle struct {
	realm      Realm
	deployment *Deployment
	actors     []actor.Actor // by node, the coordinator's last; nil where none lives
	unheard    []*NodeChange // by node: the crash that the coordinator has not heard of
	leaving    []bool        // by node: its actor, a Leaver, hands over what it holds
	returns    []bool        // by node: it joins as soon as it has
	ending     bool          // the run is ending: the coordinator hears of crashes at once
}

// NewLifeCycle returns the life cycle of a deployment's nodes, on which no actor lives yet.
func NewLifeCycle(realm Realm, d *Deployment) *LifeCycle {
	n := len(d.Nodes)
	return &LifeCycle{realm: realm, deployment: d, actors: make([]actor.Actor, n+1), unheard: make([]*NodeChange, n),
		leaving: make([]bool, n+1), returns: make([]bool, n+1)}
}

// Populate places the actors of the nodes that are there when the run begins, or goes on. The
// coordinator's comes last.
func (l *LifeCycle) Populate(there func(node int) bool) error {
	for i := range l.actors {
		if !there(i) {
			continue
		}
		if err := l.realm.Place(i); err != nil {
			return err
		}
	}
	return nil
}

// Settle takes note of the actor that lives on a node from now on; nil for none.
func (l *LifeCycle) Settle(node int, a actor.Actor) { l.actors[node], l.leaving[node] = a, false }

// Actor returns the actor that lives on a node, or nil.
func (l *LifeCycle) Actor(node int) actor.Actor { return l.actors[node] }

// State declares the crashes unknown to the coordinator, the leaving nodes that still hand over their
// state, and the nodes that rejoin afterwards.
func (l *LifeCycle) State(s *state.State) {
	unheard := make([]int, len(l.unheard)) // position of the crash in the schedule, plus 1; 0 for none
	for i := range l.deployment.Schedule {
		if c := &l.deployment.Schedule[i]; c.Node < len(unheard) && l.unheard[c.Node] == c {
			unheard[c.Node] = i + 1
		}
	}
	if state.Ints(s, "unheard", &unheard); s.Restoring() {
		for node, i := range unheard {
			if i > 0 {
				l.unheard[node] = &l.deployment.Schedule[i-1]
			}
		}
	}
	state.Bools(s, "leaving", &l.leaving)
	state.Bools(s, "returns", &l.returns)
	s.Bool("ending", &l.ending)
}

// There reports whether an actor lives on a node.
func (l *LifeCycle) There(node int) bool { return l.actors[node] != nil }

// Waits is what the nodes wait for, by their position.
func (l *LifeCycle) Waits() map[int]string {
	return Waits(l.actors[:len(l.deployment.Nodes)])
}

// Happen does to a node what the schedule says, and reports whether it has crashed. What cannot
// happen, such as the crash of a node that is not there, does not.
func (l *LifeCycle) Happen(c *NodeChange) (crashed bool) {
	there := l.There(c.Node)
	switch {
	case c.Do == Pause && there:
		l.realm.Hold(c.Node, c.For)
	case c.Node == len(l.unheard):
		l.realm.Fail(fmt.Errorf("at %v: %w", l.realm.Now(), ErrLeaderless))
	case c.Do == Join && !there:
		l.join(c.Node)
	case c.Do == Join && l.leaving[c.Node]:
		l.returns[c.Node] = true
	case c.Do == Leave && there && l.leave(c.Node):
	case c.Ends() && there:
		l.realm.Remove(c.Node, c.Do == Leave)
		l.returns[c.Node] = false
		if c.Do == Crash && !l.ending {
			l.unheard[c.Node] = c
			return true
		}
		l.realm.Tell(MemberChange{Node: c.Node})
	}
	return false
}

// leave has a node's actor hand over what it holds, and reports whether it is one that does.
func (l *LifeCycle) leave(node int) bool {
	if !l.HandsOver(node) {
		return false
	}
	if !l.leaving[node] {
		l.leaving[node] = true
		l.realm.Tell(MemberChange{Node: node, Leaving: true})
	}
	return true
}

// HandsOver reports whether a node's actor is a [actors.Leaver].
func (l *LifeCycle) HandsOver(node int) bool {
	_, hands := l.actors[node].(actors.Leaver)
	return hands
}

// Leaving reports whether a node's actor hands over what it holds before it is gone.
func (l *LifeCycle) Leaving(node int) bool { return l.leaving[node] }

// Depart removes a node whose actor has handed over what it held.
func (l *LifeCycle) Depart(node int) {
	if !l.leaving[node] {
		return
	}
	l.realm.Remove(node, true)
	l.realm.Tell(MemberChange{Node: node, Departed: true})
	if l.returns[node] {
		l.returns[node] = false
		l.join(node)
	}
}

// join gives a node a new actor, after the coordinator has heard of the end of the one before.
func (l *LifeCycle) join(node int) {
	if crash := l.unheard[node]; crash != nil {
		l.Detect(crash)
	}
	if err := l.realm.Place(node); err != nil {
		l.realm.Fail(err)
		return
	}
	l.realm.Tell(MemberChange{Node: node, Present: true})
}

// Undetected takes note of a crash before the run went on, of which the coordinator has not heard.
func (l *LifeCycle) Undetected(crash *NodeChange) { l.unheard[crash.Node] = crash }

// End reports past and future crashes to the coordinator at once, because the last evaluation waits
// for the answers of all nodes in the view.
func (l *LifeCycle) End() {
	l.ending = true
	for _, crash := range l.unheard {
		if crash != nil {
			l.Detect(crash)
		}
	}
}

// Detect lets the coordinator hear of a crash, unless it has.
func (l *LifeCycle) Detect(crash *NodeChange) {
	if l.unheard[crash.Node] == crash {
		l.unheard[crash.Node] = nil
		l.realm.Tell(MemberChange{Node: crash.Node})
	}
}
