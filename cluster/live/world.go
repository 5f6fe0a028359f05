// Package live is the real world: actors, links and clocks in real time.
//
// Each node of a run that lives in this process has its own actor system. A message between nodes
// passes the door, which encodes it, and waits as long as its link says. It is decoded where its
// receiver lives: here, or behind a Carrier in another process. Computation runs on threads that
// give way to mailboxes and timers, and is padded to what the plan says that it costs.
//
// A handler's sends and timers are stamped with the time its message was due, not the time it ran,
// so lateness does not accumulate along a chain of messages, also across processes. The world
// records how late it was, and marks a run that fell behind.
package live

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/live/rt"
	"github.com/gradwire/gradwire/protos"
)

// MaxNodes is the largest number of nodes of one process: more than a machine of today can keep on
// time, which is what real time is for.
const MaxNodes = 1 << 14

// Config is a run in real time.
type Config struct {
	Deployment *world.Deployment
	// Network links the nodes of the deployment, in their order, and the
	// coordinator as the last one. The world locks it with Locked.
	Network *link.Network
	// Changes happen to the network during the run.
	Changes []link.Change
	// Threads is how many steps, and how many evaluations, compute at a time; 0 stands
	// for the number of cores.
	Threads int
	// Hosted says which nodes live in this process, by position; the coordinator's position is the
	// number of nodes. Nil stands for all.
	Hosted func(node int) bool
	// Stop, if not nil, cancels Place: thousands of actors take seconds.
	Stop context.Context
	// Carrier reaches the worlds of the other processes, in a run of which not all is hosted.
	Carrier Carrier
	// RoundTrip is the measured time to the process of a node that lives elsewhere and back, 0
	// if it is not known. It is called by many goroutines and must not wait. Env.Latency adds
	// half of it to the emulated delay. Nil stands for 0.
	RoundTrip func(node int) time.Duration
	// Start is what the run's clock shows when Run is called: not 0 where a world takes the
	// place of one that is gone. What was to happen before is not told.
	Start time.Duration
	// Lives is how often the nodes hosted here may have lived before, in worlds that are gone.
	// It tells their random streams apart.
	Lives int
	// Checkpoints, if not nil, say how the state of the run is saved, and where it goes on.
	Checkpoints *Checkpoints
	// KeepRuntime leaves GOMAXPROCS and GOGC of this process as they are, at the price of later
	// timers; otherwise Run changes both while it lasts. See rt.Tune.
	KeepRuntime bool
	// Audit has the world look for tensors that nobody holds; see Result.Forgotten.
	Audit bool
	// Bound is how late the 99th percentile of messages and steps may be before the
	// run is marked; 0 stands for DefaultBound. It is also the lateness up to which an actor's
	// time counts from when its message was due; more delays the run.
	Bound time.Duration
}

// start is what the run's clock shows first.
func (c *Config) start() time.Duration {
	if c.Checkpoints != nil && c.Checkpoints.From != nil {
		return max(c.Start, c.Checkpoints.From.At)
	}
	return c.Start
}

// DefaultBound is the lateness at which a run is marked.
const DefaultBound = time.Millisecond

// Result is what a run in real time leaves beside its record. Of a world that hosts some of
// the nodes it tells of these: messages count where they were sent, also in Network.
type Result struct {
	// Now is the instant at which the run ended.
	Now time.Duration
	// Messages and Steps say how late messages and the ends of steps were.
	Messages, Steps Lateness
	// Late marks a run in which either exceeded the bound: the machine could not
	// keep up with the plan.
	Late bool
	// DeadLetters is how many messages found no receiver: none of the actor's name here, or a
	// process that is gone.
	DeadLetters uint64
	// Halted is the instant at which the members here were stopped.
	Halted time.Duration
	// Waits is what the nodes that live here, by their position, waited for then.
	Waits map[int]string
	// Stalled is the instant at which it was noticed that nothing happened, in a run
	// that only its bound ended; 0 if something did happen to the end.
	Stalled time.Duration
	// Unfinished says that the run ended before the work of an update did.
	Unfinished bool
	// InFlight counts messages, control aside, that left a node and neither arrived nor were
	// dropped.
	InFlight int64
	// Forgotten are the lengths of tensors that nobody held at Halted, and nobody had given back,
	// in a world with Config.Audit. What an actor held that had crashed or left is among them.
	Forgotten []int
}

