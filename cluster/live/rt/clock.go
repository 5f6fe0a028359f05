package rt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/cluster/queue"
)

// Clock calls functions at instants of a run's real time, one after the other. It calls
// functions that are due at the same instant in the order in which they were entered. All methods
// but Begin and Stop can be called from many goroutines.
//
// It sleeps until shortly before an instant, then polls the time. It yields after each call: a
// mailbox that the call has woken runs at once on the thread that is awake, and does not wait for
// another core to wake up.
type Clock struct {
	first   time.Duration             // what it shows until the run begins
	start   atomic.Pointer[time.Time] // when it would have shown zero; nil until the run begins
	failed  func(reason any)          // is told what a call has panicked with
	sleeper sleeper
	running sync.WaitGroup

	mu      sync.Mutex
	calls   queue.Calendar[entry]
	pending int // calls entered or running, without watchers and cancelled calls
	asleep  bool
	stopped bool
}

// entry is what is to be called.
type entry struct {
	do      func() // nil if it is cancelled
	watches bool   // see Watch
}

// spin is how long before an instant the clock stops sleeping and polls: about as long as the
// kernel takes to wake a thread.
const spin = 60 * time.Microsecond

// NewClock returns a clock that shows first until Begin is called. It calls failed, from its
// goroutine, with the value of each panic of a function that it has called.
func NewClock(first time.Duration, failed func(reason any)) (*Clock, error) {
	s, err := newSleeper(true)
	if err != nil {
		return nil, err
	}
	return &Clock{first: first, failed: failed, sleeper: s}, nil
}

// Begin starts the clock. It must be called once.
func (c *Clock) Begin() {
	start := time.Now().Add(-c.first)
	c.start.Store(&start)
	c.running.Go(c.loop)
}

// Now is the time that the clock shows.
func (c *Clock) Now() time.Duration {
	start := c.start.Load()
	if start == nil {
		return c.first
	}
	return time.Since(*start)
}

// At enters a function to be called at an instant: at once if that has passed, never if the
// clock has been stopped. It returns what CancelTimer takes; 0 from a stopped clock.
func (c *Clock) At(t time.Duration, do func()) uint64 { return c.enter(t, entry{do: do}) }

// Watch is At for a function that only looks: one that is due does not keep the clock from being
// idle.
func (c *Clock) Watch(t time.Duration, do func()) uint64 {
	return c.enter(t, entry{do: do, watches: true})
}

func (c *Clock) enter(t time.Duration, x entry) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return 0
	}
	if !x.watches {
		c.pending++
	}
	first := c.calls.Len() == 0 || t < c.calls.First()
	item, id := c.calls.Enter(t)
	*item = x
	if c.asleep && first {
		c.sleeper.wake() // under the lock, because stop closes the sleeper
	}
	return id
}

// Timed is At for a function that takes its lateness: how long after its instant, or after it was
// entered if that was later, it is called.
func (c *Clock) Timed(t time.Duration, call func(late time.Duration)) {
	could := max(t, c.Now())
	c.At(t, func() { call(c.Now() - could) })
}

// Idle reports whether no call is entered or running, except calls entered with Watch.
func (c *Clock) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending == 0
}

// CancelTimer prevents a call that has not begun. The clock is the actors.Timer's.
func (c *Clock) CancelTimer(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.calls.Find(id); x != nil {
		c.drop(*x)
		x.do = nil
	}
}

// drop counts a call as no longer pending. The caller holds the lock.
func (c *Clock) drop(x entry) {
	if x.do != nil && !x.watches {
		c.pending--
	}
}

// Stop ends the clock and waits for the call at work. What is still due is not called.
func (c *Clock) Stop() {
	c.mu.Lock()
	c.stopped = true
	c.sleeper.wake()
	c.mu.Unlock()
	c.running.Wait()
	c.sleeper.close()
}

func (c *Clock) loop() {
	var last entry
	for {
		call, wait, stopped := c.next(last)
		last = call
		switch {
		case stopped:
			return
		case call.do != nil:
			c.Do(call.do)
			runtime.Gosched()
		case wait > spin:
			c.sleeper.sleep(wait - spin)
		default:
			runtime.Gosched()
		}
	}
}

// Do calls a function on the caller's goroutine and reports its panic, as the clock does with
// those that are due.
func (c *Clock) Do(call func()) {
	defer func() {
		if reason := recover(); reason != nil {
			c.failed(reason)
		}
	}()
	call()
}

// longest is how long a thread sleeps that has nothing to do.
const longest = time.Hour

// next removes the last call from the pending ones. It returns the next due call, whose function is nil
// if it was cancelled, or else the time until a call is due.
func (c *Clock) next(last entry) (call entry, wait time.Duration, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(last)
	wait = longest
	if c.calls.Len() > 0 {
		wait = c.calls.First() - c.Now()
	}
	if c.asleep = wait > spin; wait > 0 || c.stopped {
		return entry{}, wait, c.stopped
	}
	_, _, item := c.calls.Next()
	call = *item
	*item = entry{}
	return call, 0, false
}
