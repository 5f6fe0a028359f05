package live

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// class says how urgent a computation is.
type class int

const (
	steps       class = iota
	evaluations       // behind all steps
	classes
)

// pool computes on threads of its own, which give way to mailboxes and timers.
//
// A thread without work sleeps in the system and not in a channel: to wake a goroutine
// that is locked to a thread, Go would hand it the processor of the goroutine that
// wakes it, and what else waits for that processor would wait behind a computation.
type pool struct {
	mu      sync.Mutex
	queues  [classes][]func()
	asleep  [classes][]sleeper
	stopped bool
	running sync.WaitGroup
}

// maxQueued bounds the computations that wait for a thread.
const maxQueued = 1 << 16

// patience is how long stop waits for a computation that is under way, which nothing
// can interrupt.
const patience = time.Second

// start starts n threads for steps and n for evaluations.
func (p *pool) start(n int) error {
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

func (p *pool) work(c class, s sleeper) {
	runtime.LockOSThread() // never unlocked: the thread ends with its priority
	lower(c)
	for {
		do, stopped := p.next(c, s)
		switch {
		case stopped:
			return
		case do == nil:
			s.sleep(idle)
		default:
			do()
		}
	}
}

// next takes the next computation of a class. Without one, the thread that asks is
// to sleep until it is woken.
func (p *pool) next(c class, s sleeper) (do func(), stopped bool) {
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

// submit has a function called by a thread, unless the pool is stopped before.
func (p *pool) submit(c class, do func()) error {
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

// stop begins nothing that is still queued. A computation that takes longer than
// patience is left to end by itself, and its thread with it.
func (p *pool) stop() {
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
