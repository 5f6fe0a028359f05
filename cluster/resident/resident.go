package resident

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// resident is an actor that belongs to no run, through all its lives.
type resident struct {
	host    *Host
	spec    *protos.SpawnActor
	kind    actors.ResidentKind
	id      uint64
	pid     *actor.PID
	since   time.Time
	mailbox *mailbox
	first   *performer // until the actor system asks for it
	bench   bench
	present atomic.Pointer[performer]
	ended   atomic.Bool
	gone    chan struct{} // closed when it has ended
	once    sync.Once
	claimed bool // true once the name is claimed in the whole cluster; under the host's mu

	mu       sync.Mutex
	stage    stage
	grave    string // how it ended, as in "was stopped"; empty while it lives
	dying    string // what grave will be
	calls    map[*Call]bool
	asks     int // of calls
	clients  map[uint64]heard
	failures []time.Time // within spec.Within
	restarts int
	failure  string
	handled  uint64
	lost     uint64
	saved    *protos.Message // what a failed actor has left for its successor
}

// stage is how far an actor's beginning is.
type stage int

const (
	reserved stage = iota
	beginning
	begun
)

func newResident(h *Host, s *protos.SpawnActor, kind actors.ResidentKind, id uint64) *resident {
	a := &resident{
		host: h, spec: s, kind: kind, id: id, since: time.Now(), gone: make(chan struct{}), calls: map[*Call]bool{},
		clients: map[uint64]heard{},
		pid:     actor.NewPID(h.config.Node, s.Name+"#"+strconv.FormatUint(id, 10)),
	}
	a.mailbox = &mailbox{Mailbox: actor.Unbounded()(), of: a}
	a.bench.free, a.bench.jobs = int(s.Cores), &h.jobs
	return a
}

func (a *resident) String() string {
	return fmt.Sprintf("actor %s on node %s", a.spec.Name, a.host.config.Node)
}

func (a *resident) taken() error {
	return fmt.Errorf("the name %s is taken by an actor of kind %s on node %s", a.spec.Name, a.spec.Kind,
		a.host.config.Node)
}

func (a *resident) over() bool { return a.ended.Load() }

// info is the actor as its host sees it.
func (a *resident) info() *protos.Actor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &protos.Actor{
		Name: a.spec.Name, Kind: a.spec.Kind, Node: a.host.config.Node, Id: a.id, Cores: a.spec.Cores,
		Mailbox: int32(a.mailbox.UserMessageCount()), Restarts: int32(a.restarts), Handled: a.handled, Lost: a.lost,
		Since: a.since.UnixNano(), Failure: a.failure, Begun: a.stage == begun,
	}
}

// begin makes the first life of the actor.
func (a *resident) begin() error {
	a.mu.Lock()
	grave := a.grave
	if grave == "" {
		a.stage = beginning
	}
	a.mu.Unlock()
	if grave != "" {
		return fmt.Errorf("it %s", grave)
	}
	p := a.perform()
	if p.broken != nil {
		return p.broken
	}
	a.first = p
	props := actor.PropsFromProducer(a.produce, actor.WithGuardian(guardian{a.host}),
		actor.WithMailbox(func() actor.Mailbox { return a.mailbox }))
	if _, err := a.host.system.Root.SpawnNamed(props, a.pid.Id); err != nil {
		return err
	}
	a.mu.Lock()
	a.stage = begun
	late := a.dying != ""
	a.mu.Unlock()
	if late { // it was to stop before there was anything to be stopped
		a.host.system.Root.Stop(a.pid)
	}
	return nil
}

// produce returns what performs the actor's next life.
func (a *resident) produce() actor.Actor {
	p := a.first
	a.first = nil
	if p == nil {
		p = a.perform()
	}
	a.present.Store(p)
	return p
}

// perform makes the actor, with the state of its predecessor.
func (a *resident) perform() (p *performer) {
	a.mu.Lock()
	life, saved := a.restarts, a.saved
	a.mu.Unlock()
	p = &performer{of: a, env: newEnv(a, life)}
	defer func() {
		if reason := recover(); reason != nil {
			p.broken = world.PanicError(reason)
		}
	}()
	inner, err := a.kind(p.env)
	switch {
	case err != nil:
		p.broken = err
		return p
	case inner == nil:
		p.broken = fmt.Errorf("kind %s made no actor", a.spec.Kind)
		return p
	}
	p.actor = inner
	if r, ok := inner.(actors.Restorer); ok && saved != nil {
		if err := r.Restore(saved); err != nil {
			p.broken = fmt.Errorf("its state cannot be restored: %w", err)
			return p
		}
		a.keep(nil)
	}
	return p
}

// keep replaces what was saved.
func (a *resident) keep(saved *protos.Message) {
	a.mu.Lock()
	old := a.saved
	a.saved = saved
	a.mu.Unlock()
	if old != nil {
		old.Release()
	}
}