// World is a run in real time.
type World struct {
	config     Config
	nodes      []*node
	partial    bool // some nodes live in other processes
	names      []string
	tensors    protos.TensorPool
	progress   *protos.Messages[*protos.Progress]
	views      *world.Views
	announced  atomic.Pointer[protos.View] // the latest
	placing    bool                        // while Place places the initial or restored nodes
	cycle      *world.LifeCycle            // who is there changes under World.network
	clock      *rt.Clock
	pool       *rt.Pool
	placed     chan struct{} // closed when all actors are there
	halted     chan struct{} // closed when only the coordinator goes on
	halting    sync.Once
	concluded  chan struct{} // closed when charges no longer delay handlers
	concluding sync.Once
	unfinished atomic.Bool   // the end of the run cut an update short
	end        chan struct{} // closed when the run is over
	ended      sync.Once
	failure    error
	instant    time.Duration  // at which the run ended
	haltedAt   time.Duration  // when the members here were stopped
	stalled    time.Duration  // since when nothing has happened; 0 if something does
	forgotten  []int          // see Result
	stopped    sync.WaitGroup // actors that have not stopped
	late       struct{ messages, steps lateness }
	handled    atomic.Int64  // messages so far
	sent       atomic.Int64  // messages for nodes of other worlds, those that are dropped included
	received   atomic.Int64  // messages of other worlds
	jobs       atomic.Int64  // under way
	lost       atomic.Uint64 // dead letters
	arrivals   sync.RWMutex  // held for reading while a frame or news of another process arrive
	cuts       cuts

	changes   chan func() // of nodes, for attend; nil until the actors are placed
	attending sync.WaitGroup

	network  sync.Mutex // guards door, links and cores, and lets no node change its life
	door     *door.Door
	sessions *door.Sessions   // nil where messages come as their links have them
	next     []handed         // by the sessions, until the lock is free
	latest   time.Duration    // when something was sent last
	inFlight int64            // messages, control aside, that neither arrived nor were dropped
	underway map[way]int      // messages that wait for the clock, but for those on their way to a downlink
	shares   map[int32]shared // of which it is not known when they arrive, by ticket
	expects  bool             // a call is entered for expected, which Network.Due was
	expected time.Duration
	observe  sync.Mutex // one event at a time
}

// node is one logical node.
type node struct {
	world *World
	index int32
	world.Inhabitant
	away   bool                 // it lives in another process
	life   atomic.Pointer[life] // changed under World.network; nil if the node is away
	end    chan struct{}        // closed when its part is over
	saved  uint64               // how often; guarded by World.observe
	passed time.Duration        // when its latest message did, guarded by World.network

	// What follows belongs to attend while the run goes on.
	ends int // crashes and departures that are yet to come
	next *life
}

// name is the node's address.
func (n *node) name() string { return n.world.names[n.index] }

// coordinates reports whether the run's coordinator lives on the node.
func (n *node) coordinates() bool { return int(n.index) == len(n.world.config.Deployment.Nodes) }

// over reports whether the node's part is over: it sends nothing, gets nothing delivered and
// handles nothing, whatever actor lives there.
func (n *node) over() bool {
	select {
	case <-n.end:
		return true
	default:
		return false
	}
}

