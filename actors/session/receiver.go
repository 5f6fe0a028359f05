package session

// Receiver is the half of a session at the node that the messages go to. It keeps those, each a T,
// that come too early. The zero value begins a session.
type Receiver[T any] struct {
	next  Number
	early []early[T] // those behind next; the first one stands for next itself and is empty
	owes  bool
}

// early is the place of a message behind one that is missing.
type early[T any] struct {
	item T
	here bool
}

// Receive takes in a copy of a message. It reports whether it is the first one, which the receiver
// takes over, to return it by Next in its order. Other copies stay with the caller. With asks the
// sender wants to know.
func (r *Receiver[T]) Receive(n Number, item T, asks bool) (fresh bool) {
	r.owes = r.owes || asks
	i := int(n - r.next)
	if i >= Window {
		return false // handled before, or of another session
	}
	for len(r.early) <= i {
		r.early = append(r.early, early[T]{})
	}
	if r.early[i].here {
		return false
	}
	r.early[i] = early[T]{item, true}
	return true
}

// Next returns the next message to be handled, if it has arrived.
func (r *Receiver[T]) Next() (item T, ok bool) {
	if len(r.early) == 0 || !r.early[0].here {
		return item, false
	}
	item = r.early[0].item
	left := copy(r.early, r.early[1:])
	r.early[left] = early[T]{}
	r.early = r.early[:left]
	r.next++
	return item, true
}

// Owes reports whether the sender wants to know what has arrived, and has not been told.
func (r *Receiver[T]) Owes() bool { return r.owes }

// Ack returns what has arrived, to be told to the sender.
func (r *Receiver[T]) Ack() Ack {
	r.owes = false
	a := Ack{Next: r.next}
	for i := 1; i < len(r.early) && i <= Selected; i++ {
		if r.early[i].here {
			a.Seen |= 1 << (i - 1)
		}
	}
	return a
}

// Drop returns the messages that are kept because one before them is missing, in their order, and
// forgets them: that one will never come.
func (r *Receiver[T]) Drop() (dropped []T) {
	for i := range r.early {
		if r.early[i].here {
			dropped = append(dropped, r.early[i].item)
		}
	}
	clear(r.early)
	r.early = r.early[:0]
	return dropped
}
