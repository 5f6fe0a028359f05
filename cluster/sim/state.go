package sim

import (
	"fmt"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/queue"
)

// State declares the world between two events: the clock, the network, the nodes with their actors, and
// the calendar with the messages in flight.
func (w *World) State(s *state.State) {
	w.declarePresence(s)
	w.declareProgress(s)
	w.declareNetwork(s)
	s.Group("nodes", func(s *state.State) {
		for i := range w.nodes {
			s.Group(w.names[i], func(s *state.State) { w.declareNode(s, int32(i)) })
		}
	})
	w.calendar.Declare(s, "calendar", w.declareSlot)
	state.Int(s, "sharing", &w.sharing)
	state.List(s, "shares", &w.shares, w.declareSlot)
	w.charged.Declare(s, "charged", func(s *state.State, r *world.Recorded) { state.Exported(s, r) })
	if c := w.config.Checkpoints; c != nil && len(c.With) > 0 {
		s.Part("record", state.All(c.With))
	}
}

// declarePresence declares which nodes are present. Restoring places their actors.
func (w *World) declarePresence(s *state.State) {
	there := make([]bool, len(w.nodes))
	for i := range there {
		there[i] = w.cycle.There(i)
	}
	if state.Bools(s, "present", &there); len(there) != len(w.nodes) {
		s.Fail(fmt.Errorf("%w: it has %d nodes, and the plan %d", state.ErrForeign, len(there), len(w.nodes)))
		return
	}
	state.Column(s, "lives", state.Pointers(w.nodes), func(n *node) *uint32 { return &n.life })
	w.declareViews(s, there)
	if s.Restoring() {
		for i := range w.nodes {
			w.nodes[i].walk = w.walk(&w.nodes[i])
		}
		s.Fail(w.cycle.Populate(func(i int) bool { return there[i] }))
		w.restored, w.ready = nil, queue.Ring[*mailbox]{}
	}
	s.Part("cycle", w.cycle)
}

// declareViews declares each actor's view. It comes before the actors, which compute values from their
// view when they are placed.
func (w *World) declareViews(s *state.State, there []bool) {
	w.declareView(s, "latest", &w.view)
	views := make([]*view, len(w.nodes))
	s.Group("views", func(s *state.State) {
		for i := range w.nodes {
			if there[i] && !s.Restoring() {
				views[i] = w.process(int32(i), w.nodes[i].ID).mailbox.env.view
			}
			w.declareView(s, w.names[i], &views[i])
		}
	})
	if s.Restoring() {
		w.restored = views
	}
}

// declareView declares a view. Actors with the same view share it again after a restore.
func (w *World) declareView(s *state.State, name string, v **view) {
	state.Shared(s, name, v, func(s *state.State, v *view) {
		if state.Proto(s, "announced", &v.announced); !s.Restoring() {
			return
		}
		if v.announced == nil {
			v.View = w.views.First()
		} else {
			v.View = w.views.Of(v.announced)
		}
	})
}

// declareProgress declares the clock, the counters and the digest.
func (w *World) declareProgress(s *state.State) {
	s.Bool("begun", &w.begun)
	state.Int(s, "now", &w.now)
	state.Int(s, "saves", &w.saves)
	state.Int(s, "turns", &w.turns)
	state.Int(s, "work", &w.work)
	state.Int(s, "members", &w.members)
	state.Int(s, "rousing", &w.rousing)
	s.Bool("judged", &w.judged)
	state.Int(s, "events", &w.stats.Events)
	state.Int(s, "dead-letters", &w.stats.DeadLetters)
	state.Int(s, "in-flight", &w.stats.InFlight)
	state.Int(s, "stalled", &w.stats.Stalled)
	var digest []byte
	if !s.Restoring() {
		digest, _ = w.digest.MarshalBinary() // never fails
	}
	if s.Bytes("digest", &digest); s.Restoring() {
		s.Fail(w.digest.UnmarshalBinary(digest))
	}
}

