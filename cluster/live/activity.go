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

// rests reports whether nothing is left to happen here, but for what the clock watches. It follows the
// way of a message: from the clock into a mailbox, from there to a job or back to the clock. A message
// on its way from one to the next is always counted by one of them, however long a thread has to wait
// for a core in between.
func (w *World) rests() bool {
	if !w.clock.Idle() {
		return false
	}
	for _, n := range w.nodes {
		if !n.away && !n.coordinates() && n.life.Load().mailbox.busy() {
			return false
		}
	}
	return w.jobs.Load() == 0 && w.clock.Idle()
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
