// Package resident hosts actors that belong to no run. A driver spawns them, sends to them and asks
// them. They live until somebody stops them, they fail for good, or their process ends. All
// resident actors of a process share one actor system.
//
// # Delivery
//
// A call is handled at most once. Calls of one client to one actor are handled in the order of
// their sequence numbers; one that comes behind a later one is lost. Every caller learns how a call
// ended: handled, answered, or lost and why. Nothing is repeated: an actor that wants more arranges
// it, for example with numbers in its messages. A call is lost if its actor failed at it, if it
// still waited when the actor ended, or if it found the mailbox full.
package resident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/membership"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/protos"
)

// Limits of a host.
const (
	// MaxActors is how many actors a host has at a time.
	MaxActors = 2000
	// MaxMailbox is how many messages wait for one actor; a call beyond them is lost.
	MaxMailbox = 10_000
	// MaxAsks is how many questions to one actor are open at a time, those that wait included.
	MaxAsks = 4096
	// maxClients is how many clients' sequence numbers an actor remembers; beyond, the one
	// that was silent for longest is forgotten.
	maxClients = 4096
	// maxGraves is of how many names it is remembered how their actor ended.
	maxGraves = 1024
	// maxFailure is how much of a failure's first line is told, in bytes.
	maxFailure = 200
	// maxJobs is how many computations of one actor wait for its cores.
	maxJobs = 1024
)

// ErrCores is wrapped by errors of Reserve about cores that are not free.
var ErrCores = errors.New("too few free cores")

// Config is the process of a cluster whose actors a host has. A host alone needs only the first
// four; the others are for a Service.
type Config struct {
	// Node is the name of the process.
	Node string
	// Cores is how many cores the actors may reserve together.
	Cores int
	// Tensors is the pool of Env.Tensors, and of messages of clients.
	Tensors *protos.TensorPool
	// Log, if not nil, is told in a line what has happened.
	Log func(format string, args ...any)
	// Running ends when the process stops.
	Running context.Context
	// Entered returns an error unless the process is part of its cluster.
	Entered func() error
	// Begin does something beside, for whose end the process waits when it stops; nothing if it is
	// stopping.
	Begin func(do func())
	// Failed makes the cause of a panic, which was recovered from, an error; the process's log
	// shows where it was.
	Failed func(what string, cause any) error
	// Members are the processes of the cluster, this one among them.
	Members func() []membership.Member
	// Kinds are the names of the kinds of actors that the process knows.
	Kinds func() []string
	// ClaimName claims a name in the whole cluster for the actor with an id. ReleaseName ends the
	// claim, without blocking. Both may be nil.
	ClaimName   func(ctx context.Context, name string, id uint64) error
	ReleaseName func(name string, id uint64)
	// Read returns the actor that a section of a plan describes.
	Read func(section *syntax.Node) (actors.ResidentKind, error)
}

// Host is a process's actors that belong to no run. It is safe for concurrent use.
type Host struct {
	config Config
	system *actor.ActorSystem
	jobs   sync.WaitGroup

	mu      sync.Mutex
	closing bool
	free    int
	lastID  uint64
	actors  map[string]*resident // by name
	graves  map[string]string    // how the last actor of a name ended
	asks    map[uint64]*Call     // open ones, by the id of their sender
	lastAsk uint64
}

// New returns a host without actors.
func New(c Config) *Host {
	h := &Host{config: c, system: door.NewSystem(), free: c.Cores, actors: map[string]*resident{},
		graves: map[string]string{}, asks: map[uint64]*Call{}}
	h.system.ProcessRegistry.Address = c.Node
	h.system.ProcessRegistry.RegisterAddressResolver(h.resolve)
	return h
}

func (h *Host) log(format string, args ...any) {
	if h.config.Log != nil {
		h.config.Log(format, args...)
	}
}

// Reservation is a name and cores that are reserved for an actor. It is either begun or released.
type Reservation struct{ of *resident }

// Reserve keeps a name and cores free for an actor, which kind makes. The name is unique in the
// host, and without cores Env.Compute is refused. The error wraps ErrCores if it is about them.
func (h *Host) Reserve(s *protos.SpawnActor, kind actors.ResidentKind) (*Reservation, error) {
	cores := int(s.Cores)
	if err := request.CheckActor(s.Name, cores, int(s.Restarts), time.Duration(s.Within)); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closing:
		return nil, fmt.Errorf("node %s is stopping", h.config.Node)
	case h.actors[s.Name] != nil:
		return nil, h.actors[s.Name].taken()
	case len(h.actors) == MaxActors:
		return nil, fmt.Errorf("node %s has %d actors, which is as many as can be", h.config.Node, MaxActors)
	case cores > h.free:
		return nil, fmt.Errorf("actor %s wants %d cores; node %s has %d free of %d: %w", s.Name, cores, h.config.Node,
			h.free, h.config.Cores, ErrCores)
	}
	h.free -= cores
	h.lastID = max(h.lastID+1, uint64(time.Now().UnixNano()))
	a := newResident(h, s, kind, h.lastID)
	h.actors[s.Name] = a
	return &Reservation{a}, nil
}

// claim claims the name in the whole cluster.
func (p *Reservation) claim(ctx context.Context) error {
	a := p.of
	if a.host.config.ClaimName == nil {
		return nil
	}
	if err := a.host.config.ClaimName(ctx, a.spec.Name, a.id); err != nil {
		return err
	}
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	a.claimed = true
	return nil
}

// Release gives a place back.
func (p *Reservation) Release() { p.of.host.remove(p.of, "was never begun") }

