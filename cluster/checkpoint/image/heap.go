package image

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// sort says what an object is.
type sort uint8

const (
	memory sort = iota // what pointers and slices lead to: values of one type in a row
	box                // a copy of the value in an interface, if that is no pointer
	mapping
	keyOf   // a copy of a key of a map
	valueOf // a copy of a value of a map
)

// object is something that was found, or several things found that are parts of one.
type object struct {
	sort   sort
	base   unsafe.Pointer // of a mapping, what tells it from others
	layout *layout        // of a mapping, that of a map variable
	count  int
	more   *more // of a mapping, a keyOf and a valueOf
}

// more is what maps have besides.
type more struct {
	key      []byte        // by which a key and its value are found; nil if the key has none
	variable reflect.Value // of the map
	entries  []int         // of the map: its keys; the value of each follows it
}

func (o *object) end() uintptr { return uintptr(o.base) + uintptr(o.count)*o.layout.size }

// heap is everything that some roots lead to, in the order in which it is found.
type heap struct {
	layouts layouts
	given   *heap // what is not followed
	objects []object
	seen    map[place]bool
	maps    map[unsafe.Pointer]int
	boxes   map[unsafe.Pointer]int // by the slot of the interface
	sorted  []extent               // memory by address, without what is part of another
	failure error
}

type place struct {
	at     unsafe.Pointer
	layout *layout
	count  int
}

// extent is where an object is in memory.
type extent struct {
	low, high uintptr
	object    int
}

// explore finds what is behind roots, which are pointers.
func explore(k layouts, given *heap, roots ...any) (*heap, error) {
	h := &heap{layouts: k, given: given, seen: map[place]bool{}, maps: map[unsafe.Pointer]int{},
		boxes: map[unsafe.Pointer]int{}}
	for i, root := range roots {
		v := reflect.ValueOf(root)
		if h.memory(v.UnsafePointer(), k.of(v.Type().Elem()), 1); len(h.objects) != i+1 {
			h.fail("a root of type %T is given, or another root too", root)
		}
	}
	for i := 0; i < len(h.objects); i++ {
		h.visit(i)
	}
	if h.failure == nil {
		h.merge()
	}
	return h, h.failure
}

func (h *heap) fail(format string, arguments ...any) {
	if h.failure == nil {
		h.failure = fmt.Errorf(format, arguments...)
	}
}

// memory takes in values in a row.
func (h *heap) memory(at unsafe.Pointer, l *layout, count int) {
	p := place{at, l, count}
	if l.size == 0 || h.seen[p] || h.isGiven(at) {
		return
	}
	h.seen[p] = true
	h.objects = append(h.objects, object{base: at, layout: l, count: count})
}

func (h *heap) isGiven(at unsafe.Pointer) bool {
	if h.given == nil {
		return false
	}
	i, _ := h.given.find(at)
	return i >= 0
}

// visit follows the slots of an object.
func (h *heap) visit(i int) {
	o := h.objects[i]
	switch {
	case o.sort == mapping:
		h.visitMap(i)
		return
	case !o.layout.leads:
		return
	}
	for n := range o.count {
		at := unsafe.Add(o.base, uintptr(n)*o.layout.size)
		for s := range o.layout.slots {
			h.follow(&o.layout.slots[s], unsafe.Add(at, o.layout.slots[s].offset))
		}
	}
}

// header is how a slice lies in memory.
type header struct {
	data          unsafe.Pointer
	length, bound int
}

// follow follows a slot.
func (h *heap) follow(s *slot, at unsafe.Pointer) {
	switch s.kind {
	case pointer:
		if to := *(*unsafe.Pointer)(at); to != nil {
			h.memory(to, h.layouts.of(s.of.Elem()), 1)
		}
	case list:
		if to := (*header)(at); to.bound > 0 {
			h.memory(to.data, h.layouts.of(s.of.Elem()), to.bound)
		}
	case dynamic:
		if v := reflect.NewAt(s.of, at).Elem(); !v.IsNil() {
			h.open(v.Elem(), at)
		}
	case table:
		if v := reflect.NewAt(s.of, at).Elem(); !v.IsNil() {
			h.mapping(v)
		}
	}
}

// open takes in what an interface holds.
func (h *heap) open(v reflect.Value, at unsafe.Pointer) {
	t := v.Type()
	switch {
	case foreign(t):
	case t.Kind() == reflect.Pointer:
		if !v.IsNil() {
			h.memory(v.UnsafePointer(), h.layouts.of(t.Elem()), 1)
		}
	case h.boxes[at] == 0:
		c := reflect.New(t)
		c.Elem().Set(v)
		h.boxes[at] = len(h.objects)
		h.objects = append(h.objects, object{sort: box, base: c.UnsafePointer(), layout: h.layouts.of(t), count: 1})
	}
}

func (h *heap) mapping(v reflect.Value) {
	at := v.UnsafePointer()
	if _, known := h.maps[at]; known {
		return
	}
	if h.given != nil {
		if _, known := h.given.maps[at]; known {
			return
		}
	}
	variable := reflect.New(v.Type()).Elem() // the slot may be written over
	variable.Set(v)
	h.maps[at] = len(h.objects)
	h.objects = append(h.objects, object{sort: mapping, base: at, layout: h.layouts.of(v.Type()), count: 1,
		more: &more{variable: variable}})
}

