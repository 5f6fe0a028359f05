package live

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/live/rt"
	"github.com/gradwire/gradwire/protos"
)

// env is the world as one actor sees it.
type env struct {
	node      *node
	life      *life
	view      *actors.View
	announced *protos.View // announcement of view; nil for the first view
	owner     string       // of the random streams
	streams   world.Streams
}

var _ actors.Env = (*env)(nil)

func (e *env) Node() int                   { return int(e.node.index) }
func (e *env) View() *actors.View          { return e.view }
func (e *env) Now() time.Duration          { return e.life.now() }
func (e *env) Tensors() *protos.TensorPool { return &e.node.world.tensors }

// Fail ends the run, unless the actor's part in it is over.
func (e *env) Fail(err error) {
	if !e.life.over() {
		e.node.world.fail(err)
	}
}

// Depart takes the node out of the world after this handler.
func (e *env) Depart() {
	w := e.node.world
	w.clock.At(w.clock.Now(), func() { w.change(func() { w.cycle.Depart(int(e.node.index)) }) })
}

// Post puts up places for what other worlds send.
func (e *env) Post(memory *protos.Tensor, places iter.Seq[actors.Place]) {
	if e.node.world.partial {
		e.life.posts.with(func(p *world.Posts) { p.Put(memory, places) })
	}
}

// Unpost withdraws one.
func (e *env) Unpost(name protos.PlaceName) {
	if e.node.world.partial {
		e.life.posts.with(func(p *world.Posts) { p.Remove(name) })
	}
}

func (e *env) Rand(purpose string) *rand.Rand {
	return e.streams.Get(e.node.world.config.Deployment.Seed, e.owner, purpose)
}

func (e *env) Latency(node int) (d time.Duration) {
	w := e.node.world
	w.Locked(func() { d = w.config.Network.Delay(e.node.index, int32(node), e.life.now()) })
	if measured := w.config.RoundTrip; measured != nil && w.nodes[node].away {
		d += measured(node) / 2
	}
	return d
}

func (e *env) Lossy() bool {
	w := e.node.world
	return w.config.Deployment.Lossy && w.sessions == nil
}

func (e *env) After(d time.Duration, msg any) actors.Timer {
	due := e.life.now() + max(d, 0)
	if e.life.over() {
		return actors.Timer{}
	}
	m := e.life.mailbox
	return actors.Timer{Clock: &m.timers, ID: m.timers.enter(timer{at: due, message: msg})}
}

// Compute pads a job to the time that the plan gives it; one that takes longer is late.
func (e *env) Compute(job actors.Job) {
	w := e.node.world
	if e.life.over() {
		return
	}
	e.life.mailbox.begin()
	if job.Lag > 0 {
		if !e.node.coordinates() {
			w.fail(fmt.Errorf("node %s: only the coordinator computes on no emulated core", e.node.name()))
			return
		}
		e.submit(rt.Evaluations, func() { e.compute(job.Do, func(result any) { e.life.tell(result, promptly) }) })
		return
	}
	padded := e.book(job.Cores, e.life.walk.Cost(job))
	e.submit(rt.Steps, func() { e.compute(job.Do, padded) })
}

// book reserves cores of the node for a job, and returns what delivers its result when it should be
// done.
func (e *env) book(cores int, cost time.Duration) (deliver func(result any)) {
	w := e.node.world
	var due, asked time.Duration
	cost = e.node.Profile.Slowed(e.life.now(), cost)
	w.Locked(func() {
		due = e.life.cores.Book(e.life.now(), cores, cost)
		asked = max(due, w.clock.Now())
		e.life.owed = append(e.life.owed, asked)
	})
	return func(result any) {
		e.life.mailbox.timers.enter(timer{at: due, computed: true, asked: asked, message: result})
	}
}

// submit hands a job over to the pool; one too many ends the run.
func (e *env) submit(c rt.Class, do func()) {
	if err := e.node.world.pool.Submit(c, do); err != nil {
		e.Fail(fmt.Errorf("node %s: %w", e.node.name(), err))
	}
}

