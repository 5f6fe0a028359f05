package sim

// ring is the run queue: the mailboxes that have something to do, in the order in
// which they got it.
type ring struct {
	items      []*mailbox // its length is a power of two
	head, tail int
}

func (r *ring) empty() bool { return r.head == r.tail }

func (r *ring) push(m *mailbox) {
	if len(r.items) == 0 {
		r.items = make([]*mailbox, 64)
	}
	r.items[r.tail] = m
	r.tail = (r.tail + 1) & (len(r.items) - 1)
	if r.tail == r.head {
		grown := make([]*mailbox, 2*len(r.items))
		n := copy(grown, r.items[r.head:])
		copy(grown[n:], r.items[:r.head])
		r.head, r.tail, r.items = 0, len(r.items), grown
	}
}

func (r *ring) pop() *mailbox {
	m := r.items[r.head]
	r.items[r.head] = nil
	r.head = (r.head + 1) & (len(r.items) - 1)
	return m
}