// Begin makes the actor. If that fails the place is released.
func (p *Reservation) Begin() (*protos.Actor, error) {
	a := p.of
	if err := a.begin(); err != nil {
		p.Release()
		return nil, fmt.Errorf("actor %s on node %s: %w", a.spec.Name, a.host.config.Node, err)
	}
	a.host.log("actor %s of kind %s is here", a.spec.Name, a.spec.Kind)
	return a.info(), nil
}

// remove deletes an actor and releases its cores and name.
func (h *Host) remove(a *resident, grave string) {
	if h.forget(a, grave) {
		h.config.ReleaseName(a.spec.Name, a.id)
	}
}

// forget deletes an actor, and reports whether its name is claimed and must be released.
func (h *Host) forget(a *resident, grave string) (claimed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.actors[a.spec.Name] != a {
		return false
	}
	delete(h.actors, a.spec.Name)
	h.free += int(a.spec.Cores)
	if len(h.graves) == maxGraves {
		clear(h.graves)
	}
	h.graves[a.spec.Name] = grave
	return a.claimed
}

// Free is how many cores are not reserved.
func (h *Host) Free() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free
}

// List returns the actors, by name, those whose place is only reserved included; if name is not
// empty, only the one of this name.
func (h *Host) List(name string) []*protos.Actor {
	h.mu.Lock()
	var all []*resident
	for _, a := range h.actors {
		if name == "" || name == a.spec.Name {
			all = append(all, a)
		}
	}
	h.mu.Unlock()
	list := make([]*protos.Actor, len(all))
	for i, a := range all {
		list[i] = a.info()
	}
	slices.SortFunc(list, func(a, b *protos.Actor) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// claims returns the ids of the actors with claimed names, by name.
func (h *Host) claims() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]uint64{}
	for name, a := range h.actors {
		if a.claimed {
			all[name] = a.id
		}
	}
	return all
}

// has reports whether the host has an actor with a name and an id, or has reserved its place.
func (h *Host) has(name string, id uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.actors[name]
	return a != nil && a.id == id
}

// endForClaim ends an actor whose name another node has claimed.
func (h *Host) endForClaim(name string, id uint64, node string) {
	h.mu.Lock()
	a := h.actors[name]
	h.mu.Unlock()
	if a != nil && a.id == id {
		a.stop(fmt.Sprintf("ended because node %s claimed its name while this node was cut off", node))
	}
}

// Grave says how the last actor of a name has ended, as in "was stopped"; empty if that is not
// known.
func (h *Host) Grave(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.graves[name]
}

// Deliver hands a call over to its actor. It does not wait for it.
func (h *Host) Deliver(c *Call) {
	h.mu.Lock()
	name := c.Want.Name
	a, grave := h.actors[name], h.graves[name]
	h.mu.Unlock()
	if a == nil || a.id != c.Want.Id {
		c.refuse(fmt.Errorf("actor %s is no longer on node %s: it %s", name, h.config.Node,
			cmp.Or(grave, "was there before the process restarted")))
		return
	}
	a.deliver(c)
}

// Close stops all actors, and waits for those that are at work for at most patience. Calls
// that were not handled are told.
func (h *Host) Close(patience time.Duration) error {
	h.mu.Lock()
	h.closing = true
	all := slices.Collect(maps.Values(h.actors))
	h.mu.Unlock()
	quiet := make(chan struct{})
	for _, a := range all {
		a.stop("ended with its process")
	}
	go func() {
		for _, a := range all {
			<-a.gone
		}
		h.jobs.Wait()
		close(quiet)
	}()
	select {
	case <-quiet:
		return nil
	case <-time.After(patience):
	}
	busy := 0
	for _, a := range all {
		if !a.over() {
			busy++
		}
		a.end("was still at work when its process ended")
	}
	return fmt.Errorf("node %s: %d actors or their computations were still at work %v after they were stopped",
		h.config.Node, busy, patience)
}

// asker is the address of those who wait for an answer: no name of a node.
const asker = "\x00asker"

// resolve finds the process behind a PID of another address: somebody who asks.
func (h *Host) resolve(pid *actor.PID) (actor.Process, bool) {
	id, err := strconv.ParseUint(pid.Id, 10, 64)
	if pid.Address != asker || err != nil {
		return nil, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &question{h.asks[id]}, true
}

// question stands for somebody who waits for an answer; without a call, for nobody any longer.
type question struct{ call *Call }

var _ actor.Process = (*question)(nil)

// SendUserMessage takes the answer. The first one counts; a later one, or one after the
// deadline, is nobody's.
func (q *question) SendUserMessage(_ *actor.PID, message any) {
	if envelope, ok := message.(*actor.MessageEnvelope); ok {
		message = envelope.Message
	}
	c := q.call
	answer, ok := message.(*protos.Message)
	switch {
	case c == nil && ok:
		answer.Release()
	case c == nil:
	case !ok || answer.Head == nil:
		c.of.finish(c, nil, fmt.Errorf("%s answered with a %T, which has no wire form: only a *protos.Message has",
			c.of, message))
	default:
		c.of.finish(c, answer, nil)
	}
}

func (q *question) SendSystemMessage(*actor.PID, any) {}
func (q *question) Stop(*actor.PID)                   {}

// guardian decides what becomes of actors that fail.
type guardian struct{ host *Host }

var _ actor.SupervisorStrategy = guardian{}

// HandleFailure restarts the actor, or stops it if it has failed too often.
func (g guardian) HandleFailure(_ *actor.ActorSystem, s actor.Supervisor, child *actor.PID, _ *actor.RestartStatistics,
	reason, _ any) {
	name := child.Id[:strings.LastIndexByte(child.Id, '#')] // the rest tells it from others of this name
	g.host.mu.Lock()
	a := g.host.actors[name]
	g.host.mu.Unlock()
	if a != nil && a.failed(world.PanicError(reason)) {
		s.RestartChildren(child)
		return
	}
	s.StopChildren(child)
}
