package live

import (
	"math"
	"sync/atomic"
	"time"
)

// instant is what the time is for the handlers of a life. While one works it stands still, as
// virtual time does, but for what is charged: a handler's sends and timers are
// stamped with the time its message was due, not the time it ran, so that small delays of timers
// and threads do not add up. It lags behind the clock by the bound of lateness at most; a machine
// that is later than that delays the run.
type instant struct {
	at   atomic.Int64  // of the handler at work; promptly between handlers
	free time.Duration // at the end of the handler before
}

// promptly is when a message was due whose time is when it is handled.
const promptly = time.Duration(math.MaxInt64)

// begin is called before a handler works on a message that was due.
func (i *instant) begin(now, due, bound time.Duration) {
	i.at.Store(int64(max(min(max(due, i.free), now), now-bound)))
}

// charge lets the time go on, and returns what it is then.
func (i *instant) charge(d time.Duration) time.Duration { return time.Duration(i.at.Add(int64(d))) }

// ahead reports whether the handler's instant lies in the future, because the end of the run cut its
// charge short.
func (i *instant) ahead(now time.Duration) bool {
	at := time.Duration(i.at.Load())
	return at != promptly && at > now
}

// end is called when the handler is done.
func (i *instant) end() {
	i.free = time.Duration(i.at.Swap(int64(promptly)))
}

// now is the life's time: its handler's at work, else the clock's.
func (l *life) now() time.Duration {
	w := l.node.world
	now := w.clock.Now()
	return min(max(time.Duration(l.instant.at.Load()), now-w.config.Bound), now)
}
