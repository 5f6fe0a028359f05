package queue

import (
	"iter"
	"time"
)

// Calendar holds what is due at instants. What is due at one instant comes out in the order in
// which it was entered. The zero value is empty.
type Calendar[T any] struct {
	entries []entry // a 4-ary heap
	slots   []slot[T]
	vacant  []uint32
	latest  uint64 // number
}

// entry says when something is due. What it is lies in a slot, so that sifting moves 24 bytes.
type entry struct {
	at     time.Duration
	number uint64 // in the order of entering
	slot   uint32
}

type slot[T any] struct {
	number uint64
	item   T
}

func (a entry) before(b entry) bool { return a.at < b.at || (a.at == b.at && a.number < b.number) }

// Len is the number of entries.
func (c *Calendar[T]) Len() int { return len(c.entries) }

// First is the instant of the next entry of a calendar that has one.
func (c *Calendar[T]) First() time.Duration { return c.entries[0].at }

// Number takes a number in the order of entries for what is not entered, because it is due now.
func (c *Calendar[T]) Number() uint64 {
	c.latest++
	return c.latest
}

// Skip takes as many numbers.
func (c *Calendar[T]) Skip(count int) { c.latest += uint64(count) }

// Enter makes an entry at an instant and returns where its item belongs. The id, which is not 0, is
// for Find.
func (c *Calendar[T]) Enter(at time.Duration) (item *T, id uint64) {
	number := c.Number()
	var i uint32
	if n := len(c.vacant); n > 0 {
		i = c.vacant[n-1]
		c.vacant = c.vacant[:n-1]
	} else {
		i = uint32(len(c.slots))
		c.slots = append(c.slots, slot[T]{})
	}
	s := &c.slots[i]
	s.number = number
	c.push(entry{at, number, i})
	return &s.item, uint64(i)<<32 | number&0xffffffff
}

// Find returns the item of an entry that is still in the calendar, nil otherwise.
func (c *Calendar[T]) Find(id uint64) *T {
	if id == 0 {
		return nil
	}
	if s := &c.slots[id>>32]; s.number != 0 && s.number&0xffffffff == id&0xffffffff {
		return &s.item
	}
	return nil
}

// Next takes the next entry out of a calendar that has one. Its item is there until the next Enter,
// and is to be cleared before.
func (c *Calendar[T]) Next() (at time.Duration, number uint64, item *T) {
	e := c.pop()
	s := &c.slots[e.slot]
	s.number = 0
	c.vacant = append(c.vacant, e.slot)
	return e.at, e.number, &s.item
}

func (c *Calendar[T]) push(x entry) {
	c.entries = append(c.entries, x)
	h := c.entries
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
}

func (c *Calendar[T]) pop() entry {
	h := c.entries
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	c.entries = h
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

// All yields the items of all entries, in no order.
func (c *Calendar[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range c.slots {
			if c.slots[i].number != 0 && !yield(&c.slots[i].item) {
				return
			}
		}
	}
}
