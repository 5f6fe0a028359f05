package sim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gradwire/gradwire/actors/world"
)

// job is a computation under way.
type job struct {
	do      func() any
	result  any
	failure error
	queued  bool          // a thread computes it
	stalled bool          // it is the coordinator's, and nothing was left to happen at the members when it began
	done    chan struct{} // nil in a restored job, which is already computed
}

// run computes the job; a panic becomes its failure.
func (j *job) run() {
	defer func() {
		if reason := recover(); reason != nil {
			j.failure = world.PanicError(reason)
		}
	}()
	j.result = j.do()
}

// end waits until the job is computed, and reports false if quit is closed before.
func (j *job) end(quit <-chan struct{}) bool {
	switch {
	case j.do == nil:
		return true
	case j.queued:
		select {
		case <-j.done:
		default:
			select {
			case <-j.done:
			case <-quit:
				return false
			}
		}
	default:
		j.run()
	}
	j.do, j.queued = nil, false
	return true
}

// pool computes jobs beside the simulator. Without threads, and
// before start, a job is computed when it is collected.
type pool struct {
	queue       chan *job
	running     sync.WaitGroup
	free        []*job
	interrupted atomic.Bool     // the context of start has ended
	quit        <-chan struct{} // closed when it does
}

// maxQueued bounds the jobs that wait for a thread; submit waits beyond it.
const maxQueued = 1 << 12

// patience is how long an interrupted pool waits for the jobs under way, which nothing can interrupt.
const patience = 100 * time.Millisecond

// start starts the threads. When ctx ends, they start no further job.
func (p *pool) start(ctx context.Context, threads int) (stop func()) {
	p.quit = ctx.Done()
	unwatch := context.AfterFunc(ctx, func() { p.interrupted.Store(true) })
	if threads > 0 {
		p.queue = make(chan *job, maxQueued)
	}
	for range threads {
		p.running.Go(func() {
			for j := range p.queue {
				if !p.interrupted.Load() {
					j.run()
				}
				j.done <- struct{}{}
			}
		})
	}
	return func() {
		unwatch()
		p.stop()
	}
}

// stop waits for the uncollected jobs. After an interrupt it waits for patience at most: a job owns
// what it writes, so one that goes on disturbs nothing.
func (p *pool) stop() {
	if p.queue == nil {
		return
	}
	close(p.queue)
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	if !p.interrupted.Load() {
		select {
		case <-ended:
			return
		case <-p.quit:
		}
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
	}
}

func (p *pool) submit(do func() any) *job {
	var j *job
	if n := len(p.free); n > 0 {
		j = p.free[n-1]
		p.free = p.free[:n-1]
	} else {
		j = &job{done: make(chan struct{}, 1)}
	}
	j.do, j.queued = do, p.queue != nil
	if j.queued {
		select {
		case p.queue <- j:
		case <-p.quit: // nothing will collect it
		}
	}
	return j
}

// collect waits for the job and returns its result, and false if the pool is interrupted before.
func (p *pool) collect(j *job) (result any, computed bool, err error) {
	if !j.end(p.quit) {
		return nil, false, nil
	}
	result, err = j.result, j.failure
	j.result, j.failure = nil, nil
	if j.done != nil { // it is none of a checkpoint
		p.free = append(p.free, j)
	}
	return result, true, err
}
