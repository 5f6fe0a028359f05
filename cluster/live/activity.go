package live

// Activity is what moves in a world. If two looks at it are equal and Idle, nothing has happened in
// between that moves the run on.
type Activity struct {
	// Idle says that no message, computation or timer of a node that lives here is left. Looks at
	// models move nothing on.
	Idle bool
	// Handled counts messages that were handled, Sent messages for nodes of other worlds and
	// Received messages from there, all without messages of the control protocol.
	Handled, Sent, Received int64
}

// Activity tells what moves. Place must have been called.
func (w *World) Activity() Activity {
	return Activity{Idle: w.rests(), Handled: w.handled.Load(), Sent: w.sent.Load(), Received: w.received.Load()}
}

// rests reports whether nothing is left to happen here, but for what the clock watches.
func (w *World) rests() bool {
	if !w.clock.Idle() || w.jobs.Load() > 0 || w.handling.Load() > 0 {
		return false
	}
	for _, n := range w.nodes {
		if !n.away && !n.coordinates() && n.life.Load().mailbox.UserMessageCount() > 0 {
			return false
		}
	}
	return true
}

// Waits tells what the nodes that live here wait for, by their position, and how many messages were
// lost on emulated links, ready to stand behind an error. It is for runs in which nothing moves.
func (w *World) Waits() (causes map[int]string, losses string) {
	w.Locked(func() {
		causes = w.cycle.Waits()
		losses = w.door.Losses()
	})
	return causes, losses
}
