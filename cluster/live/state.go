package live

import (
	"maps"
	"slices"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/actors/world"
	"github.com/gradwire/gradwire/cluster/door"
	"github.com/gradwire/gradwire/cluster/link"
)

// State declares the state of a run, or of a part of its nodes. It leaves out the origin, the time and
// the bytes of events: protos.Checkpoint has fields for them.
func (s *State) State(st *state.State) {
	state.Int(st, "number", &s.Number)
	st.Saved("record", &s.Record)
	state.List(st, "tail", &s.Tail, func(s *state.State, e *world.Recorded) { state.Exported(s, e) })
	st.Bool("void", &s.Void)
	state.Table(st, "nodes", &s.Nodes, state.IntKey, func(s *state.State, n *NodeState) {
		s.Saved("state", &n.Actor)
		state.Proto(s, "view", &n.View)
		state.List(s, "frames", &n.Frames, func(s *state.State, frame *[]byte) { s.Bytes("frame", frame) })
		state.List(s, "sent", &n.Sent, func(s *state.State, c *link.Count) { state.Exported(s, c) })
	})
}

// State declares a node: its actor, its emulated machine, and its mailbox.
func (s *saved) State(st *state.State) {
	declared, err := state.Of(s.actor)
	if err != nil {
		st.Fail(err)
		return
	}
	st.Part("env", s.env)
	st.Part("actor", declared)
	st.Part("walk", s.walk)
	st.Part("cores", s.cores)
	state.Int(st, "life", &s.number)
	st.Bool("started", &s.started)
	state.Proto(st, "announced", &s.announced)
	state.Int(st, "timers", &s.entered)
	s.declareDue(st)
	state.List(st, "control", &s.control, func(s *state.State, l *letter) { l.declare(s) })
	state.List(st, "messages", &s.user, func(s *state.State, l *letter) { l.declare(s) })
}

// State declares the actor's random streams.
func (e *env) State(s *state.State) { e.streams.State(s, e.node.world.config.Deployment.Seed, e.owner) }

// declareDue declares the pending timers and results, sorted by number.
func (s *saved) declareDue(st *state.State) {
	type numbered struct {
		number uint64
		timer
	}
	var all []numbered
	for _, number := range slices.Sorted(maps.Keys(s.due)) {
		all = append(all, numbered{number, s.due[number]})
	}
	state.List(st, "due", &all, func(s *state.State, x *numbered) {
		state.Int(s, "number", &x.number)
		state.Int(s, "at", &x.at)
		s.Any("message", &x.message)
		s.Bool("computed", &x.computed)
		state.Int(s, "asked", &x.asked)
	})
	if st.Restoring() {
		s.due = make(map[uint64]timer, len(all))
		for _, x := range all {
			s.due[x.number] = x.timer
		}
	}
}

// declare declares a message with its sender, which may be nil.
func (l *letter) declare(s *state.State) {
	door.MessageState(s, "message", &l.message)
	state.Int(s, "due", &l.due)
	state.Int(s, "cut", &l.cut)
}
