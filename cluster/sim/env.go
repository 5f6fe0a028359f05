package sim

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/protos"
)

// env is the world as one actor sees it.
type env struct {
	world   *World
	node    int32
	process *process
	view    *view
	owner   string // of the random streams: each life of a node has its own
	streams world.Streams
}

var _ actors.Env = (*env)(nil)

func (e *env) Node() int                   { return int(e.node) }
func (e *env) View() *actors.View          { return e.view.View }
func (e *env) Now() time.Duration          { return e.world.now + e.world.charge }
func (e *env) Tensors() *protos.TensorPool { return &e.world.tensors }
func (e *env) Fail(err error)              { e.world.fail(err) }

// Depart takes the node out of the world when what it has sent has left.
func (e *env) Depart() {
	at := max(e.Now(), e.world.nodes[e.node].leaves)
	e.world.enter(at, slot{what: change, deed: deed{depart, e.node}})
}

// Post does nothing: no message comes from another process.
func (e *env) Post(*protos.Tensor, iter.Seq[actors.Place]) {}

// Unpost does nothing either.
func (e *env) Unpost(protos.PlaceName) {}

func (e *env) After(d time.Duration, msg any) actors.Timer {
	w := e.world
	return actors.Timer{Clock: w, ID: w.enter(e.Now()+max(d, 0),
		slot{what: message, to: e.process, life: w.life(e.node), message: msg})}
}

func (e *env) Compute(job actors.Job) {
	w := e.world
	due := e.Now() + job.Lag
	switch {
	case job.Lag > 0 && e.process != w.coordinate:
		w.fail(fmt.Errorf("node %s: only the coordinator computes on no emulated core", w.names[e.node]))
	case job.Lag <= 0:
		n := &w.nodes[e.node]
		due = n.cores.Book(e.Now(), job.Cores, n.Profile.Slowed(e.Now(), n.walk.Cost(job)))
	}
	e.submit(job.Do, due)
}

// submit has the pool compute something whose result is delivered at an instant.
func (e *env) submit(do func() any, due time.Duration) {
	w := e.world
	j := w.pool.submit(do)
	j.stalled = e.process == w.coordinate && w.members == 0 && w.stats.Stalled > 0
	w.enter(due, slot{what: result, to: e.process, life: w.life(e.node), job: j})
}

// ComputeTeam draws the order of the steps at once, as their computation may begin at once.
func (e *env) ComputeTeam(team actors.Team) {
	n := &e.world.nodes[e.node]
	n.together = max(n.together, team.Steps)
	due := n.cores.Book(e.Now(), team.Threads*team.Cores, n.Profile.Slowed(e.Now(), n.walk.TeamCost(team)))
	seed := e.Rand("threads").Uint64()
	e.submit(func() any { return world.Interleave(team, seed) }, due)
}

// MaxInstant is how many steps a node can make at one instant of virtual time, beside those of one
// team, which all end with it.
const MaxInstant = 100_000

// count ends a run in which a node computes for ever, because its steps take no time.
func (e *env) count() {
	n := &e.world.nodes[e.node]
	if n.instant != e.world.now {
		n.instant, n.steps = e.world.now, 0
	}
	if n.steps++; n.steps > MaxInstant+n.together {
		e.world.fail(fmt.Errorf("at %v: node %s has made %d steps, and virtual time has not moved on: its steps take "+
			"no time, and nothing makes it wait; give it a compute: {step: …} or {speed: …}",
			e.world.now, e.world.names[e.node], MaxInstant))
	}
}

func (e *env) Charge(work float64) {
	w := e.world
	p := &w.nodes[e.node].Profile
	w.charge += p.Slowed(e.Now(), p.Time(work))
}

func (e *env) Rand(purpose string) *rand.Rand {
	return e.streams.Get(e.world.config.Deployment.Seed, e.owner, purpose)
}

func (e *env) Latency(node int) time.Duration {
	w := e.world
	return w.config.Network.Delay(e.node, int32(node), e.Now())
}

func (e *env) Lossy() bool { return e.world.config.Deployment.Lossy && e.world.sessions == nil }

func (e *env) Record(event actors.Event) {
	w := e.world
	switch o := w.config.Deployment.Observer; {
	case o == nil:
	case w.charge == 0:
		o.Observe(w.now, int(e.node), event)
	default:
		r, _ := w.charged.Enter(e.Now())
		*r = world.Recorded{At: e.Now(), Node: int(e.node), Event: event}
	}
	if event.Kind != actors.StepDone || w.coordinate == nil {
		return
	}
	e.count()
	m, head := w.progress.Get()
	head.Node, head.Step, head.Samples = e.node, event.Step, uint32(event.Samples)
	w.coordinate.SendUserMessage(nil, m)
}
