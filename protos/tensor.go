package protos

import (
	"cmp"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"weak"
)

// Tensor is a reference-counted vector of float32 values.
//
// Sending a Message gives its receiver one reference to each of its tensors.
// Only the holder of the sole reference may write Data. The last Release
// returns the tensor to the pool that it came from; forgetting a Release costs
// memory, never correctness.
type Tensor struct {
	// Data are the values.
	Data []float32

	references atomic.Int32
	pool       *TensorPool
	whole      *Tensor // of a view, what it is a view of
	low        int     // of a view, its first value in whole
}

// NewTensor wraps data, which it does not copy, as a tensor of no pool with one
// reference.
func NewTensor(data []float32) *Tensor {
	t := &Tensor{Data: data}
	t.references.Store(1)
	return t
}

// Retain adds a reference and returns the tensor. It panics if none was left,
// because the buffer may by then belong to somebody else.
func (t *Tensor) Retain() *Tensor {
	if t.references.Add(1) <= 1 {
		panic("protos: tensor retained after its last release")
	}
	return t
}

// Release gives one reference back. It panics if there is none left, because
// the buffer may by then belong to somebody else.
func (t *Tensor) Release() {
	switch left := t.references.Add(-1); {
	case left < 0:
		panic("protos: tensor released more often than retained")
	case left > 0:
	case t.whole != nil:
		whole := t.whole
		t.whole, t.Data = nil, nil
		if t.pool != nil {
			t.pool.putView(t)
		}
		whole.Release()
	case t.pool != nil:
		t.pool.put(t)
	}
}

// Sole reports whether the caller, holding one reference, is the only holder
// and so may write Data. The holder of a view never is, because a view shares its memory.
func (t *Tensor) Sole() bool { return t.references.Load() == 1 && t.whole == nil }

// IsView reports whether the tensor is a view of another one.
func (t *Tensor) IsView() bool { return t.whole != nil }

// View returns a tensor of the values low to high−1 of t in the same memory, with one reference.
// Until its last Release it holds a reference to t, which is therefore not Sole. Code that
// still writes t must know that these values are no longer read.
func (t *Tensor) View(low, high int) *Tensor {
	var v *Tensor
	if t.pool != nil {
		v = t.pool.getView()
	}
	if v == nil {
		v = &Tensor{pool: t.pool}
	}
	v.whole, v.low, v.Data = t.Retain(), low, t.Data[low:high:high]
	v.references.Store(1)
	return v
}

// Whole returns the tensor that owns the memory, t itself unless it is a view, and the position of t's
// first value in it.
func (t *Tensor) Whole() (whole *Tensor, low int) {
	for whole = t; whole.whole != nil; whole = whole.whole {
		low += whole.low
	}
	return whole, low
}

// TensorPool recycles tensors by length. The zero value is ready for use, and
// it may be used by many goroutines.
type TensorPool struct {
	// Poison overwrites released tensors with NaN, so that a reader who holds no
	// reference is found out.
	Poison bool
	// Bound is how many bytes of released tensors are kept for the next; 0 stands for DefaultBound.
	// A pool that would keep more forgets what it keeps, all lengths alike, since those that are
	// still in use soon come back.
	Bound int
	// Audited makes the pool list its tensors, for Forgotten.
	Audited bool

	mu    sync.Mutex
	free  map[int][]*Tensor
	kept  int       // bytes in free
	views []*Tensor // free views, without values
	made  []made    // all tensors of the pool, if audited
}

// made is a tensor that a pool has made.
type made struct {
	tensor weak.Pointer[Tensor]
	length int
}

// DefaultBound is the bound of a TensorPool in bytes.
const DefaultBound = 1 << 30

// Get returns a tensor of n values with one reference. Its values are
// unspecified.
func (p *TensorPool) Get(n int) *Tensor {
	p.mu.Lock()
	if list := p.free[n]; len(list) > 0 {
		t := list[len(list)-1]
		p.free[n] = list[:len(list)-1]
		p.kept -= 4 * n
		p.mu.Unlock()
		t.references.Store(1)
		return t
	}
	p.mu.Unlock()
	t := NewTensor(make([]float32, n))
	t.pool = p
	if p.Audited {
		p.mu.Lock()
		p.made = append(p.made, made{weak.Make(t), n})
		p.mu.Unlock()
	}
	return t
}

// Forgotten returns the lengths of those tensors of an audited pool that nobody holds, and that
// were never given back: a release is missing. It collects garbage. A pool that was full has
// forgotten some itself.
func (p *TensorPool) Forgotten() (lengths []int) {
	runtime.GC()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.made {
		if m.tensor.Value() == nil {
			lengths = append(lengths, m.length)
		}
	}
	return lengths
}

// Copy returns a tensor from the pool that holds a copy of data.
func (p *TensorPool) Copy(data []float32) *Tensor {
	t := p.Get(len(data))
	copy(t.Data, data)
	return t
}

// Writable returns a tensor with the values of t that the caller may write: t
// itself where the caller is its only holder, otherwise a copy, for which the
// caller's reference to t is given back.
func (p *TensorPool) Writable(t *Tensor) *Tensor {
	if t.Sole() {
		return t
	}
	c := p.Copy(t.Data)
	t.Release()
	return c
}

func (p *TensorPool) put(t *Tensor) {
	if p.Poison {
		nan := float32(math.NaN())
		for i := range t.Data {
			t.Data[i] = nan
		}
	}
	size := 4 * len(t.Data)
	p.mu.Lock()
	defer p.mu.Unlock()
	bound := cmp.Or(p.Bound, DefaultBound)
	if p.free == nil || p.kept+size > bound {
		p.free, p.kept = map[int][]*Tensor{}, 0
	}
	if size <= bound {
		p.free[len(t.Data)] = append(p.free[len(t.Data)], t)
		p.kept += size
	}
}

// keptViews bounds the views that a pool keeps.
const keptViews = 1 << 10

func (p *TensorPool) getView() *Tensor {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.views)
	if n == 0 {
		return nil
	}
	v := p.views[n-1]
	p.views = p.views[:n-1]
	return v
}

func (p *TensorPool) putView(v *Tensor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.views) < keptViews {
		p.views = append(p.views, v)
	}
}
