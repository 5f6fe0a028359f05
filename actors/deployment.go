package actors

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/protos"
)

// Coordinator is the name and address of the node that the coordinator of a run
// lives on. No node of a plan may bear it.
const Coordinator = "coordinator"

// Deployment is a run as a world sees it: who takes part, how fast each node
// computes, and which actor each one runs.
type Deployment struct {
	// Seed is what all random streams of the run are derived from.
	Seed uint64
	// Nodes are in the order of the plan.
	Nodes []Node
	// Topologies are the graphs of neighbours that a view can have; it names one by its
	// position. The first view has the first. Without any all nodes are neighbours.
	Topologies []Graph
	// Schedule is what happens to nodes during the run, in the order of time.
	Schedule []NodeChange
	// Detect is the time until the coordinator hears of a crash.
	Detect time.Duration
	// Coordinate makes the run's coordinator. Its Env names the node at position
	// len(Nodes), which is a member of no view.
	Coordinate func(env Env, control Control) (actor.Actor, error)
	// Bounded says that the coordinator ends the run by itself at some instant. A run that
	// is not bounded fails when nothing but the coordinator's timers is left to happen.
	Bounded bool
	// Observer is told of every event.
	Observer Observer
	// Strict checks every message on its way: frames are encoded and decoded,
	// tensors are checksummed at sending and delivery, released buffers poisoned.
	Strict bool

	union     Graph // of all topologies
	unionOnce sync.Once
}

// Waits returns what actors of the deployment's nodes, by their position, say that they wait for. A nil actor waits for
// nothing.
func Waits(there []actor.Actor) map[int]string {
	waits := map[int]string{}
	for i, a := range there {
		if w, ok := a.(Waiter); ok {
			if cause := w.Waiting(); cause != "" {
				waits[i] = cause
			}
		}
	}
	return waits
}

// ErrStandstill is returned when nothing is left to happen and the run has not ended.
var ErrStandstill = errors.New("the run came to a standstill: no message, job or timer is left, and nobody has ended it")

// Waiter is an actor that can say what it stands idle for. Worlds ask when a run has come to a
// standstill, while no actor handles anything.
type Waiter interface {
	// Waiting says what the actor waits for and names the node; it is empty if it waits for nothing.
	Waiting() string
}

// mostWaiting bounds how many nodes an error about a standstill tells of.
const mostWaiting = 8

// Standstill is the error of a run that has come to a standstill, with what each node waits for
// that says so: actors has the node's actor, or nil, at its position.
func (d *Deployment) Standstill(actors []actor.Actor) error {
	var waits []string
	causes := Waits(actors)
	for i := range actors {
		if cause, waiting := causes[i]; waiting {
			waits = append(waits, d.Nodes[i].Name+" waits for "+cause)
		}
	}
	if len(waits) == 0 {
		return ErrStandstill
	}
	if more := len(waits) - mostWaiting; more > 0 {
		waits = append(waits[:mostWaiting], fmt.Sprintf("and %d more wait", more))
	}
	return fmt.Errorf("%w; %s", ErrStandstill, strings.Join(waits, ", "))
}

// Control is how a run's coordinator acts on its world.
type Control struct {
	// Halt stops everything but the coordinator: what the members have under way does
	// not happen any more. The coordinator's last jobs are waited for.
	Halt func()
	// Finish ends the run.
	Finish func()
	// Announce replaces the coordinator's own view. It is called before the announcement is
	// sent to the members, whose views their worlds replace when it arrives.
	Announce func(view *protos.View)
}

// Node is one logical node of a deployment.
type Node struct {
	// Name is the node's address.
	Name string
	// Role is its part in the architecture.
	Role string
	// Profile says how fast it computes.
	Profile Profile
	// Kind makes its actor, and another one whenever the node joins after it had gone.
	Kind Kind
	// Absent marks a node that is not there when the run begins.
	Absent bool
}

// NodeEvent is what can happen to a node.
type NodeEvent uint8

