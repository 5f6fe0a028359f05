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

	next   atomic.Int64 // step to be taken
	packed atomic.Int64 // panels done
	helper func()
	wait   sync.WaitGroup
}

var sharedProducts = sync.Pool{New: func() any {
	s := &shared{}
	s.helper = func() {
		s.work()
		s.wait.Done()
	}
	return s
}}

// block is the length of the chains in which products are summed in assembly: a panel of op(B) of that length and of a
// tile's width stays close to the core. It decides on the bits of results.
const block = 384

// bandRows is the most rows of op(A) that are packed at a time, so that they stay in the second-level cache.
const bandRows = 240

// packMargin is how many elements packing may write behind the last panel.
const packMargin = 8

// packedTerms and packedColumns are the most of op(B) that goroutines pack together, 48 MB.
const packedTerms, packedColumns = 8 * block, 4096

// parallel computes a product on so many threads. If op(B) is too large to be packed at once it is done part by part.
func (p *product) parallel(threads int) {
	s := sharedProducts.Get().(*shared)
	if few := 4 * active.rows * threads; p.m < few && p.n > p.m {
		s.byRows, s.band = false, roundUp(p.n/(8*threads)+1, active.columns)
		s.compute(p, threads)
	} else {
		s.byRows, s.band = true, min(bandRows, roundUp(p.m/(8*threads)+1, 2*active.rows))
		columns, terms := p.n, p.k
		if p.packsB() {
			columns, terms = packedColumns, packedTerms
		}
		for j := 0; j < p.n; j += columns {
			for l := 0; l < p.k; l += terms {
				q := p.part(0, p.m, j, min(p.n, j+columns))
				q.takeTerms(l, min(p.k, l+terms))
				s.compute(&q, threads)
			}
		}
	}
	s.product = product{}
	sharedProducts.Put(s)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// compute computes a product on so many threads, cut as byRows and band say.
func (s *shared) compute(p *product, threads int) {
	s.product, s.panels = *p, 0
	if s.byRows {
		s.bands = (s.m + s.band - 1) / s.band
		if s.packsB() {
			s.panels = (s.n + active.columns - 1) / active.columns
			s.buffer = grow(s.buffer, s.panels*active.columns*s.k+packMargin)
			s.packedB = s.buffer
		}
	} else {
		s.bands = (s.n + s.band - 1) / s.band
	}
	s.next.Store(0)
	s.packed.Store(0)
	helpers := min(threads, s.bands) - 1
	s.wait.Add(helpers)
	for range helpers {
		go s.helper()
	}
	s.work()
	s.wait.Wait()
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
