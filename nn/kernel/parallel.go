package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// shared is a product that several goroutines compute. Its steps are numbered, and a goroutine takes the next one
// whenever it is idle, because the first goroutine is long at work until another is awake: first the steps that pack
// panels of op(B), then those that compute bands of C. It is kept for reuse, together with the function that go
// statements start, so that nothing is allocated.
type shared struct {
	product
	byRows bool // bands are of rows, not of columns
	band   int  // rows or columns of a band
	bands  int
	panels int // of op(B), to be packed; 0 if each band reads op(B) on its own
	buffer []float32

	next     atomic.Int64 // step to be taken
	packed   atomic.Int64 // panels done
	finished atomic.Int64 // bands done
	wait     sync.WaitGroup
	users    atomic.Int64 // goroutines that may still read what is here
	helper   func()
}

var sharedProducts spare[shared]

// idleShared returns a shared product that no one uses.
func idleShared() *shared {
	if s := sharedProducts.get(); s != nil {
		return s
	}
	s := &shared{}
	s.helper = func() {
		for s := s; s != nil; s = linger() {
			s.work()
			s.leave()
		}
	}
	return s
}

// To wake a thread takes longer than many a product, so a helper stays awake for a moment, in case that another product
// follows at once: helpers counts those that do, and follower is the product that is offered to them.
var (
	helpers  atomic.Int64
	follower atomic.Pointer[shared]
)

// patience is how often a goroutine looks, letting others run in between, before it gives up: for some 0.1 ms.
const patience = 1000

// linger waits a moment for another product to help with, and returns nil if none comes.
func linger() *shared {
	helpers.Add(1)
	for range patience {
		if s := follower.Swap(nil); s != nil {
			helpers.Add(-1)
			return s
		}
		runtime.Gosched()
	}
	helpers.Add(-1)
	return follower.Swap(nil) // what call has offered in the meantime, for it takes it back if it sees no helper
}

// call makes a helper work on s, one that is awake if there is any.
func (s *shared) call() {
	offered := helpers.Load() > 0 && follower.CompareAndSwap(nil, s)
	if offered && helpers.Load() == 0 {
		offered = !follower.CompareAndSwap(s, nil)
	}
	if !offered {
		go s.helper()
	}
}

// block is the length of the chains in which products are summed in assembly: a panel of op(B) of that length and of a
// tile's width stays close to the core. It decides on the bits of results.
const block = 384

// bandRows is the most rows of op(A) that are packed at a time, so that they stay in the second-level cache.
const bandRows = 144

// packMargin is how many elements packing may write behind the last panel.
const packMargin = 8

// packedTerms and packedColumns are the most of op(B) that goroutines pack together, 1.5 MB: every band reads all
// of it, and it stays in the second-level cache of each core.
const packedTerms, packedColumns = block, 1024

// parallel computes a product on so many threads. If op(B) is too large to be packed at once it is done part by part.
func (p *product) parallel(threads int) {
	if few := 4 * active.rows * threads; p.m < few && p.n > p.m {
		p.share(threads, false, roundUp(p.n/(8*threads)+1, active.columns))
		return
	}
	columns, terms := p.n, p.k
	if p.packsB() {
		columns, terms = packedColumns, packedTerms
	}
	for j := 0; j < p.n; j += columns {
		for l := 0; l < p.k; l += terms {
			part := p.part(0, p.m, j, min(p.n, j+columns))
			part.takeTerms(l, min(p.k, l+terms))
			part.share(threads, true, min(bandRows, roundUp(p.m/(8*threads)+1, active.rows)))
		}
	}
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// share computes a product on so many threads, cut into bands of so many rows or columns.
func (p *product) share(threads int, byRows bool, band int) {
	s := idleShared()
	s.product, s.byRows, s.band, s.panels = *p, byRows, band, 0
	s.bands = (p.n + band - 1) / band
	if byRows {
		s.bands = (p.m + band - 1) / band
		if p.packsB() {
			s.panels = (p.n + active.columns - 1) / active.columns
			s.buffer = grow(s.buffer, s.panels*active.columns*p.k+packMargin)
			s.packedB = s.buffer
		}
	}
	s.next.Store(0)
	s.packed.Store(0)
	s.finished.Store(0)
	s.wait.Add(s.bands)
	threads = min(threads, s.bands)
	s.users.Store(int64(threads))
	for range threads - 1 {
		s.call()
	}
	s.work()
	s.await()
	if s.users.Load() > 1 {
		runtime.Gosched() // so that helpers that have come too late do not pile up
	}
	s.leave()
}

// await returns when all bands are computed. It does not wait for helpers that have not begun.
func (s *shared) await() {
	// To sleep and be woken takes longer than most bands, hence first some patience.
	for range patience {
		if s.finished.Load() == int64(s.bands) {
			break
		}
		runtime.Gosched()
	}
	s.wait.Wait()
}

// leave makes the shared product free for reuse if no one else uses it any more.
func (s *shared) leave() {
	if s.users.Add(-1) == 0 {
		s.product = product{}
		sharedProducts.put(s)
	}
}

// work takes steps until none is left.
func (s *shared) work() {
	for {
		step := int(s.next.Add(1)) - 1
		switch {
		case step < s.panels:
			s.packPanel(s.buffer, step*active.columns)
			s.packed.Add(1)
		case step < s.panels+s.bands:
			for s.packed.Load() < int64(s.panels) {
				runtime.Gosched() // for as long as others take for the panel that they are packing
			}
			s.computeBand((step - s.panels) * s.band)
			s.finished.Add(1)
			s.wait.Done()
		default:
			return
		}
	}
}

// computeBand computes the rows or columns of a band from the given one on.
func (s *shared) computeBand(first int) {
	var q product
	if s.byRows {
		q = s.part(first, min(s.m, first+s.band), 0, s.n)
	} else {
		q = s.part(0, s.m, first, min(s.n, first+s.band))
	}
	q.multiply()
}

// grow returns a slice of n elements, x if it is long enough. Old elements are lost.
func grow(x []float32, n int) []float32 {
	if cap(x) < n {
		return make([]float32, n+n/4)
	}
	return x[:n]
}
