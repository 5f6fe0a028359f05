// Package queue holds what waits for its turn: in one order, or in the order of a mailbox.
package queue

import "iter"

// Ring is a first-in-first-out queue that reuses its memory. The zero value is empty.
type Ring[T any] struct {
	items       []T // buffer; its length is zero or a power of two
	first, size uint32
}

// Len is the number of items.
func (r *Ring[T]) Len() int { return int(r.size) }

// Push puts an item behind all others.
func (r *Ring[T]) Push(x T) {
	if int(r.size) == len(r.items) {
		grown := make([]T, max(1, 2*r.size))
		n := copy(grown, r.items[r.first:])
		copy(grown[n:], r.items[:r.first])
		r.items, r.first = grown, 0
	}
	r.items[(r.first+r.size)&r.mask()] = x
	r.size++
}

func (r *Ring[T]) mask() uint32 { return uint32(len(r.items) - 1) }

// Front is the first item of a queue that has one.
func (r *Ring[T]) Front() T { return r.items[r.first] }

// Pop takes the first item out of a queue that has one.
func (r *Ring[T]) Pop() T {
	var none T
	x := r.items[r.first]
	r.items[r.first] = none
	r.first = (r.first + 1) & r.mask()
	r.size--
	return x
}

// All yields the items of which something holds, the first one first.
func (r *Ring[T]) All(holds func(T) bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.size {
			if x := r.items[(r.first+i)&r.mask()]; holds(x) && !yield(x) {
				return
			}
		}
	}
}

// Mailbox is what waits for an actor, by class. Protoactor's own messages are handled before all
// others, and messages of the control protocol before messages of actors.
type Mailbox[T any] struct{ System, Control, User Ring[T] }

// Len is the number of items of all classes.
func (m *Mailbox[T]) Len() int { return m.System.Len() + m.Control.Len() + m.User.Len() }

// Next takes the most urgent item. Where a mailbox is held nothing but protoactor's own messages
// is.
func (m *Mailbox[T]) Next(held bool) (x T, system, ok bool) {
	switch {
	case m.System.Len() > 0:
		return m.System.Pop(), true, true
	case held:
	case m.Control.Len() > 0:
		return m.Control.Pop(), false, true
	case m.User.Len() > 0:
		return m.User.Pop(), false, true
	}
	return x, false, false
}
