package resident

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/protos"
)

// env is the world of one life of a resident, in real time.
type env struct {
	of      *resident
	owner   string // of the random streams
	streams world.Streams
	fail    error // what the handler at work has reported

	mu     sync.Mutex
	over   bool
	timers map[uint64]*time.Timer
	last   uint64 // timer
}

var _ actors.Base = (*env)(nil)

// outcome is a message from the world of one life of an actor.
type outcome struct {
	env     *env
	message any
}

func newEnv(a *resident, life int) *env {
	return &env{of: a, owner: world.Owner(a.spec.Name, life), timers: map[uint64]*time.Timer{}}
}

func (e *env) Now() time.Duration             { return time.Since(e.of.since) }
func (e *env) Tensors() *protos.TensorPool    { return e.of.host.config.Tensors }
func (e *env) Rand(purpose string) *rand.Rand { return e.streams.Get(0, e.owner, purpose) }

// Fail makes the handler that calls it fail once it returns.
func (e *env) Fail(err error) { e.fail = err }

// check panics if the handler has reported a failure.
func (e *env) check() {
	if e.fail != nil {
		panic(e.fail)
	}
}

func (e *env) After(d time.Duration, msg any) actors.Timer {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return actors.Timer{}
	}
	e.last++
	id := e.last
	e.timers[id] = time.AfterFunc(max(d, 0), func() {
		e.CancelTimer(id)
		e.tell(msg)
	})
	return actors.Timer{Clock: e, ID: id}
}

// CancelTimer stops a timer.
func (e *env) CancelTimer(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.timers[id]; t != nil {
		t.Stop()
		delete(e.timers, id)
	}
}

// tell sends the actor a message from its world, unless this life is over.
func (e *env) tell(message any) {
	if e.ended() {
		door.Release(message)
		return
	}
	e.of.mailbox.PostUserMessage(&outcome{e, message})
}

func (e *env) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over
}

// end ends this life: its timers stop, and no further computation begins.
func (e *env) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	for _, t := range e.timers {
		t.Stop()
	}
	clear(e.timers)
}

// Compute hands a job to the actor's cores, first in first out.
func (e *env) Compute(job actors.Job) {
	cores := int(e.of.spec.Cores)
	if cores == 0 {
		e.Fail(fmt.Errorf("kind %s computes, but actor %s was spawned without cores", e.of.spec.Kind, e.of.spec.Name))
		return
	}
	job.Cores = min(max(job.Cores, 1), cores)
	if !e.of.bench.add(e, job) {
		e.Fail(fmt.Errorf("%d computations of actor %s wait for its cores, which is as many as can", maxJobs,
			e.of.spec.Name))
	}
}

// bench is the cores of an actor and what waits for them. Computations of an earlier life,
// which nothing can interrupt, keep theirs until they are done.
type bench struct {
	jobs    *sync.WaitGroup
	mu      sync.Mutex
	free    int
	waiting []task
}

type task struct {
	env *env
	job actors.Job
}

// add puts a job into the queue; false if it is full.
func (b *bench) add(e *env, job actors.Job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == maxJobs {
		return false
	}
	b.waiting = append(b.waiting, task{e, job})
	b.start()
	return true
}

// start begins what the free cores allow.
func (b *bench) start() {
	for len(b.waiting) > 0 {
		next := b.waiting[0]
		over := next.env.ended()
		if !over && next.job.Cores > b.free {
			return
		}
		b.waiting = b.waiting[1:]
		if over {
			continue
		}
		b.free -= next.job.Cores
		b.jobs.Go(func() { b.compute(next) })
	}
}

func (b *bench) compute(t task) {
	defer func() {
		if reason := recover(); reason != nil {
			t.env.tell(&fault{world.PanicError(reason)})
		}
		b.mu.Lock()
		b.free += t.job.Cores
		b.start()
		b.mu.Unlock()
	}()
	t.env.tell(t.job.Do())
}
