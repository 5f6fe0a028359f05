package live

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// life is one incarnation of a node. It has its own actor system, so that what a
// former actor still does reaches no other and stands in nobody's way.
type life struct {
	node    *node
	number  int // of lives before it
	system  *actor.ActorSystem
	cores   *world.Cores // guarded by World.network
	walk    *world.Walk  // of the actor's handlers
	pid     *actor.PID   // of the node's actor, which lives from its placing on
	mailbox *mailbox
	posts   posts
	gone    chan struct{} // closed when the node crashes or leaves
	instant instant
	env     *env // of the actor, which is there when it has been placed
	actor   actor.Actor
	locals  int // that the actor system knows then
	started atomic.Bool

	// owed are the instants at which the steps under way should be done. It is guarded by
	// World.network.
	owed []time.Duration

	unreported []*protos.Message // steps that the handler at work has recorded
}

func (n *node) newLife(number int) *life {
	l := &life{
		node: n, number: number, system: door.NewSystem(), cores: world.NewCores(n.Profile.Cores),
		walk: n.Profile.Walk(n.world.config.Deployment.Seed, world.Owner(n.ID, number)),
		pid:  actor.NewPID(n.name(), n.ID), gone: make(chan struct{}),
	}
	l.mailbox = newMailbox(l)
	l.system.ProcessRegistry.Address = n.name()
	l.system.ProcessRegistry.RegisterAddressResolver(l.resolve)
	l.system.EventStream.Subscribe(func(e any) {
		if _, ok := e.(*actor.DeadLetterEvent); ok && !l.over() {
			n.world.lost.Add(1)
		}
	})
	l.instant.end()
	return l
}

// over reports whether this life is: nothing is sent, delivered or handled in it.
func (l *life) over() bool {
	select {
	case <-l.gone:
		return true
	default:
		return l.node.over()
	}
}

// concluded reports whether charges no longer delay the actor: the run is ending, or this life is over.
func (l *life) concluded() bool {
	select {
	case <-l.node.world.concluded:
		return true
	default:
		return l.over()
	}
}

// place makes the actor.
func (l *life) place() error {
	w := l.node.world
	l.env = &env{node: l.node, life: l, owner: world.Owner(l.pid.Id, l.number)}
	announced := w.announced.Load()
	if from, there := w.resumes(int(l.node.index)); there {
		announced = from.View
	}
	l.env.set(announced)
	a, err := l.node.Kind(l.env)
	if err != nil {
		return fmt.Errorf("node %s: %w", l.node.name(), err)
	}
	l.actor = a
	number := w.Cuts()
	l.mailbox.begins(number)
	if w.door.Cuts != nil {
		w.sendsAfter(l.node, number)
	}
	w.stopped.Add(1)
	props := actor.PropsFromProducer(func() actor.Actor { return &performer{l.env} },
		actor.WithGuardian(guardian{l.env}), actor.WithMailbox(func() actor.Mailbox { return l.mailbox }))
	if _, err := l.system.Root.SpawnNamed(props, l.pid.Id); err != nil {
		w.stopped.Done()
		return fmt.Errorf("node %s: %w", l.node.name(), err)
	}
	l.locals = door.Locals(l.system)
	w.Locked(func() { w.cycle.Settle(int(l.node.index), a) })
	return nil
}

// report tells the coordinator of the steps that the handler at work has recorded. It is called
// when that handler is done, or is about to wait: a run that ends with a step contains, as in
// virtual time, what was sent together with it.
func (l *life) report() {
	for _, m := range l.unreported {
		l.system.Root.Send(actors.CoordinatorPID(), m)
	}
	clear(l.unreported)
	l.unreported = l.unreported[:0]
}

// tell puts a message that was due at an instant into the actor's own mailbox.
func (l *life) tell(message any, due time.Duration) {
	switch {
	case l.over():
		door.Release(message)
	case l.alive(l.pid.Id):
		l.mailbox.postDue(message, due)
	default:
		l.system.Root.Send(l.pid, message) // a dead letter
	}
}

// resolve hands out the process behind which the door of this node stands.
func (l *life) resolve(pid *actor.PID) (actor.Process, bool) {
	w := l.node.world
	to, ok := w.door.Node(pid.Address)
	if !ok {
		return nil, false
	}
	return &remote{source: l, destination: w.nodes[to], id: pid.Id}, true
}

// repeats reports whether a frame has a life start that was started before. A node that was back,
// away and back before the coordinator handled the news is told to start twice: the former was
// meant for a life that is over and did not get it.
func (l *life) repeats(f *wire.Frame) bool {
	head, starts := f.Head.(*protos.Start)
	return starts && l.started.Swap(true) && head.Joins
}

// arrive hands a frame to the actor that it is for.
func (l *life) arrive(f *wire.Frame) {
	if l.repeats(f) {
		f.Release()
		return
	}
	target := actor.NewPID(l.node.name(), f.Target)
	process, there := l.system.ProcessRegistry.GetLocal(f.Target)
	if f.Kind == wire.System {
		process.SendSystemMessage(target, f.Head)
		return
	}
	var message any = f.Head
	if !door.Protoactor(f.Head) {
		message = protos.NewMessage(f.Head, f.Tensors...)
	}
	if f.SenderID != "" {
		message = &actor.MessageEnvelope{Message: message, Sender: actor.NewPID(f.SenderAddress, f.SenderID)}
	}
	if !there || f.Target != l.pid.Id {
		process.SendUserMessage(target, message)
		return
	}
	l.mailbox.postFrame(f, message, l.node.world.clock.Now()-f.Late)
}

// alive reports whether an actor of this life is there to receive.
func (l *life) alive(id string) bool {
	_, ok := l.system.ProcessRegistry.GetLocal(id)
	return ok
}
