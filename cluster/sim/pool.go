package sim

import (
	"sync"

	"github.com/gradwire/gradwire/actors/world"
)

// job is a computation under way.
type job struct {
	do      func() any
	result  any
	failure error
	queued  bool          // a thread computes it
	stalled bool          // it is the coordinator's, and nothing was left to happen at the members when it began
	done    chan struct{} `image:"-"`
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

// end waits until the job is computed.
func (j *job) end() {
	switch {
	case j.do == nil:
		return
	case j.queued:
		<-j.done
	default:
		j.run()
	}
	j.do, j.queued = nil, false
}

// pool computes jobs beside the simulator. Without threads, and
// before start, a job is computed when it is collected.
type pool struct {
	queue   chan *job
	running sync.WaitGroup
	free    []*job
}

// maxQueued bounds the jobs that wait for a thread; submit waits beyond it.
const maxQueued = 1 << 12

func (p *pool) start(threads int) {
	if threads == 0 {
		return
	}
	p.queue = make(chan *job, maxQueued)
	for range threads {
		p.running.Go(func() {
			for j := range p.queue {
				j.run()
				j.done <- struct{}{}
			}
		})
	}
}

// stop waits for the jobs that nobody will collect.
func (p *pool) stop() {
	if p.queue != nil {
		close(p.queue)
		p.running.Wait()
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
		p.queue <- j
	}
	return j
}

// collect waits for the job and returns what it returned.
func (p *pool) collect(j *job) (any, error) {
	j.end()
	result, err := j.result, j.failure
	j.result, j.failure = nil, nil
	if j.done != nil { // it is none of a checkpoint
		p.free = append(p.free, j)
	}
	return result, err
}
