package world

// Queue is a first-in-first-out queue that reuses its memory. The zero value is empty.
type Queue[T any] struct {
	items []T
	first int
}

// Len is the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.first }

// Push puts an item behind all others.
func (q *Queue[T]) Push(x T) {
	if q.first > 0 && len(q.items) == cap(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, x)
}

// Pop takes the first item out of a queue that has one.
func (q *Queue[T]) Pop() T {
	var none T
	x := q.items[q.first]
	q.items[q.first] = none
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return x
}

// Queues are what waits in a mailbox, by class. Protoactor's own messages are handled before all
// others, and messages of the control protocol before messages of actors.
type Queues[T any] struct{ System, Control, User Queue[T] }

// Next takes the most urgent item. Where a mailbox is held nothing but protoactor's own messages
// is.
func (q *Queues[T]) Next(held bool) (x T, system, ok bool) {
	switch {
	case q.System.Len() > 0:
		return q.System.Pop(), true, true
	case held:
	case q.Control.Len() > 0:
		return q.Control.Pop(), false, true
	case q.User.Len() > 0:
		return q.User.Pop(), false, true
	}
	return x, false, false
}