// visitMap takes in copies of a map's keys and values, in the order of what the keys are found by.
func (h *heap) visitMap(i int) {
	m := h.objects[i]
	type entry struct {
		key        []byte
		copy, with reflect.Value
	}
	var entries []entry
	t := m.layout.of
	for it := m.more.variable.MapRange(); it.Next(); {
		e := entry{copy: reflect.New(t.Key()), with: reflect.New(t.Elem())}
		e.copy.Elem().Set(it.Key())
		e.with.Elem().Set(it.Value())
		e.key = h.keyOf(e.copy.UnsafePointer(), h.layouts.of(t.Key()))
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, e := range entries {
		m.more.entries = append(m.more.entries, len(h.objects))
		h.objects = append(h.objects,
			object{sort: keyOf, base: e.copy.UnsafePointer(), layout: h.layouts.of(t.Key()), count: 1,
				more: &more{key: e.key}},
			object{sort: valueOf, base: e.with.UnsafePointer(), layout: h.layouts.of(t.Elem()), count: 1,
				more: &more{key: e.key}})
	}
}

// keyOf is what an entry of a map is found by in another process: nil if its key leads to what is
// not given.
func (h *heap) keyOf(at unsafe.Pointer, l *layout) []byte {
	b := []byte{1}
	for _, r := range l.raw {
		b = append(b, unsafe.Slice((*byte)(unsafe.Add(at, r.low)), r.high-r.low)...)
	}
	for _, s := range l.slots {
		switch to := unsafe.Add(at, s.offset); s.kind {
		case text:
			b = append(number(b, uint64(len(*(*string)(to)))), *(*string)(to)...)
		case pointer:
			if h.given == nil {
				return nil
			}
			i, offset := h.given.find(*(*unsafe.Pointer)(to))
			if i < 0 {
				return nil
			}
			b = number(number(b, uint64(i)), uint64(offset))
		case dynamic:
			v := reflect.NewAt(s.of, to).Elem()
			if v.IsNil() || v.Elem().Kind() == reflect.Pointer {
				return nil
			}
			c := reflect.New(v.Elem().Type())
			c.Elem().Set(v.Elem())
			inner := h.keyOf(c.UnsafePointer(), h.layouts.of(v.Elem().Type()))
			if inner == nil {
				return nil
			}
			b = append(append(b, nameOf(v.Elem().Type())...), inner...)
		default:
			return nil
		}
	}
	return b
}

// merge makes one object of those that share memory. It keeps the order in which they were found.
func (h *heap) merge() {
	all := make([]extent, 0, len(h.objects))
	for i := range h.objects {
		if o := &h.objects[i]; o.sort != mapping && o.layout.size > 0 {
			all = append(all, extent{uintptr(o.base), o.end(), i})
		}
	}
	slices.SortFunc(all, func(a, b extent) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.high, a.high), cmp.Compare(a.object, b.object))
	})
	part := make([]int, len(h.objects)) // the object that one is part of
	for i := range part {
		part[i] = i
	}
	h.sorted = all[:0] // what is united takes no more room
	for i := 0; i < len(all); {
		i = h.unite(all, i, part)
	}
	h.renumber(part)
}

// unite finds what shares memory with the first of some objects, and returns where the next begin.
func (h *heap) unite(all []extent, first int, part []int) (next int) {
	found := all[first]
	whole := h.objects[found.object]
	for next = first + 1; next < len(all) && all[next].low < found.high; next++ {
		o := &h.objects[all[next].object]
		found.object = min(found.object, all[next].object)
		switch {
		case all[next].high > found.high && o.layout != whole.layout:
			h.fail("values of types %s and %s share memory in part", o.layout.name, whole.layout.name)
		case all[next].high > found.high:
			found.high = all[next].high
			whole.count = int((found.high - found.low) / whole.layout.size)
		case o.base == whole.base && all[next].high == found.high && o.layout.nests(whole.layout):
			whole.layout, whole.count = o.layout, o.count
		}
	}
	for _, e := range all[first:next] {
		part[e.object] = found.object
	}
	o := &h.objects[found.object]
	o.base, o.layout, o.count = whole.base, whole.layout, whole.count
	h.sorted = append(h.sorted, found)
	return next
}

// renumber leaves out what is part of another object.
func (h *heap) renumber(part []int) {
	numbers := make([]int, len(h.objects))
	rest := h.objects[:0]
	for i := range h.objects {
		if part[i] == i {
			numbers[i] = len(rest)
			rest = append(rest, h.objects[i])
		}
	}
	for i := range rest {
		if o := &rest[i]; o.sort == mapping {
			for n, e := range o.more.entries {
				o.more.entries[n] = numbers[e]
			}
		}
	}
	for i := range h.sorted {
		h.sorted[i].object = numbers[h.sorted[i].object]
	}
	for at, i := range h.maps {
		h.maps[at] = numbers[i]
	}
	for at, i := range h.boxes {
		h.boxes[at] = numbers[i]
	}
	h.objects = rest
}

// find returns the object that an address lies in, and how far behind its base; −1 if there is
// none.
func (h *heap) find(at unsafe.Pointer) (object int, offset uintptr) {
	if at == nil {
		return -1, 0
	}
	i, found := slices.BinarySearchFunc(h.sorted, uintptr(at), func(e extent, at uintptr) int {
		return cmp.Compare(e.low, at)
	})
	if !found {
		i--
	}
	if i < 0 || uintptr(at) >= h.sorted[i].high {
		return -1, 0
	}
	return h.sorted[i].object, uintptr(at) - h.sorted[i].low
}
