package live

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/protos"
)

// env is the world as one actor sees it.
type env struct {
	node    *node
	view    *actors.View
	streams actors.Streams
	began   time.Duration // when the handler at work began
	charged time.Duration // what it has charged so far
}

var _ actors.Env = (*env)(nil)

func (e *env) Node() int                   { return int(e.node.index) }
func (e *env) View() *actors.View          { return e.view }
func (e *env) Now() time.Duration          { return e.node.world.clock.now() }
func (e *env) Tensors() *protos.TensorPool { return &e.node.world.tensors }
func (e *env) Fail(err error)              { e.node.world.fail(err) }

func (e *env) Rand(purpose string) *rand.Rand {
	return e.streams.Get(e.node.world.config.Deployment.Seed, e.node.pid.Id, purpose)
}

func (e *env) Latency(node int) (d time.Duration) {
	w := e.node.world
	w.Locked(func() { d = w.config.Network.Edge(e.node.index, int32(node)).Delay(w.clock.now()) })
	return d
}

func (e *env) After(d time.Duration, msg any) actors.Timer {
	c := e.node.world.clock
	return actors.Timer{Clock: c, ID: c.at(c.now()+d, func() { e.tell(msg) })}
}

// tell puts a message into the actor's own mailbox.
func (e *env) tell(msg any) { e.node.system.Root.Send(e.node.pid, msg) }

// Compute pads a job to the time that the plan gives it; one that takes longer is late.
func (e *env) Compute(job actors.Job) {
	w := e.node.world
	if job.Lag > 0 {
		w.pool.submit(evaluations, func() { w.compute(e, job.Do, e.tell) })
		return
	}
	var due time.Duration
	w.Locked(func() { due = e.node.cores.Book(w.clock.now(), job.Cores, e.node.profile.Cost(job)) })
	w.pool.submit(steps, func() {
		w.compute(e, job.Do, func(result any) {
			w.clock.at(due, func() {
				w.late.steps.add(w.clock.now() - due)
				e.tell(result)
			})
		})
	})
}

// compute does a job; a panic ends the run.
func (w *World) compute(e *env, do func() any, then func(result any)) {
	defer e.recover()
	then(do())
}

// Charge lets the rest of the handler, and with it what it sends and the actor's
// next message, wait until the work would be done.
func (e *env) Charge(work float64) {
	e.charged += e.node.profile.Time(work)
	until := e.began + e.charged
	if left := until - e.Now(); left > 2*time.Millisecond {
		time.Sleep(left - time.Millisecond)
	}
	for e.Now() < until {
		runtime.Gosched() // a sleep below 1 ms would take longer than that
	}
}

func (e *env) Record(event actors.Event) {
	w := e.node.world
	if o := w.config.Deployment.Observer; o != nil {
		w.observe.Lock()
		o.Observe(e.Now(), int(e.node.index), event)
		w.observe.Unlock()
	}
	if event.Kind != actors.StepDone {
		return
	}
	m, head := w.progress.Get()
	head.Node, head.Step, head.Samples = e.node.index, event.Step, uint32(event.Samples)
	e.node.system.Root.Send(actors.CoordinatorPID(), m)
}

// recover turns a panic into the end of the run.
func (e *env) recover() {
	reason := recover()
	if reason == nil {
		return
	}
	w := e.node.world
	w.fail(fmt.Errorf("node %s, actor %s: %w", w.names[e.node.index], e.node.pid.Id, actors.PanicError(reason)))
}

// performer is the actor of a node, with its handlers timed and its panics caught.
type performer struct {
	actor actor.Actor
	env   *env
}

func (p *performer) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Stopped); ok {
		defer p.env.node.world.stopped.Done()
	}
	defer p.env.recover()
	p.env.began, p.env.charged = p.env.Now(), 0
	p.actor.Receive(ctx)
}
