// Package sim is the virtual world: one process, one goroutine, a clock that
// jumps from event to event. The same deployment, network and seed give the same
// events in the same order and the same bits, whatever the machine is doing.
//
// The world owns every mailbox's queue; a run queue gives the actors their turns. Messages between
// nodes pass the door and stay in the calendar for as long as their link says. Jobs start at once
// on a pool of threads; the world waits for them only at the virtual instant at which they are due.
package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/cespare/xxhash/v2"

	"github.com/gradwire/gradwire/actors"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/queue"
	"github.com/gradwire/gradwire/cluster/wire"
	"github.com/gradwire/gradwire/protos"
)

// Config is a run in virtual time.
type Config struct {
	Deployment *world.Deployment
	// Network links the nodes of the deployment, in their order, and the
	// coordinator as the last one.
	Network *link.Network
	// Changes happen to the network during the run.
	Changes []link.Change
	// Threads is how many jobs compute at a time. With 0 they are computed on the
	// simulator's own goroutine. The result does not depend on it.
	Threads int
	// Checkpoints, if not nil, has the world save its state from time to time.
	Checkpoints *Checkpoints
	// Audit, if not nil, watches the run.
	Audit *Audit
	// Late, unless it is 0, has nodes hear of the run as those of a cluster do. Messages of the
	// control protocol, which are else handed over at once, take up to this long: those from one
	// node to another keep their order, and overtake other messages or are overtaken. Who joins
	// knows no view but the first before it hears of the one in which it is there.
	Late time.Duration
}

// Result is what a run in virtual time leaves beside its record.
type Result struct {
	// Now is the instant at which the run ended.
	Now time.Duration
	// Digest is a running hash of time, sequence, edge, type and size of every
	// message handed over from node to node.
	Digest uint64
	// Events is how many entries of the calendar were worked off.
	Events uint64
	// DeadLetters is how many messages found no receiver.
	DeadLetters uint64
	// InFlight is how many messages, control aside, have left their nodes and neither arrived nor
	// were lost.
	InFlight int64
	// Halted is the instant at which the coordinator stopped the members, or at which the run
	// ended.
	Halted time.Duration
	// Waits is what nodes, by their position, waited for then.
	Waits map[int]string
	// Stalled is the instant from which on nothing happened at any member, until the
	// coordinator ended the run; 0 if the members were at work to the end.
	Stalled time.Duration
	// Unfinished says that the run ended before the work of an update did.
	Unfinished bool
}

// what says what a slot of the calendar holds.
type what uint8

const (
	vacant    what = iota
	arrival        // a parcel is at the receiver's end of its edge
	delivery       // a parcel is handed over
	departure      // a message leaves its node after a charge
	message        // a timer's message is due
	result         // a job is due
	wakeUp         // a charge is over
	change         // something happens to the network or to a node
	look           // something may be due in a session
)

type slot struct {
	what    what
	kind    wire.Kind // departure
	source  int32     // departure
	to      *process
	mailbox *mailbox
	message any
	parcel  door.Parcel
	job     *job
	deed    deed
	life    uint32 // of the node whose message, result or departure it is
	ordered bool   // departure: it is one of those that node.waiting counts
	vain    bool   // look: nobody answers
	flow    *door.Flow
	at      time.Duration // look: the instant that it is for
}

// World is a run in virtual time.
type World struct {
	config     Config
	names      []string
	system     *actor.ActorSystem
	door       *door.Door
	tensors    protos.TensorPool
	progress   *protos.Messages[*protos.Progress]
	views      *world.Views
	view       *view // the latest announced view
	cycle      *world.LifeCycle
	nodes      []node
	processes  map[address]*process
	now        time.Duration
	calendar   queue.Calendar[slot]
	ready      queue.Ring[*mailbox] // those that have something to do
	source     int32                // the node whose actor has its turn, −1 outside of turns
	charge     time.Duration        // what the handler at work has charged so far
	digest     *xxhash.Digest
	stats      Result
	altered    []int32 // indices of the applied network changes, in order
	restored   []*view // views by node while Restore places the actors; nil afterwards
	finished   bool
	halted     bool // only the coordinator goes on
	work       int  // entries of the calendar beside the coordinator's timers
	members    int  // entries of the calendar that are not for the coordinator
	judged     bool // the coordinator has what it computed since there are none
	rousing    int  // timers of the coordinator by which members get going
	turns      int  // of mailboxes, at the present instant
	failure    error
	pool       pool
	coordinate *process
	shares     []slot // deliveries of which it is not known when they arrive, by ticket
	sharing    int    // how many there are
	sessions   *door.Sessions
	number     uint64                         // calendar entry that is being handled
	charged    queue.Calendar[world.Recorded] // events that charges delay beyond the present
	own        int                            // processes of the actor system before Place
	begun      bool
	saves      time.Duration // when the next checkpoint is due
}