// New returns the world of a deployment. Run places its actors and starts them.
func New(config Config) (*World, error) {
	d := config.Deployment
	if config.Hosted == nil {
		config.Hosted = func(int) bool { return true }
	}
	hosted := 0
	for i := range d.Nodes {
		if config.Hosted(i) {
			hosted++
		}
	}
	if hosted > MaxNodes {
		return nil, fmt.Errorf("%d nodes, at most %d can live in one process in real time", hosted, MaxNodes)
	}
	partial := hosted < len(d.Nodes) || !config.Hosted(len(d.Nodes))
	if partial && config.Carrier == nil {
		return nil, fmt.Errorf("%d of %d nodes are hosted here, and no carrier reaches the others", hosted,
			len(d.Nodes))
	}
	if config.Threads == 0 {
		config.Threads = runtime.NumCPU()
	}
	if config.Bound == 0 {
		config.Bound = DefaultBound
	}
	w := &World{
		config: config, partial: partial, placed: make(chan struct{}), halted: make(chan struct{}),
		concluded: make(chan struct{}),
		end:       make(chan struct{}),
		progress:  protos.NewMessages(func() *protos.Progress { return &protos.Progress{} }),
		underway:  map[way]int{}, shares: map[int32]shared{},
	}
	w.tensors.Poison = d.Strict
	w.names, w.views, w.cycle = d.Names(), d.Views(), world.NewLifeCycle(realm{w}, d)
	w.door = door.New(config.Network, w.names, d.Strict, &w.tensors)
	w.door.Encodes = true
	w.beginCuts()
	if d.Reliable {
		w.sessions = w.door.KeepSessions(courier{w})
	}
	for i := range w.names {
		w.addNode(int32(i))
	}
	if d.Reliable && partial {
		w.reachOut()
	}
	return w, nil
}

func (w *World) addNode(i int32) {
	n := &node{world: w, index: i, Inhabitant: w.config.Deployment.Inhabitant(int(i), w.control), end: w.end}
	if !n.coordinates() {
		n.end = w.halted
	}
	w.nodes = append(w.nodes, n)
	if n.away = !w.config.Hosted(int(i)); !n.away {
		n.life.Store(n.newLife(w.config.Lives))
	}
}

// Locked calls a function while nobody uses the network.
func (w *World) Locked(do func()) {
	w.network.Lock()
	defer w.network.Unlock()
	do()
}

// Place makes the actors, which begin when Run is called; what other processes deliver in
// between waits for them. It is for runs of several processes: Run places what is not
// placed. After an error, as in any case, Run or Abandon must be called.
func (w *World) Place() (err error) {
	w.changes = make(chan func(), 2*len(w.config.Deployment.Schedule)) // each, and hearing of it
	w.pool = &rt.Pool{}
	if w.clock, err = rt.NewClock(w.config.start(), w.broken); err != nil {
		w.failure = err
		return err
	}
	for _, c := range w.config.Changes {
		w.clock.At(c.At, func() {
			w.Locked(func() {
				c.Apply()
				w.expect()
			})
		})
	}
	w.placing = true
	if err = w.cycle.Populate(w.begins); err == nil {
		err = w.resume()
	}
	w.placing = false
	if err != nil {
		w.fail(err)
		return err
	}
	w.tensors.Audited = w.config.Audit // of what is placed, a run that goes on replaces some
	w.schedule()
	return nil
}

// begins reports whether a node lives here and is there when the run begins, or goes on.
func (w *World) begins(node int) bool {
	if !w.config.Hosted(node) {
		return false
	}
	if c := w.config.Checkpoints; c != nil && c.From != nil {
		_, there := c.From.Nodes[node]
		return there || node < len(w.nodes)-1 && w.config.Deployment.Present(node, c.From.At)
	}
	return w.config.Deployment.Present(node, w.config.Start-1)
}

// Now is what the run's clock shows: Config.Start until Run has set it going. Place must have been
// called.
func (w *World) Now() time.Duration { return w.clock.Now() }

// Abandon ends a world of which Place was called, and Run will not be.
func (w *World) Abandon() {
	if w.clock == nil {
		return
	}
	w.finish(nil)
	close(w.placed)
	w.close()
}

// Run lets the run happen until its coordinator ends it: where that one lives elsewhere,
// until Halt is called. It returns an error if an actor fails or if ctx is cancelled, with
// the cause. A world runs once.
func (w *World) Run(ctx context.Context) (Result, error) {
	if !w.config.KeepRuntime {
		// Two for each core that computes, and two more: mailboxes and timers find a processor even
		// while all of these compute.
		defer rt.Tune(2*w.config.Threads + 2)()
	}
	if w.changes == nil {
		_ = w.Place() // its error is the run's
	}
	if w.clock == nil {
		return Result{}, w.failure
	}
	if c := w.config.Checkpoints; c != nil {
		c.From = nil // which takes much memory
	}
	w.clock.Begin()
	w.nextCut(true)
	w.join()
	w.attending.Go(w.attend)
	if err := w.pool.Start(w.config.Threads); err != nil {
		w.fail(err)
	}
	close(w.placed)
	w.wait(ctx)
	w.overdue()
	result := Result{Now: w.instant, Messages: w.late.messages.summary(), Steps: w.late.steps.summary(),
		DeadLetters: w.lost.Load(), Stalled: w.stalled,
		Halted: w.haltedAt}
	result.Late = max(result.Messages.P99, result.Steps.P99) > w.config.Bound
	w.close()
	result.Unfinished = w.unfinished.Load()
	result.Waits = w.cycle.Waits() // the actors have stopped: nobody changes what they say
	w.Locked(func() { result.InFlight, result.Forgotten = w.inFlight, w.forgotten })
	return result, w.failure
}