// declareNetwork declares the applied changes of the network, the network, and its sessions.
func (w *World) declareNetwork(s *state.State) {
	altered := w.altered
	if state.Ints(s, "altered", &altered); s.Restoring() {
		for _, which := range altered {
			w.alter(which)
		}
	}
	s.Part("network", w.config.Network)
	s.Part("door", w.door)
	if w.sessions != nil {
		s.Part("sessions", w.sessions)
	}
}

// declareNode declares a node with its actor, if one is there.
func (w *World) declareNode(s *state.State, i int32) {
	n := &w.nodes[i]
	s.Part("cores", n.cores)
	s.Part("walk", n.walk)
	state.Int(s, "resumes", &n.resumes)
	state.Int(s, "leaves", &n.leaves)
	state.Int(s, "waiting", &n.waiting)
	state.Int(s, "instant", &n.instant)
	state.Int(s, "steps", &n.steps)
	state.Int(s, "together", &n.together)
	a := w.cycle.Actor(int(i))
	if a == nil {
		return
	}
	m := w.process(i, n.ID).mailbox
	m.env.streams.State(s, w.config.Deployment.Seed, m.env.owner)
	declared, err := state.Of(a)
	if err != nil {
		s.Fail(err)
		return
	}
	s.Part("actor", declared)
	s.Part("mailbox", m)
}

// State declares the queued messages, and until when the actor is busy.
func (m *mailbox) State(s *state.State) {
	s.Bool("suspended", &m.suspended)
	s.Bool("waiting", &m.waiting)
	state.Int(s, "busy", &m.busy)
	item := func(s *state.State, message *any) { door.MessageState(s, "message", message) }
	m.queues.System.Declare(s, "system", item)
	m.queues.Control.Declare(s, "control", item)
	if m.queues.User.Declare(s, "user", item); s.Restoring() {
		m.queued = false
	}
}

// declareSlot declares an entry of the calendar.
func (w *World) declareSlot(s *state.State, x *slot) {
	state.Int(s, "what", &x.what)
	state.Int(s, "life", &x.life)
	if x.what == wakeUp {
		w.declareMailbox(s, &x.mailbox)
		return
	}
	w.declareProcess(s, &x.to)
	switch x.what {
	case arrival, delivery:
		s.Group("parcel", func(s *state.State) { w.door.Declare(s, &x.parcel) })
	case departure:
		state.Int(s, "kind", &x.kind)
		state.Int(s, "source", &x.source)
		s.Bool("ordered", &x.ordered)
		door.MessageState(s, "message", &x.message)
	case message:
		s.Any("message", &x.message)
	case result:
		state.Optional(s, "job", &x.job, func(s *state.State, j *job) { j.declare(s) })
	case change:
		state.Int(s, "deed", &x.deed.what)
		state.Int(s, "which", &x.deed.which)
	case look:
		w.sessions.DeclareFlow(s, "flow", &x.flow)
		s.Bool("vain", &x.vain)
		state.Int(s, "at", &x.at)
	}
}

// declareProcess declares the address of an actor, or nil.
func (w *World) declareProcess(s *state.State, to **process) {
	var at address
	if *to != nil {
		at = address{(*to).node, (*to).id}
	}
	state.Text(s, "actor", &at.id)
	if state.Int(s, "node", &at.node); s.Restoring() && at.id != "" {
		*to = w.process(at.node, at.id)
	}
}

// declareMailbox declares the mailbox that a wake-up is for. Its actor may have been removed.
func (w *World) declareMailbox(s *state.State, m **mailbox) {
	var of *process
	dead := false
	if !s.Restoring() {
		of, dead = (*m).process, (*m).dead
	}
	w.declareProcess(s, &of)
	if s.Bool("dead", &dead); !s.Restoring() {
		return
	}
	if *m = of.mailbox; dead {
		*m = &mailbox{world: w, node: of.node, process: of, dead: true}
	}
}

// declare declares a computed job with its result.
func (j *job) declare(s *state.State) {
	if j.failure != nil {
		s.Fail(j.failure)
	}
	s.Any("result", &j.result)
	s.Bool("stalled", &j.stalled)
}
