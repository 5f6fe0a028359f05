package live

import "time"

// Activity is what moves in a world. If two looks at it are equal and Idle, nothing has happened in
// between that moves the run on.
type Activity struct {
	// Idle says that no message, computation or timer is left here, but for the coordinator's timers.
	Idle bool
	// Handled counts messages that were handled, Sent messages for nodes of other worlds and
	// Received messages from there, all without messages of the control protocol.
	Handled, Sent, Received int64
}

// activity tells what moves at this instant.
func (w *World) activity() Activity {
	return Activity{Idle: w.rests(), Handled: w.handled.Load(), Sent: w.sent.Load(), Received: w.received.Load()}
}

const (
	// restPatience is how long Activity looks for an instant at which no model is being judged, and
	// restEach how often.
	restPatience = 300 * time.Millisecond
	restEach     = 5 * time.Millisecond
)

// Activity tells what moves. If nothing was handled since a look that counted so many messages, it waits
// a little for an instant at which the world is idle: models may be judged all the time, which moves
// nothing on. Place must have been called.
func (w *World) Activity(handled int64) Activity {
	a := w.activity()
	look := time.NewTicker(restEach)
	defer look.Stop()
	for end := time.Now().Add(restPatience); !a.Idle && a.Handled == handled && time.Now().Before(end); {
		select {
		case <-look.C:
			a = w.activity()
		case <-w.end:
			return a
		}
	}
	return a
}

// rests reports whether nothing is left to happen here, but for what the clock watches. It follows the
// way of a message: from the clock into a mailbox, from there to a job or back to the clock. A message
// on its way from one to the next is always counted by one of them, however long a thread has to wait
// for a core in between. So is what the control protocol does: it ends the run.
func (w *World) rests() bool {
	if !w.clock.Idle() {
		return false
	}
	for _, n := range w.nodes {
		if l := n.life.Load(); l != nil && !l.over() && l.mailbox.busy() {
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
