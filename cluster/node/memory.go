package node

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/memory"
)

const (
	// thriftyShare is the share of its memory above which a process collects garbage at any price,
	// and fullShare the one above which it ends the run that takes most.
	thriftyShare = 0.85
	fullShare    = 0.93
	// memoryEvery is the interval between memory checks. Large allocations at the start of a run, such
	// as its models, are checked before it begins: see fits.
	memoryEvery = 100 * time.Millisecond
)

// errMemory ends a run that takes more memory than its process has.
var errMemory = errors.New("the run takes more memory than there is")

// fits reserves memory for a run's nodes here, or returns an error if other runs leave too little. A
// rehearsed run may take all memory.
func (p *process) fits(h *hosted, s *experiment.Stage, rehearsed bool) error {
	return p.fitsWithin(memory.Limit(), h, s.Memory(h.Hosts), rehearsed)
}

func (p *process) fitsWithin(limit memory.Bound, h *hosted, need float64, rehearsed bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken, others := 0.0, 0
	for _, other := range p.runs {
		if other != h && other.memory > 0 && !rehearsed {
			taken, others = taken+other.memory, others+1
		}
	}
	if limit.Bytes > 0 && need+taken > limit.Bytes {
		err := fmt.Errorf("%w: its nodes on process %s need about %s, and %s %s", errMemory, p.config.Name,
			memory.Text(need), limit.By, memory.Text(limit.Bytes))
		if others > 0 {
			err = fmt.Errorf("%w, of which %d other runs take %s", err, others, memory.Text(taken))
		}
		return err
	}
	if !rehearsed {
		h.memory = need
	}
	return nil
}

// watchMemory ends the run that takes most before the memory of this process is full: the process,
// with all other runs, would die of it.
func (p *process) watchMemory() {
	user := debug.SetMemoryLimit(-1) // GOMEMLIMIT
	every(memoryEvery, p.stop.Done(), func() {
		limit := memory.Limit() // which is less when threads have taken address space
		if limit.Bytes == 0 {
			return
		}
		if bound := min(int64(thriftyShare*limit.Bytes), user); !p.config.KeepRuntime &&
			bound != debug.SetMemoryLimit(-1) {
			debug.SetMemoryLimit(bound)
		}
		if memory.Used() < fullShare*limit.Bytes {
			return
		}
		if debug.FreeOSMemory(); memory.Used() >= fullShare*limit.Bytes {
			p.relieve(memory.Used(), limit)
		}
	})
}

// relieve ends the run that takes most.
func (p *process) relieve(used float64, limit memory.Bound) {
	runs := slices.DeleteFunc(p.hosts(), func(h *hosted) bool { return h.stop.Err() != nil })
	if len(runs) == 0 {
		return
	}
	p.mu.Lock()
	h := slices.MaxFunc(runs, func(a, b *hosted) int {
		return cmp.Or(cmp.Compare(a.memory, b.memory), cmp.Compare(a.Number(), b.Number()))
	})
	p.mu.Unlock()
	err := fmt.Errorf("%w: process %s has taken %s, and %s %s", errMemory, p.config.Name, memory.Text(used), limit.By,
		memory.Text(limit.Bytes))
	p.log("run %x: %v", h.Number(), err)
	h.end(err)
}