// node is one logical node.
type node struct {
	world.Inhabitant
	cores   *world.Cores
	walk    *world.Walk
	life    uint32        // how often it has crashed or left
	resumes time.Duration // when a pause is over

	leaves  time.Duration // when the latest message leaves that it sends another node
	waiting int           // of these, that have not left yet

	instant  time.Duration // of the latest step
	steps    int           // at that instant
	together int           // the most steps of a team
}

const outside = -1

// New places the actors of the deployment. Run starts them.
func New(config Config) (*World, error) {
	w := empty(config)
	return w, w.cycle.Populate(func(i int) bool { return config.Deployment.Present(i, -1) })
}

// empty returns a world without actors.
func empty(config Config) *World {
	d := config.Deployment
	w := &World{
		config:    config,
		processes: map[address]*process{},
		source:    outside,
		digest:    xxhash.New(),
		progress:  protos.NewMessages(func() *protos.Progress { return &protos.Progress{} }),
		names:     d.Names(),
		views:     d.Views(),
	}
	w.view, w.cycle = &view{View: w.views.First()}, world.NewLifeCycle(realm{w}, d)
	for i := range w.names {
		who := d.Inhabitant(i, w.control)
		n := node{Inhabitant: who, cores: world.NewCores(who.Profile.Cores)}
		n.walk = w.walk(&n)
		w.nodes = append(w.nodes, n)
	}
	w.tensors.Poison, w.tensors.Audited = d.Strict, config.Audit != nil && config.Audit.Tensors
	w.door = door.New(config.Network, w.names, d.Strict, &w.tensors)
	if d.Reliable {
		w.sessions = w.door.KeepSessions(courier{w})
		w.sessions.Again = config.Audit.again()
	}
	w.system = door.NewSystem()
	w.system.ProcessRegistry.Address = systemAddress
	w.system.ProcessRegistry.RegisterAddressResolver(w.resolve)
	w.system.EventStream.Subscribe(func(e any) {
		if _, ok := e.(*actor.DeadLetterEvent); ok {
			w.stats.DeadLetters++
		}
	})
	w.own = door.Locals(w.system)
	if lead := len(d.Nodes); d.Coordinate != nil {
		w.coordinate = w.process(int32(lead), w.nodes[lead].ID)
	}
	return w
}

// walk begins that of the present life of a node.
func (w *World) walk(n *node) *world.Walk {
	return n.Profile.Walk(w.config.Deployment.Seed, world.Owner(n.ID, int(n.life)))
}

// systemAddress is the address of what belongs to no node, such as futures. No node can
// bear it, because a name in a plan begins with a letter or digit.
const systemAddress = "\x00sim"

// control is how the coordinator with an env acts on the world.
func (w *World) control(e actors.Env) world.Control {
	return world.Control{
		Halt:     w.halt,
		Finish:   func() { w.finished = true },
		Announce: func(v *protos.View) { e.(*env).view = w.announced(v) },
		Ending:   w.cycle.End,
	}
}

// observe passes delayed events up to the given time on to the observer. Events beyond the end of
// the run never reach it.
func (w *World) observe(until time.Duration) {
	for w.charged.Len() > 0 && w.charged.First() <= until {
		_, _, r := w.charged.Next()
		w.config.Deployment.Observer.Observe(r.At, r.Node, r.Event)
		*r = world.Recorded{}
	}
}

