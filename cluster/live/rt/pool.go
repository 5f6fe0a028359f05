package rt

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Class says how urgent a computation is.
type Class int

// The classes of computations, the most urgent first. The threads of each give way to the
// threads of the classes before it.
const (
	Steps Class = iota
	Evaluations

	classes
)

// Pool computes on dedicated threads, which give way to mailboxes and timers. The zero value is a
// pool that has not started; Submit can be called from many goroutines.
//
// An idle thread sleeps in the kernel, not in a channel. To wake a goroutine that is locked to a
// thread, Go hands it the processor of the goroutine that wakes it, and what else waits for that
// processor would then wait behind a computation.
type Pool struct {
	mu      sync.Mutex
	queues  [classes][]func()
	asleep  [classes][]sleeper
	stopped bool
	running sync.WaitGroup
}

// maxQueued bounds the computations of a class that wait for a thread.
const maxQueued = 1 << 16

// patience is how long Stop waits for computations that have begun, which nothing can interrupt.
const patience = 200 * time.Millisecond

// Start starts n threads for each class. After an error, too, the pool must be stopped.
func (p *Pool) Start(n int) error {
	for c := range classes {
		for range n {
			s, err := newSleeper(false)
			if err != nil {
				return err
			}
			p.running.Go(func() {
				defer s.close()
				p.work(c, s)
			})
		}
	}
	return nil
}

func (p *Pool) work(c Class, s sleeper) {
	runtime.LockOSThread() // never unlocked: the thread ends with its priority
	lower(c)
	for {
		do, stopped := p.next(c, s)
		switch {
		case stopped:
			return
		case do == nil:
			s.sleep(longest)
		default:
			do()
		}
	}
}

// next takes the next computation of a class. If there is none, the calling thread must sleep
// until it is woken.
func (p *Pool) next(c Class, s sleeper) (do func(), stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.asleep[c], s); i >= 0 { // it woke by itself
		p.asleep[c] = slices.Delete(p.asleep[c], i, i+1)
	}
	if p.stopped {
		return nil, true
	}
	if len(p.queues[c]) == 0 {
		p.asleep[c] = append(p.asleep[c], s)
		return nil, false
	}
	do = p.queues[c][0]
	p.queues[c] = p.queues[c][1:]
	return do, false
}

// Submit queues a function for a thread of a class. It returns an error if the queue is full. A
// pool that is stopped calls nothing more.
func (p *Pool) Submit(c Class, do func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return nil
	case len(p.queues[c]) == maxQueued:
		return fmt.Errorf("%d computations wait for a thread, which is as many as can", maxQueued)
	}
	p.queues[c] = append(p.queues[c], do)
	if n := len(p.asleep[c]); n > 0 {
		p.asleep[c][n-1].wake() // under the lock, because a stopped thread closes its sleeper
		p.asleep[c] = p.asleep[c][:n-1]
	}
	return nil
}

// Stop drops what is queued and waits for the computations that have begun. One that takes longer
// than patience ends by itself later, and its thread with it.
func (p *Pool) Stop() {
	p.mu.Lock()
	p.stopped = true
	for c := range classes {
		for _, s := range p.asleep[c] {
			s.wake()
		}
		p.asleep[c] = nil
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
}
