package protos

import (
	"math"
	"sync"
	"sync/atomic"
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
	case left == 0 && t.pool != nil:
		t.pool.put(t)
	}
}

// Sole reports whether the caller, holding one reference, is the only holder
// and so may write Data.
func (t *Tensor) Sole() bool { return t.references.Load() == 1 }

// TensorPool recycles tensors by length. The zero value is ready for use, and
// it may be used by many goroutines.
type TensorPool struct {
	// Poison overwrites released tensors with NaN, so that a reader who holds no
	// reference is found out.
	Poison bool

	mu   sync.Mutex
	free map[int][]*Tensor
}

// Get returns a tensor of n values with one reference. Its values are
// unspecified.
func (p *TensorPool) Get(n int) *Tensor {
	p.mu.Lock()
	if list := p.free[n]; len(list) > 0 {
		t := list[len(list)-1]
		p.free[n] = list[:len(list)-1]
		p.mu.Unlock()
		t.references.Store(1)
		return t
	}
	p.mu.Unlock()
	t := NewTensor(make([]float32, n))
	t.pool = p
	return t
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
	p.mu.Lock()
	if p.free == nil {
		p.free = make(map[int][]*Tensor)
	}
	p.free[len(t.Data)] = append(p.free[len(t.Data)], t)
	p.mu.Unlock()
}