func (w *World) halt() {
	w.halted, w.stats.Halted = true, w.now
	if w.stats.Stalled == w.now { // they have just come to rest
		w.stats.Stalled = 0
	}
	w.config.Audit.close(&w.tensors)
}

// place gives a node a new actor.
func (w *World) place(node int32) error {
	w.config.Audit.begins(node)
	n := &w.nodes[node]
	env := &env{world: w, node: node, process: w.process(node, n.ID), view: w.view,
		owner: world.Owner(n.ID, int(n.life))}
	switch {
	case w.restored != nil:
		env.view = w.restored[node]
	case w.config.Late > 0:
		env.view = &view{View: w.views.First()}
	}
	a, err := n.Kind(env)
	if err != nil {
		return fmt.Errorf("node %s: %w", w.names[node], err)
	}
	props := actor.PropsFromProducer(func() actor.Actor { return a }, w.spawnOptions(node, env)...)
	if _, err := w.system.Root.SpawnNamed(props, n.ID); err != nil {
		return fmt.Errorf("node %s: %w", w.names[node], err)
	}
	w.cycle.Settle(int(node), a)
	return nil
}

func (w *World) resolve(pid *actor.PID) (actor.Process, bool) {
	node, ok := w.door.Node(pid.Address)
	if !ok {
		return nil, false
	}
	return w.process(node, pid.Id), true
}

// Run lets the run happen until its coordinator ends it. It returns an error if an
// actor fails, if nothing is left to happen, or if ctx is cancelled.
func (w *World) Run(ctx context.Context) (Result, error) {
	defer w.pool.start(ctx, w.config.Threads)()
	if !w.begun {
		w.begin()
	}
	for !w.finished && w.failure == nil {
		if w.pool.interrupted.Load() {
			w.failure = context.Cause(ctx)
			break
		}
		w.notice()
		if w.calendar.Len()+w.sharing == 0 || w.stuck() {
			w.failure = w.config.Deployment.Standstill(w.now, w.cycle.Waits(), w.door.Losses())
			break
		}
		if w.config.Checkpoints != nil {
			w.checkpoint()
		}
		w.next()
	}
	w.stats.Now, w.stats.Digest = w.now, w.digest.Sum64()
	if !w.halted {
		w.stats.Halted = w.now
	}
	w.observe(w.stats.Halted)
	for r := range w.charged.All() {
		w.stats.Unfinished = w.stats.Unfinished || r.Kind == actors.UpdateApplied
	}
	w.stats.Waits = w.cycle.Waits()
	return w.stats, w.failure
}

// begin has the calendar hold what the schedule says.
func (w *World) begin() {
	w.begun = true
	for i, c := range w.config.Changes {
		w.enter(c.At, slot{what: change, deed: deed{alter, int32(i)}})
		w.calendar.Skip(max(c.Edges-1, 0)) // as an entry for each edge would take: the digest is the same
	}
	for i := range w.config.Deployment.Schedule {
		w.enter(w.config.Deployment.Schedule[i].At, slot{what: change, deed: deed{happen, int32(i)}})
	}
	w.takeTurns()
}

// next works off the next entry of the calendar, or of the network if that is due by then.
func (w *World) next() {
	if w.sharing > 0 {
		if due := w.config.Network.Due(); w.calendar.Len() == 0 || due <= w.calendar.First() {
			w.settle(max(due, w.now))
			return
		}
	}
	at, number, item := w.calendar.Next()
	s := *item
	*item = slot{}
	w.count(&s, -1)
	if s.what == vacant || (w.halted && !w.leads(&s)) || w.outlived(&s) {
		return
	}
	if at > link.Horizon {
		w.fail(fmt.Errorf("at %v: virtual time ends %v after its beginning: nothing is to happen before, and nobody "+
			"has ended the run", w.now, link.Horizon))
		return
	}
	if at > w.now {
		w.observe(at)
		w.now, w.turns = at, 0
	}
	w.stats.Events++
	switch s.what {
	case arrival:
		w.enter(s.parcel.Receive(w.now), slot{what: delivery, to: s.to, parcel: s.parcel})
	case delivery:
		w.deliver(s.to, &s.parcel, number)
	case departure:
		if w.source = s.source; s.ordered {
			w.nodes[s.source].waiting--
		}
		w.leave(s.to, s.kind, s.message)
	case message:
		s.to.hand(wire.User, s.message)
	case result:
		w.finish(s.to, s.job)
	case wakeUp:
		s.mailbox.waiting = false
		s.mailbox.makeReady()
	case change:
		w.do(s.deed)
	case look:
		w.sessions.Wake(w.now, s.flow, s.at)
	}
	w.takeTurns()
}