// compute does a job, unless the node's part is over; a panic ends the run.
func (e *env) compute(do func() any, then func(result any)) {
	defer e.recover()
	defer e.life.mailbox.end()
	if e.life.over() {
		return
	}
	if result := do(); !e.life.over() {
		then(result)
	}
}

// Charge delays the rest of the handler, its messages and the actor's next message until the work is
// done or the node's part is over. When the run ends, Charge returns early, and Record drops the events
// of the rest of the handler: they lie beyond the end.
func (e *env) Charge(work float64) {
	p := &e.node.Profile
	until := e.life.instant.charge(p.Slowed(e.life.now(), p.Time(work)))
	clock := e.node.world.clock
	if clock.Now() < until {
		e.life.report()
	}
	if left := until - clock.Now(); left > 2*time.Millisecond {
		t := time.NewTimer(left - time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-e.node.world.concluded:
		case <-e.life.gone:
		case <-e.node.end:
		}
	}
	for clock.Now() < until && !e.life.concluded() {
		runtime.Gosched() // a sleep below 1 ms would take longer than that
	}
}

func (e *env) Record(event actors.Event) {
	w := e.node.world
	if e.life.over() {
		return
	}
	if e.life.instant.ahead(w.clock.Now()) {
		if event.Kind == actors.UpdateApplied {
			w.unfinished.Store(true)
		}
		return
	}
	if o := w.config.Deployment.Observer; o != nil {
		e.observe(o, event)
	}
	if event.Kind != actors.StepDone || w.config.Deployment.Coordinate == nil {
		return
	}
	m, head := w.progress.Get()
	head.Node, head.Step, head.Samples = e.node.index, event.Step, uint32(event.Samples)
	e.life.unreported = append(e.life.unreported, m)
}

func (e *env) observe(o world.Observer, event actors.Event) {
	w := e.node.world
	w.observe.Lock()
	defer w.observe.Unlock()
	now := w.clock.Now()
	o.Observe(now, e.Node(), event)
	if e.node.saved < w.cuts.recorded {
		w.cuts.tail = append(w.cuts.tail, world.Recorded{At: now, Node: e.Node(), Event: event})
	}
}

// recover turns a panic into the end of the run.
func (e *env) recover() {
	if reason := recover(); reason != nil {
		e.failed(reason)
	}
}

func (e *env) failed(reason any) {
	e.Fail(fmt.Errorf("node %s, actor %s: %w", e.node.name(), e.life.pid.Id, world.PanicError(reason)))
}

// performer is the actor of a node, with its handlers timed and its panics caught.
type performer struct{ env *env }

// Receive has the actor handle a message, a new view's with the view in place. The
// first one waits until all actors are placed, so that whom it sends to is there; none is
// handled after the node's part.
func (p *performer) Receive(ctx actor.Context) {
	w := p.env.node.world
	switch ctx.Message().(type) {
	case *actor.Started:
		<-w.placed
		if p.env.life.mailbox.cut.restored {
			return // it was told so before it was saved
		}
	case *actor.Stopped:
		defer w.stopped.Done()
	}
	if p.env.life.over() {
		door.Release(ctx.Message())
		return
	}
	defer p.env.recover()
	if announced, ok := protos.Announced(ctx.Message()); ok {
		p.env.set(proto.Clone(announced).(*protos.View)) // because the message is recycled
	}
	if !p.env.node.coordinates() && !isControl(ctx.Message()) {
		w.handled.Add(1) // looks at a model move nothing on
	}
	p.env.life.actor.Receive(ctx)
}

// isControl reports whether a message belongs to the control protocol.
func isControl(message any) bool {
	m, ok := message.(*protos.Message)
	return ok && protos.IsControl(m.Head)
}

// guardian ends the run when an actor of a node panics outside of its Receive, as in
// what it does after a future.
type guardian struct{ env *env }

var _ actor.SupervisorStrategy = guardian{}

func (g guardian) HandleFailure(
	_ *actor.ActorSystem, _ actor.Supervisor, _ *actor.PID, _ *actor.RestartStatistics, reason, _ any,
) {
	g.env.failed(reason)
}
