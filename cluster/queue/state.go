package queue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors/state"
)

// Declare declares the entries of a calendar with their ids. item declares the item of an entry.
func (c *Calendar[T]) Declare(s *state.State, name string, item func(s *state.State, item *T)) {
	type saved struct {
		entry
		item T
	}
	var all []saved
	if !s.Restoring() {
		sorted := slices.SortedFunc(slices.Values(c.entries), func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
		})
		for _, e := range sorted {
			all = append(all, saved{e, c.slots[e.slot].item})
		}
	}
	s.Group(name, func(s *state.State) {
		state.Int(s, "latest", &c.latest)
		state.Ints(s, "vacant", &c.vacant)
		state.List(s, "entries", &all, func(s *state.State, x *saved) {
			state.Int(s, "at", &x.at)
			state.Int(s, "number", &x.number)
			state.Int(s, "slot", &x.slot)
			s.Group("item", func(s *state.State) { item(s, &x.item) })
		})
		if !s.Restoring() {
			return
		}
		c.entries, c.slots = nil, make([]slot[T], len(all)+len(c.vacant)) // a slot is vacant or holds an entry
		taken := make([]bool, len(c.slots))
		take := func(i uint32) bool {
			there := int(i) < len(taken) && !taken[i]
			if there {
				taken[i] = true
			} else {
				s.Fail(fmt.Errorf("a calendar of %d slots has slot %d twice or not at all", len(taken), i))
			}
			return there
		}
		for _, i := range c.vacant {
			take(i)
		}
		for _, x := range all {
			if take(x.slot) {
				c.push(x.entry)
				c.slots[x.slot] = slot[T]{x.number, x.item}
			}
		}
	})
}

// Declare declares the items of a queue. item declares one item.
func (r *Ring[T]) Declare(s *state.State, name string, item func(s *state.State, item *T)) {
	var all []T
	if !s.Restoring() {
		all = slices.Collect(r.All(func(T) bool { return true }))
	}
	if state.List(s, name, &all, item); s.Restoring() {
		*r = Ring[T]{}
		for _, x := range all {
			r.Push(x)
		}
	}
}