// finish waits for a job that is due and hands its result over.
func (w *World) finish(to *process, j *job) {
	w.judged = w.judged || j.stalled
	value, computed, err := w.pool.collect(j)
	if !computed || w.pool.interrupted.Load() {
		return
	}
	if err != nil {
		w.fail(fmt.Errorf("node %s, actor %s: %w", w.names[to.node], to.id, err))
		return
	}
	to.hand(wire.User, value)
}

// MaxTurns is how many messages can be handled at one instant of virtual time.
const MaxTurns = 50_000_000

func (w *World) takeTurns() {
	for w.failure == nil && !w.finished && w.ready.Len() > 0 && !w.pool.interrupted.Load() {
		m := w.ready.Pop()
		if w.halted && m.node != w.coordinate.node {
			continue
		}
		m.turn()
		if w.turns++; w.turns > MaxTurns {
			w.fail(fmt.Errorf("at %v: %d messages were handled and virtual time has not moved on: some step, delay "+
				"or timer takes no time at all", w.now, MaxTurns))
		}
	}
	w.source, w.charge = outside, 0
}

// leads reports whether an entry of the calendar is for the coordinator.
func (w *World) leads(s *slot) bool { return s.to != nil && s.to == w.coordinate }

// watches reports whether an entry is a timer of the coordinator's, by which nothing
// gets going that has come to rest.
func (w *World) watches(s *slot) bool {
	return w.leads(s) && (s.what == message || s.what == vacant) || s.vain
}

// stuck reports whether nothing but the coordinator's timers is left to happen in a
// run that they do not end, or what it goes on to compute about members at which nothing does.
func (w *World) stuck() bool {
	return (w.work == w.frozen() || w.judged && !w.halted) && w.rousing == 0 && !w.config.Deployment.Bounded
}

// frozen is how many deliveries wait for rates that stay at 0.
func (w *World) frozen() int {
	if w.sharing == 0 || w.config.Network.Due() < link.Forever {
		return 0
	}
	return w.sharing
}

// rouses reports whether an entry is a timer by which the coordinator gets members going.
func rouses(s *slot) bool {
	if s.what != message {
		return false
	}
	_, is := s.message.(world.Rousing)
	return is
}

// notice notes since when nothing is left to happen at the members.
func (w *World) notice() {
	switch {
	case w.halted:
	case w.members > w.frozen():
		w.stats.Stalled, w.judged = 0, false
	case w.stats.Stalled == 0:
		w.stats.Stalled = max(w.now, 1)
	}
}

// count adds to how many entries of its kinds there are.
func (w *World) count(s *slot, entries int) {
	if !w.watches(s) {
		w.work += entries
	}
	if !w.leads(s) && !s.vain {
		w.members += entries
	}
	if rouses(s) {
		w.rousing += entries
	}
}

// enter puts a slot into the calendar. An instant before the present one is a sum that has
// overflowed.
func (w *World) enter(at time.Duration, s slot) (id uint64) {
	if at < w.now {
		at = link.Forever
	}
	w.count(&s, 1)
	item, id := w.calendar.Enter(at)
	*item = s
	return id
}

// CancelTimer empties the slot of a timer that is still in the calendar.
func (w *World) CancelTimer(id uint64) {
	if s := w.calendar.Find(id); s != nil && s.what == message {
		if rouses(s) {
			w.rousing--
		}
		*s = slot{to: s.to} // still in the calendar, with nothing to do
	}
}

