package live

import "time"

// Activity is a snapshot of the work in a world. If two snapshots are equal and Idle, the run made no
// progress between them.
type Activity struct {
	// Idle says that no message, computation or timer is pending here, except the coordinator's timers.
	Idle bool
	// Handled counts messages that were handled, Sent messages for nodes of other worlds and
	// Received messages from there, all without messages of the control protocol.
	Handled, Sent, Received int64
}

// activity takes a snapshot now.
func (w *World) activity() Activity {
	return Activity{Idle: w.rests(), Handled: w.handled.Load(), Sent: w.sent.Load(), Received: w.received.Load()}
}

const (
	// restPatience bounds the search for an instant without an evaluation, and restEach is the interval
	// between its snapshots.
	restPatience = 300 * time.Millisecond
	restEach     = 5 * time.Millisecond
)

// Activity takes a snapshot, given the number of handled messages in the previous one. If that number
// has not changed, Activity waits briefly for an idle instant, because evaluations can keep a stalled
// world busy. Place must have been called.
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

// rests reports whether no work is pending here, except calls entered with Clock.Watch. It checks the
// clock, the mailboxes and the jobs in the order in which a message passes through them, then the clock
// again. Each counts a message until the next one has it, so a thread that waits for a core cannot hide
// a message. Control messages count as well, because they end the run.
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