// broken ends the run when something breaks that belongs to no actor.
func (w *World) broken(reason any) {
	w.fail(fmt.Errorf("at %v: %w", w.clock.Now(), world.PanicError(reason)))
}

// restEvery is how often a world looks whether everything in it has come to rest.
const restEvery = time.Second

// wait returns when the run has ended, and ends it if it has come to a standstill.
func (w *World) wait(ctx context.Context) {
	look := time.NewTicker(restEvery)
	defer look.Stop()
	handled := int64(-1)
	var moved time.Duration // latest look that found newly handled messages
	for {
		select {
		case <-w.end:
			return
		case <-ctx.Done():
			w.fail(context.Cause(ctx))
			return
		case <-look.C:
			a := w.Activity(handled)
			if a.Handled != handled {
				moved = w.clock.Now()
			}
			w.look(a.Idle && a.Handled == handled, moved)
			handled = a.Handled
		}
	}
}

// look detects a standstill, given whether the world rests and since when it has handled no message. A
// world that is ending rests without a standstill.
func (w *World) look(rests bool, since time.Duration) {
	switch {
	case w.partial: // what is under way elsewhere, this world does not know
	case w.lead().life.Load().concluded():
	case !rests:
		w.stalled = 0
	case !w.config.Deployment.Bounded:
		causes, losses := w.Waits()
		w.fail(w.config.Deployment.Standstill(w.clock.Now(), causes, losses))
	case w.stalled == 0:
		w.stalled = since
	}
}

// close stops everything that Run started. What is under way is not delivered.
func (w *World) close() {
	w.clock.Stop()
	w.endCuts()
	close(w.changes)
	w.attending.Wait()
	w.pool.Stop()
	w.arrivals.Lock()   // whatever arrives from now on finds that the run is over
	w.arrivals.Unlock() //nolint:staticcheck // it stands for waiting
	for i, n := range w.nodes {
		if w.cycle.There(i) {
			l := n.life.Load()
			l.system.Root.Stop(l.pid)
		}
	}
	w.stopped.Wait()
}

// control is how the coordinator with an env acts on the world.
func (w *World) control(e actors.Env) world.Control {
	return world.Control{
		Halt:     w.halt,
		Finish:   func() { w.finish(nil) },
		Announce: func(v *protos.View) { w.announce(e.(*env), v) },
		Ending:   w.conclude,
	}
}

// lead is the node of the coordinator.
func (w *World) lead() *node { return w.nodes[len(w.nodes)-1] }

func (w *World) fail(err error) { w.finish(err) }

// halt ends the part of all nodes but the coordinator's, wherever they live.
func (w *World) halt() {
	w.halting.Do(func() {
		w.haltedAt = w.clock.Now()
		if w.config.Audit {
			w.forgotten = w.tensors.Forgotten()
		}
		close(w.halted)
		if w.partial && !w.lead().away {
			w.config.Carrier.Halt()
		}
	})
}

// conclude ends charges and reports crashes to the coordinator at once, because the last evaluations
// must not wait for either.
func (w *World) conclude() {
	w.concluding.Do(func() {
		close(w.concluded)
		w.clock.Watch(w.clock.Now(), func() { w.change(w.cycle.End) })
	})
}

// finish ends the run; the first to do so says how.
func (w *World) finish(err error) {
	w.ended.Do(func() {
		w.failure, w.instant = err, w.clock.Now()
		w.halt()
		close(w.end)
	})
}
