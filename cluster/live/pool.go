package live

import (
	"runtime"
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
type pool struct {
	queues  [classes]chan func()
	quit    chan struct{}
	running sync.WaitGroup
}

// maxQueued bounds the computations that wait for a thread; submit waits beyond it.
const maxQueued = 1 << 12

// patience is how long stop waits for a computation that is under way, which nothing
// can interrupt.
const patience = time.Second

func newPool() *pool {
	p := &pool{quit: make(chan struct{})}
	for c := range classes {
		p.queues[c] = make(chan func(), maxQueued)
	}
	return p
}

// start starts n threads for steps and n for evaluations.
func (p *pool) start(n int) {
	for c := range classes {
		for range n {
			p.running.Go(func() { p.work(c) })
		}
	}
}

func (p *pool) work(c class) {
	runtime.LockOSThread() // never unlocked: the thread ends with its priority
	lower(c)
	for !p.stopped() {
		select {
		case do := <-p.queues[c]:
			do()
		case <-p.quit:
		}
	}
}

func (p *pool) stopped() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// submit has a function called by a thread, unless the pool is stopped before.
func (p *pool) submit(c class, do func()) {
	select {
	case p.queues[c] <- do:
	case <-p.quit:
	}
}

// stop begins nothing that is still queued. A computation that takes longer than
// patience is left to end by itself, and its thread with it.
func (p *pool) stop() {
	close(p.quit)
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
