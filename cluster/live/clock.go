package live

import (
	"container/heap"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// clock calls functions at instants of a run's real time, one after the other.
// Functions due at one instant are called in the order in which they were entered.
//
// It sleeps until shortly before an instant and looks at the time from then on.
// After each call it yields: a mailbox that the call has set off runs at once, on
// the thread that is awake, instead of waiting until another core has woken up.
type clock struct {
	first   time.Duration             // what it shows until the run begins
	start   atomic.Pointer[time.Time] // when it would have shown zero; nil until the run begins
	failed  func(reason any)          // is told what a call has panicked with
	sleeper sleeper
	done    sync.WaitGroup

	mu      sync.Mutex
	entries entries
	timers  map[uint64]*entry
	seq     uint64
	asleep  bool
	stopped bool
}

type entry struct {
	at      time.Duration
	seq     uint64
	call    func()
	watches bool // see watch
}

// entries implement heap.Interface.
type entries []*entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(*entry)) }
func (e *entries) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return x
}

// spin is how long before an instant the clock stops sleeping and looks at the
// time instead: about what the kernel is late in waking a thread.
const spin = 60 * time.Microsecond

// newClock returns a clock that stands at zero.
func newClock(failed func(reason any)) (*clock, error) {
	s, err := newSleeper(true)
	if err != nil {
		return nil, err
	}
	return &clock{failed: failed, sleeper: s, timers: map[uint64]*entry{}}, nil
}

// begin lets the time run.
func (c *clock) begin() {
	start := time.Now().Add(-c.first)
	c.start.Store(&start)
	c.done.Go(c.loop)
}

func (c *clock) now() time.Duration {
	start := c.start.Load()
	if start == nil {
		return c.first
	}
	return time.Since(*start)
}

// at has a function called at an instant, at once if it has passed, and not at all
// if the clock has been stopped.
func (c *clock) at(t time.Duration, call func()) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return 0
	}
	c.seq++
	e := &entry{at: t, seq: c.seq, call: call}
	heap.Push(&c.entries, e)
	c.timers[e.seq] = e
	if c.asleep && c.entries[0] == e {
		c.sleeper.wake() // under the lock, because stop closes the sleeper
	}
	return e.seq
}

// timed is at for calls that are told how much later they come than they could have.
func (c *clock) timed(t time.Duration, call func(late time.Duration)) {
	could := max(t, c.now())
	c.at(t, func() { call(c.now() - could) })
}

// watch is at for calls that set nothing going that has come to rest.
func (c *clock) watch(t time.Duration, call func()) uint64 {
	id := c.at(t, call)
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.timers[id]; e != nil {
		e.watches = true
	}
	return id
}

// idle reports whether only calls that watch are due.
func (c *clock) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.timers {
		if !e.watches {
			return false
		}
	}
	return true
}

// CancelTimer prevents a call that has not begun.
func (c *clock) CancelTimer(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.timers[id]; e != nil {
		e.call = nil
		delete(c.timers, id)
	}
}

// stop ends the clock; what is still due is not called.
func (c *clock) stop() {
	c.mu.Lock()
	c.stopped = true
	c.sleeper.wake()
	c.mu.Unlock()
	c.done.Wait()
	c.sleeper.close()
}

func (c *clock) loop() {
	for {
		call, wait, stopped := c.next()
		switch {
		case stopped:
			return
		case call != nil:
			c.do(call)
			runtime.Gosched()
		case wait > spin:
			c.sleeper.sleep(wait - spin)
		default:
			runtime.Gosched()
		}
	}
}

// do calls a function; its panic is not the end of the process.
func (c *clock) do(call func()) {
	defer func() {
		if reason := recover(); reason != nil {
			c.failed(reason)
		}
	}()
	call()
}

// idle is how long the clock sleeps when nothing is due.
const idle = time.Hour

// next returns what is due, or how long it is until something will be.
func (c *clock) next() (call func(), wait time.Duration, stopped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait = idle
	if len(c.entries) > 0 {
		wait = c.entries[0].at - c.now()
	}
	if c.asleep = wait > spin; wait > 0 || c.stopped {
		return nil, wait, c.stopped
	}
	e := heap.Pop(&c.entries).(*entry)
	delete(c.timers, e.seq)
	if e.call == nil {
		return func() {}, 0, false
	}
	return e.call, 0, false
}
