package sim

import (
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/cluster/wire"
)

// process stands for an actor of a node, whether it exists or not. It does not
// depend on who sends: the world knows whose turn it is.
type process struct {
	world   *World
	node    int32
	id      string
	pid     *actor.PID
	mailbox *mailbox // nil where no actor of the world's spawning lives
}

var _ actor.Process = (*process)(nil)

func (p *process) SendUserMessage(_ *actor.PID, message any) {
	p.world.send(p, wire.User, message)
}

func (p *process) SendSystemMessage(_ *actor.PID, message any) {
	p.world.send(p, wire.System, message)
}

func (p *process) Stop(*actor.PID) { p.world.send(p, wire.System, &actor.Stop{}) }

// refresh forgets the mailbox of an actor that has ended.
func (p *process) refresh() {
	if _, alive := p.world.system.ProcessRegistry.GetLocal(p.id); !alive {
		p.mailbox = nil
	}
}

// alive reports whether somebody is there to receive.
func (p *process) alive() bool {
	if p.mailbox != nil {
		return true
	}
	_, ok := p.world.system.ProcessRegistry.GetLocal(p.id)
	return ok
}

// hand gives a message to the actor, or to the dead letters if there is none.
func (p *process) hand(kind wire.Kind, message any) {
	if m := p.mailbox; m != nil {
		if kind == wire.System {
			m.PostSystemMessage(message)
		} else {
			m.PostUserMessage(message)
		}
		return
	}
	target, _ := p.world.system.ProcessRegistry.GetLocal(p.id)
	if kind == wire.System {
		target.SendSystemMessage(p.pid, message)
	} else {
		target.SendUserMessage(p.pid, message)
	}
}

// spawnOptions are those with which every actor of a node, and every child of
// one, is spawned: the world's mailbox, the node's address, and these options again. The
// children have no env.
func (w *World) spawnOptions(node int32, e *env) []actor.PropsOption {
	return []actor.PropsOption{
		actor.WithSpawnFunc(func(system *actor.ActorSystem, id string, props *actor.Props,
			parent actor.SpawnerContext) (*actor.PID, error) {
			return w.spawn(node, e, system, id, props, parent)
		}),
		actor.WithSpawnMiddleware(func(next actor.SpawnFunc) actor.SpawnFunc {
			return func(system *actor.ActorSystem, id string, props *actor.Props,
				parent actor.SpawnerContext) (*actor.PID, error) {
				return w.spawn(node, nil, system, id, props.Configure(w.spawnOptions(node, nil)...), parent)
			}
		}),
	}
}

func (w *World) spawn(
	node int32, e *env, system *actor.ActorSystem, id string, props *actor.Props, parent actor.SpawnerContext,
) (*actor.PID, error) {
	box := &mailbox{world: w, node: node, env: e, process: w.process(node, id)}
	props.Configure(actor.WithMailbox(func() actor.Mailbox { return box }))
	registry := system.ProcessRegistry
	before := registry.Address
	registry.Address = w.names[node]
	defer func() { registry.Address = before }()
	pid, err := actor.DefaultSpawner(system, id, props, parent)
	if err == nil {
		box.process.mailbox = box
	}
	return pid, err
}

// process returns what stands for an actor of a node.
func (w *World) process(node int32, id string) *process {
	key := address{node, id}
	p := w.processes[key]
	if p == nil {
		p = &process{world: w, node: node, id: id, pid: actor.NewPID(w.names[node], id)}
		w.processes[key] = p
	}
	return p
}

// tick is when a control message that leaves the node at work now arrives at another. Each pair of
// nodes has a clock of its own, at whose ticks such messages do, so that they keep their order and
// those to several nodes come at several instants. Of four pairs one is fast.
func (w *World) tick(to int32) time.Duration {
	r := rand.New(rand.NewPCG(w.config.Deployment.Seed, uint64(w.source)<<32|uint64(to)))
	period := 1 + time.Duration(r.Int64N(int64(w.config.Late)))
	if r.IntN(4) == 0 {
		period = 1
	}
	return w.now + period - (w.now+time.Duration(r.Int64N(int64(period))))%period
}

type address struct {
	node int32
	id   string
}
