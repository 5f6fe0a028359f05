package input

import "unsafe"

// Chunks is a list that grows without a copy of what is in it, so that it never takes
// much more memory than its elements. The zero value is an empty list.
type Chunks[T any] struct {
	full [][]T
	last []T
	n    int
}

const (
	firstChunk = 1 << 6
	lastChunk  = 1 << 16
)

// Append appends elements.
func (c *Chunks[T]) Append(values ...T) {
	c.n += len(values)
	for len(values) > 0 {
		if len(c.last) == cap(c.last) {
			if c.last != nil {
				c.full = append(c.full, c.last)
			}
			c.last = make([]T, 0, min(max(firstChunk, 2*cap(c.last)), lastChunk))
		}
		k := min(len(values), cap(c.last)-len(c.last))
		c.last, values = append(c.last, values[:k]...), values[k:]
	}
}

// Len returns the number of elements.
func (c *Chunks[T]) Len() int { return c.n }

// Bytes returns the size of the elements.
func (c *Chunks[T]) Bytes() int64 {
	var one T
	return int64(c.n) * int64(unsafe.Sizeof(one))
}

// Each calls visit with the elements, a part at a time, in their order, and lets go of each part.
func (c *Chunks[T]) Each(visit func(part []T)) {
	for i, part := range c.full {
		visit(part)
		c.full[i] = nil
	}
	visit(c.last)
	*c = Chunks[T]{}
}

// Slice returns the elements as one slice, and leaves the list empty.
func (c *Chunks[T]) Slice() []T {
	all := make([]T, 0, c.n)
	c.Each(func(part []T) { all = append(all, part...) })
	return all
}
