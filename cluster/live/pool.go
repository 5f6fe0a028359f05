package live

import (
	"runtime"
	"sync"
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
	running sync.WaitGroup
}

// maxQueued bounds the computations that wait for a thread; submit waits beyond it.
const maxQueued = 1 << 12

// newPool starts n threads for steps and n for evaluations.
func newPool(n int) *pool {
	p := &pool{}
	for c := range classes {
		p.queues[c] = make(chan func(), maxQueued)
		for range n {
			p.running.Go(func() { p.work(c) })
		}
	}
	return p
}

func (p *pool) work(c class) {
	runtime.LockOSThread() // never unlocked: the thread ends with its priority
	lower(c)
	for do := range p.queues[c] {
		do()
	}
}

func (p *pool) submit(c class, do func()) { p.queues[c] <- do }

// stop waits for what has been submitted.
func (p *pool) stop() {
	for c := range classes {
		close(p.queues[c])
	}
	p.running.Wait()
}