// What can happen to a node.
const (
	// Crash: the node's actor and all it knows are gone at once. What it has sent is still
	// delivered; what is sent to it is not. The coordinator hears of it after Detect.
	Crash NodeEvent = iota + 1
	// Leave: like a crash that the coordinator hears of at once.
	Leave
	// Join: the node is there, with a new actor that knows nothing. If the coordinator has not
	// heard yet that its predecessor crashed, it hears that first.
	Join
	// Pause: the node's actor handles no message for a while. A step that is under way ends as it
	// would, and is noticed afterwards; nobody takes the node for gone.
	Pause
)

// NodeChange is something that happens to a node at an instant of the run.
type NodeChange struct {
	At time.Duration
	// Node is its position; that of the coordinator is the number of nodes, and it cannot Join.
	Node int
	Do   NodeEvent
	// For is how long a Pause lasts.
	For time.Duration
}

// ErrLeaderless ends a run whose coordinator the schedule takes away.
var ErrLeaderless = errors.New("the coordinator is gone, and nobody leads the run any more")

// Profile is the emulated speed of a node.
type Profile struct {
	// Cores is how many jobs of one core run side by side, at least 1.
	Cores int
	// Speed is in FLOP/s a core.
	Speed float64
	// Step, where positive, is the time of every training step.
	Step time.Duration
}

// Unlimited is the profile of a node that computes in no time, as the coordinator's.
var Unlimited = Profile{Cores: 1, Speed: math.Inf(1)}

// Cost is the time that the profile asks for a job.
func (p Profile) Cost(job Job) time.Duration {
	if job.Step && p.Step > 0 {
		return p.Step
	}
	cores := min(max(job.Cores, 1), max(p.Cores, 1))
	return p.Time(job.Work / float64(cores))
}

// longest is the time of a job that a run will not live to see the end of: a century.
const longest = 100 * 365 * 24 * time.Hour

// Time is how long one core needs for work FLOPs, at most a century.
func (p Profile) Time(work float64) time.Duration {
	return time.Duration(min(work/p.Speed*1e9, float64(longest)))
}

// View returns the first view of the deployment, of all nodes that are not Absent.
func (d *Deployment) View() *View {
	var absent []int32
	for i := range d.Nodes {
		if d.Nodes[i].Absent {
			absent = append(absent, int32(i))
		}
	}
	return d.ViewOf(&protos.View{Number: 1, Absent: absent})
}

// ViewOf returns the view that a coordinator has announced. Each call makes
// PIDs of its own, because a PID remembers the process that it was resolved to. It panics
// if the announcement does not fit the deployment.
func (d *Deployment) ViewOf(announced *protos.View) *View {
	v := &View{Number: announced.Number, Members: make([]Member, len(d.Nodes))}
	if len(d.Topologies) > 0 {
		v.graph = d.Topologies[announced.Topology]
	}
	d.unionOnce.Do(func() { d.union = union(d.Topologies) })
	v.union = d.union
	for i, n := range d.Nodes {
		v.Members[i] = Member{Name: n.Name, Role: n.Role, Present: true, Rank: -1, PID: actor.NewPID(n.Name, n.ActorID())}
	}
	for _, i := range announced.Absent {
		v.Members[i].Present = false
	}
	ranks := map[string]int{}
	for i := range v.Members {
		if m := &v.Members[i]; m.Present {
			m.Rank = ranks[m.Role]
			ranks[m.Role]++
			v.present = append(v.present, int32(i))
		}
	}
	return v
}

// MemberChange tells the coordinator that a node has gone or is there, as a message
// in its mailbox.
type MemberChange struct {
	// Node is the position of the node.
	Node int
	// Present says whether it takes part from now on.
	Present bool
}

// ActorID is the id of the node's actor: unique in a world where all nodes share
// one registry of processes.
func (n *Node) ActorID() string { return n.Name + "/" + n.Role }

// CoordinatorPID addresses the coordinator of a run.
func CoordinatorPID() *actor.PID { return actor.NewPID(Coordinator, Coordinator+"/run") }

// PanicError turns what an actor or a job panicked with into an error: the error
// itself if it is of the actor's own making, otherwise one that shows where it happened.
func PanicError(reason any) error {
	if err, ok := reason.(error); ok {
		if _, isRuntime := reason.(runtime.Error); !isRuntime {
			return err
		}
	}
	return fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
}
