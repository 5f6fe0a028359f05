package sim

import "time"

// event is one entry of the calendar. Its contents lie in a slot, so that
// sifting moves 24 bytes.
type event struct {
	at   time.Duration
	seq  uint64
	slot uint32
}

func (a event) before(b event) bool { return a.at < b.at || (a.at == b.at && a.seq < b.seq) }

// calendar is a 4-ary heap of events, ordered by time and, at one instant, by
// the order in which they were entered.
type calendar []event

func (c *calendar) push(x event) {
	h := append(*c, x)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 4
		if h[p].before(x) {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = x
	*c = h
}

func (c *calendar) pop() event {
	h := *c
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*c = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		first := 4*i + 1
		if first >= len(h) {
			break
		}
		least := first
		for j := first + 1; j < min(first+4, len(h)); j++ {
			if h[j].before(h[least]) {
				least = j
			}
		}
		if !h[least].before(x) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = x
	return top
}
