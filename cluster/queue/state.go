package queue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gradwire/gradwire/actors/state"
)

// Declare declares the entries of a calendar, with their ids. item declares the item of one.
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
		slots := len(c.slots)
		state.Int(s, "slots", &slots)
		state.Int(s, "latest", &c.latest)
		state.Ints(s, "vacant", &c.vacant)
		if s.Restoring() {
			c.entries, c.slots = nil, make([]slot[T], min(max(slots, 0), 1<<32))
		}
		state.List(s, "entries", &all, func(s *state.State, x *saved) {
			state.Int(s, "at", &x.at)
			state.Int(s, "number", &x.number)
			state.Int(s, "slot", &x.slot)
			s.Group("item", func(s *state.State) { item(s, &x.item) })
			switch {
			case !s.Restoring():
			case int(x.slot) >= len(c.slots):
				s.Fail(fmt.Errorf("a calendar of %d slots has no slot %d", len(c.slots), x.slot))
			default:
				c.push(x.entry)
				c.slots[x.slot] = slot[T]{x.number, x.item}
			}
		})
	})
}

// Declare declares the items of a queue. item declares one.
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
