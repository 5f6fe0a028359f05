package actors

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"
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
}

// ErrStandstill is returned when nothing is left to happen and the run has not ended.
var ErrStandstill = errors.New("the run came to a standstill: no message, job or timer is left, and nobody has ended it")

// Control is how a run's coordinator acts on its world.
type Control struct {
	// Halt stops everything but the coordinator: what the members have under way does
	// not happen any more. The coordinator's last jobs are waited for.
	Halt func()
	// Finish ends the run.
	Finish func()
}

// Node is one logical node of a deployment.
type Node struct {
	// Name is the node's address.
	Name string
	// Role is its part in the architecture.
	Role string
	// Profile says how fast it computes.
	Profile Profile
	// Kind makes its actor.
	Kind Kind
}

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

// View returns the first view of the deployment: all its nodes. Each call makes
// PIDs of its own, because a PID remembers the process that it was resolved to.
func (d *Deployment) View() *View {
	v := &View{Number: 1, Members: make([]Member, len(d.Nodes))}
	ranks := map[string]int{}
	for i, n := range d.Nodes {
		v.Members[i] = Member{Name: n.Name, Role: n.Role, Rank: ranks[n.Role], PID: actor.NewPID(n.Name, n.ActorID())}
		ranks[n.Role]++
	}
	return v
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
