package world

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// Deployment is a run as a world sees it: who takes part, how fast each node
// computes, and which actor each one runs.
type Deployment struct {
	// Seed is what all random streams of the run are derived from.
	Seed uint64
	// Nodes are in the order of the plan.
	Nodes []Node
	// Topologies are the graphs of neighbours that a view can have; it names one by its
	// position. The first view has the first. Without any all nodes are neighbours.
	Topologies []actors.Graph
	// Schedule is what happens to nodes during the run, in the order of time.
	Schedule []NodeChange
	// Detect is the time until the coordinator hears of a crash.
	Detect time.Duration
	// Coordinate makes the run's coordinator. Its Env names the node at position
	// len(Nodes), which is a member of no view.
	Coordinate func(env actors.Env, control Control) (actor.Actor, error)
	// Bounded says that the coordinator ends the run by itself at some instant. A run that
	// is not bounded fails when nothing but the coordinator's timers is left to happen.
	Bounded bool
	// Until is the time at which a bounded run ends; 0 if unknown in advance.
	Until time.Duration
	// Lossy says that links may lose messages for good; see [actors.Env].
	Lossy bool
	// Reliable says that sessions have each message handled once and in order, whatever links do.
	Reliable bool
	// Observer receives every event.
	Observer Observer
	// Strict checks every message on its way: frames are encoded and decoded,
	// tensors are checksummed at sending and delivery, released buffers poisoned.
	Strict bool
}

// Node is one logical node of a deployment.
type Node struct {
	// Name is the node's address.
	Name string
	// Role is its part in the architecture.
	Role string
	// Site is a number for where it is; 0 for all where that is not known.
	Site int32
	// Profile says how fast it computes.
	Profile Profile
	// Kind makes its actor, and another one whenever the node joins after it had gone.
	Kind actors.Kind
	// Absent marks a node that is not there when the run begins.
	Absent bool
}

// ActorID is the id of the node's actor: unique in a world where all nodes share
// one registry of processes.
func (n *Node) ActorID() string { return n.Name + "/" + n.Role }

// Control is how a run's coordinator acts on its world.
type Control struct {
	// Halt stops everything but the coordinator: what the members have under way does
	// no longer happen. The coordinator's last jobs are waited for.
	Halt func()
	// Finish ends the run.
	Finish func()
	// Announce replaces the coordinator's own view. It is called before the announcement is
	// sent to the members, whose views their worlds replace when it arrives.
	Announce func(view *protos.View)
	// Ending reports crashes to the coordinator at once, and cuts charges short, because the last
	// evaluation waits for the answer of every node in the view.
	Ending func()
}

// Rousing marks the message of a timer at which a coordinator gets members going that may have come
// to rest: until then a run does not stand still for good.
type Rousing interface{ Rouses() }

// Observer gets every event of a run, one at a time. Worlds in real time call it from many
// goroutines.
type Observer interface {
	Observe(at time.Duration, node int, event actors.Event)
}

// Recorded is an event of a node, by its position, as an Observer is told of it; the coordinator's
// position is the number of nodes.
type Recorded struct {
	At   time.Duration
	Node int
	actors.Event
}

// Names are the addresses of all nodes in their order, the coordinator's last.
func (d *Deployment) Names() []string {
	names := make([]string, 0, len(d.Nodes)+1)
	for i := range d.Nodes {
		names = append(names, d.Nodes[i].Name)
	}
	return append(names, actors.Coordinator)
}

// Present reports whether the plan has a node be there at an instant, a paused one included: it
// begins so, or joins, and neither crashes nor leaves until then, nor at the instant.
func (d *Deployment) Present(node int, at time.Duration) bool {
	if node == len(d.Nodes) {
		return d.Coordinate != nil
	}
	there := !d.Nodes[node].Absent
	for _, c := range d.Schedule {
		if c.Node == node && c.At <= at && c.Do != Pause {
			there = c.Do == Join
		}
	}
	return there
}

// Since is when a node that is there at an instant joined by the schedule; 0 if it was there from
// the beginning.
func (d *Deployment) Since(node int, at time.Duration) (joined time.Duration) {
	there := node < len(d.Nodes) && !d.Nodes[node].Absent
	for _, c := range d.Schedule {
		if c.Node != node || c.At > at || c.Do == Pause {
			continue
		}
		if c.Do == Join && !there {
			joined = c.At
		}
		there = c.Do == Join
	}
	return joined
}

// Inhabitant is the actor of a node as it is placed: the id, the emulated speed and the kind. The
// coordinator, at position len(Nodes), computes in no time, and acts on the world by control.
func (d *Deployment) Inhabitant(node int, control func(actors.Env) Control) Inhabitant {
	if node < len(d.Nodes) {
		n := &d.Nodes[node]
		return Inhabitant{ID: n.ActorID(), Profile: n.Profile, Kind: n.Kind}
	}
	return Inhabitant{ID: actors.CoordinatorPID().Id, Profile: Unlimited,
		Kind: func(e actors.Env) (actor.Actor, error) {
			return d.Coordinate(e, control(e))
		}}
}