// failed tells the calls that the actor has begun of its failure, and reports whether it is to be
// made again.
func (a *resident) failed(err error) (again bool) {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line = request.Text(line, maxFailure)
	now := time.Now()
	a.mu.Lock()
	if w := time.Duration(a.spec.Within); w > 0 {
		a.failures = slices.DeleteFunc(a.failures, func(at time.Time) bool { return now.Sub(at) >= w })
	}
	a.failure = line
	again = a.dying == "" && len(a.failures) < int(a.spec.Restarts)
	end := "ended: " + line
	if again {
		a.failures = append(a.failures, now)
		a.restarts++
		end = "restarted: " + line
	} else if a.dying == "" {
		a.dying = "failed: " + line
		if t := a.spec.Restarts; t > 0 {
			a.dying = fmt.Sprintf("failed once more than the %d times that it may: %s", t, line)
		}
	}
	var open []*Call
	for c := range a.calls {
		if c.begun && c.Want.Verb != protos.ActorCall_STOP {
			open = append(open, c)
			if !c.handled {
				a.lost++
			}
		}
	}
	a.mu.Unlock()
	for _, c := range open {
		a.finish(c, nil, fmt.Errorf("%s failed before it was done with this message, and %s", a, end))
	}
	a.host.log("actor %s %s: %v", a.spec.Name, strings.TrimSuffix(end, ": "+line), err)
	return again
}

// stop has the actor end after the message that it is at, whatever waits.
func (a *resident) stop(grave string) {
	a.mu.Lock()
	nobody := a.stage == reserved
	if a.dying == "" {
		a.dying = grave
	}
	a.mu.Unlock()
	if nobody {
		a.end(grave)
		return
	}
	a.host.system.Root.Stop(a.pid)
}

// end is the end of the actor: what waits is lost, and is told.
func (a *resident) end(grave string) {
	a.once.Do(func() {
		a.mu.Lock()
		a.grave = grave
		var open []*Call
		for c := range a.calls {
			open = append(open, c)
			if !c.handled && c.Want.Verb != protos.ActorCall_STOP {
				a.lost++
			}
		}
		a.mu.Unlock()
		a.ended.Store(true)
		if p := a.present.Load(); p != nil {
			p.env.end()
		}
		a.keep(nil)
		a.host.remove(a, grave)
		// Losses come before the end.
		slices.SortFunc(open, func(c, d *Call) int { return int(c.Want.Verb) - int(d.Want.Verb) })
		for _, c := range open {
			var err error
			if c.Want.Verb != protos.ActorCall_STOP {
				err = fmt.Errorf("%s was not done with this message when it ended: it %s", a, grave)
			}
			a.finish(c, nil, err)
		}
		a.host.log("actor %s %s", a.spec.Name, grave)
		close(a.gone)
	})
}

// performer is one life of a resident.
type performer struct {
	of     *resident
	actor  actor.Actor
	env    *env
	broken error // why there is no actor
}

var _ actor.SupervisorStrategy = (*performer)(nil)

// fault is a failure of the actor that comes from elsewhere than a handler.
type fault struct{ error }

// Receive has the actor handle a message.
func (p *performer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Restarting:
		p.save()
		p.last(ctx)
		p.env.end()
		return
	case *actor.Stopping:
		p.last(ctx)
		return
	case *actor.Stopped:
		p.last(ctx)
		p.env.end()
		p.of.end(p.of.epitaph())
		return
	case *fault:
		panic(m.error)
	}
	if p.broken != nil {
		door.Release(ctx.Message())
		panic(p.broken)
	}
	p.actor.Receive(ctx)
	p.env.check()
}

// last has the actor handle one of the last messages of its life, in which it can no longer fail.
func (p *performer) last(ctx actor.Context) {
	if p.broken != nil {
		return
	}
	defer func() {
		if reason := recover(); reason != nil {
			p.of.host.log("%s, at its end: %v", p.of, world.PanicError(reason))
		}
	}()
	p.actor.Receive(ctx)
}

// save asks the failed actor for what its successor is to begin with.
func (p *performer) save() {
	r, ok := p.actor.(actors.Restorer)
	if !ok || p.broken != nil {
		return
	}
	defer func() {
		if reason := recover(); reason != nil {
			p.of.host.log("%s cannot save its state: %v", p.of, world.PanicError(reason))
		}
	}()
	if saved := r.Save(); saved != nil {
		p.of.keep(saved)
	}
}

// epitaph says how the actor has ended.
func (a *resident) epitaph() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dying != "" {
		return a.dying
	}
	return "was stopped"
}

// HandleFailure makes the failure of a child its parent's, unless the actor supervises its children
// itself.
func (p *performer) HandleFailure(s *actor.ActorSystem, by actor.Supervisor, child *actor.PID,
	stats *actor.RestartStatistics, reason, message any) {
	if own, ok := p.actor.(actor.SupervisorStrategy); ok {
		own.HandleFailure(s, by, child, stats, reason, message)
		return
	}
	panic(errors.Join(fmt.Errorf("child %s failed", child.Id), world.PanicError(reason)))
}