// send takes what an actor sends, at the end of what its handler has charged. Control messages are
// handled while a node is busy: what it sends on their account leaves after what it has sent
// before, but for control messages, which pass.
func (w *World) send(to *process, kind wire.Kind, message any) {
	if w.source == outside {
		w.leave(to, kind, message)
		return
	}
	n, at := &w.nodes[w.source], w.now+w.charge
	ordered := kind == wire.User && to.node != w.source && !isControl(message)
	if ordered {
		at = max(at, n.leaves)
		n.leaves = at
	}
	if at == w.now && (!ordered || n.waiting == 0) {
		w.leave(to, kind, message)
		return
	}
	if ordered {
		n.waiting++
	}
	w.enter(at, slot{what: departure, kind: kind, source: w.source, life: w.life(w.source), to: to, message: message,
		ordered: ordered})
}

// isControl reports whether a message is of the control protocol.
func isControl(message any) bool {
	m, is := message.(*protos.Message)
	return is && protos.IsControl(m.Head)
}

// leave takes a message out of its node, through the door.
func (w *World) leave(to *process, kind wire.Kind, message any) {
	if w.source == to.node || w.source == outside {
		to.hand(kind, message)
		return
	}
	going := way{w.source, w.life(w.source), to.node}
	w.config.Audit.pushes(w.source, w.now, message)
	p, err := w.door.Pass(w.now, w.source, to.node, to.id, kind, message)
	if p.Kept || p.Emulated() {
		w.config.Audit.leaves(going, p.Number)
	}
	switch {
	case err != nil:
		w.fail(err)
	case p.Lost, p.Kept:
	case p.Kind == wire.Control && w.config.Late > 0:
		p.Arrival = w.tick(to.node)
		w.carry(to, &p)
	case !p.Emulated() && p.Arrival == w.now:
		w.deliver(to, &p, w.calendar.Number())
	default:
		w.carry(to, &p)
	}
}

// hold keeps a delivery until the network knows when it is.
func (w *World) hold(s slot) {
	for int(s.parcel.Ticket) >= len(w.shares) {
		w.shares = append(w.shares, slot{})
	}
	w.shares[s.parcel.Ticket] = s
	w.sharing++
	w.count(&s, 1)
}

// settle enters what the network has found out until an instant.
func (w *World) settle(now time.Duration) {
	for t, settled := w.config.Network.Settle(now); settled; t, settled = w.config.Network.Settle(now) {
		s := w.shares[t.Ticket]
		w.shares[t.Ticket] = slot{}
		w.sharing--
		w.count(&s, -1)
		if err := s.parcel.Settle(t); err != nil {
			w.fail(err)
		}
		w.underway(&s.parcel, -1)
		if !t.Lost {
			w.carry(s.to, &s.parcel)
		}
	}
}

// underway counts parcels on their way, control aside.
func (w *World) underway(p *door.Parcel, n int64) {
	if p.Emulated() {
		w.stats.InFlight += n
	}
}

// deliver hands a parcel over and counts it.
func (w *World) deliver(to *process, p *door.Parcel, number uint64) {
	w.underway(p, -1)
	if p.Answers() {
		w.number = number
		if !w.sessions.Arrive(w.now, p) {
			return
		}
	}
	w.trace(p, number)
	var err error
	if p.Kind == wire.System || to.alive() {
		err = p.Arrive(w.now)
	} else {
		w.stats.DeadLetters++
		if err = p.Discard(); err == nil {
			return
		}
	}
	if err != nil {
		w.fail(fmt.Errorf("%s/%s at %v: %w", w.names[to.node], to.id, w.now, err))
		return
	}
	w.give(to, p)
}

func (w *World) trace(p *door.Parcel, number uint64) {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(w.now))
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint32(b[16:], uint32(p.Edge.Source()))
	binary.LittleEndian.PutUint32(b[20:], uint32(p.Edge.Destination()))
	binary.LittleEndian.PutUint32(b[24:], uint32(p.Size))
	binary.LittleEndian.PutUint32(b[28:], p.Type())
	_, _ = w.digest.Write(b[:])
}

func (w *World) fail(err error) {
	if w.failure == nil {
		w.failure = err
	}
}
