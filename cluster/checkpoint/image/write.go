package image

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// Marshal returns the image of what roots, which are pointers, lead to. Nobody may change it
// meanwhile. It returns an error that names the field if something cannot be in an image.
func (g *Given) Marshal(roots ...any) ([]byte, error) {
	h, err := explore(g.layouts, g.heap, roots...)
	if err != nil {
		return nil, err
	}
	w := writer{heap: h, types: map[*layout]int{}}
	const spare = 1 << 10
	w.out = make([]byte, 8, w.size()+spare)
	for i := range h.objects {
		w.content(&h.objects[i])
	}
	if w.failure != nil {
		return nil, w.failure
	}
	binary.LittleEndian.PutUint64(w.out, uint64(len(w.out)))
	w.out = binary.LittleEndian.AppendUint64(w.out, g.hash)
	for i := range h.objects {
		w.typeOf(h.objects[i].layout)
	}
	w.table()
	for i := range h.objects {
		w.head(&h.objects[i])
	}
	return w.out, nil
}

// writer writes an image: where its second part begins, what is in all objects, and as the second
// part which these are, with their types.
type writer struct {
	heap    *heap
	out     []byte
	types   map[*layout]int
	list    []*layout // by number
	failure error
}

// size is about how many bytes the contents take.
func (w *writer) size() (bytes int) {
	for i := range w.heap.objects {
		o := &w.heap.objects[i]
		bytes += o.count*(o.layout.bytes+4*len(o.layout.slots)) + 8
	}
	return bytes
}

// typeOf is the number of a type.
func (w *writer) typeOf(l *layout) int {
	n, known := w.types[l]
	if !known {
		n = len(w.types)
		w.types[l] = n
		w.list = append(w.list, l)
	}
	return n
}

func (w *writer) table() {
	w.number(len(w.list))
	for _, l := range w.list {
		w.out = binary.LittleEndian.AppendUint64(w.out, wayTo(l.of))
	}
	w.number(len(w.heap.objects))
}

func (w *writer) number(n int) { w.out = number(w.out, uint64(n)) }

func (w *writer) text(s string) {
	w.number(len(s))
	w.out = append(w.out, s...)
}

// head writes what must be known of an object before what is in it.
func (w *writer) head(o *object) {
	w.out = append(w.out, byte(o.sort))
	w.number(w.typeOf(o.layout))
	w.number(o.count)
	if o.sort == keyOf || o.sort == valueOf {
		w.text(string(o.more.key))
	}
	if o.sort == mapping {
		w.number(len(o.more.entries))
		for _, e := range o.more.entries {
			w.number(e)
		}
	}
}

func (w *writer) content(o *object) {
	if o.sort == mapping {
		return
	}
	if len(o.layout.slots) == 0 {
		w.raw(o.base, uintptr(o.count)*o.layout.size)
		return
	}
	for n := range o.count {
		w.value(o.layout, unsafe.Add(o.base, uintptr(n)*o.layout.size))
	}
}

func (w *writer) value(l *layout, at unsafe.Pointer) {
	for _, r := range l.raw {
		w.raw(unsafe.Add(at, r.low), r.high-r.low)
	}
	for i := range l.slots {
		w.slot(l, &l.slots[i], unsafe.Add(at, l.slots[i].offset))
	}
}

func (w *writer) slot(l *layout, s *slot, at unsafe.Pointer) {
	switch s.kind {
	case pointer:
		w.reference(*(*unsafe.Pointer)(at), s.of.Elem().Size())
	case list:
		h := (*header)(at)
		w.number(h.length)
		w.number(h.bound)
		if h.bound == 0 {
			w.flag(h.data != nil)
		} else {
			w.reference(h.data, s.of.Elem().Size())
		}
	case text:
		w.text(*(*string)(at))
	case dynamic:
		w.dynamic(s, at)
	case table:
		w.mapping(reflect.NewAt(s.of, at).Elem())
	case kept:
		w.flag(*(*unsafe.Pointer)(at) != nil)
	case closed:
		if *(*unsafe.Pointer)(at) != nil && w.failure == nil {
			w.failure = fmt.Errorf("%s is a %s, which no image can hold",
				strings.TrimSuffix(l.name+"."+s.name, "."), s.of.Kind())
		}
	}
}

func (w *writer) flag(is bool) {
	if is {
		w.out = append(w.out, 1)
	} else {
		w.out = append(w.out, 0)
	}
}

// What a reference is.
const (
	toNothing = iota
	toNone    // a value without size
	toGiven
	toObject
)

// reference writes where a pointer to a value of some size leads.
func (w *writer) reference(to unsafe.Pointer, size uintptr) {
	switch {
	case to == nil:
		w.number(toNothing)
		return
	case size == 0:
		w.number(toNone)
		return
	}
	what := toObject
	i, offset := w.heap.find(to)
	if i < 0 && w.heap.given != nil {
		what = toGiven
		i, offset = w.heap.given.find(to)
	}
	w.number(what)
	w.number(i)
	w.number(int(offset))
}

// What an interface holds.
const (
	holdsNothing = iota
	holdsForeign
	holdsPointer
	holdsValue
)

func (w *writer) dynamic(s *slot, at unsafe.Pointer) {
	v := reflect.NewAt(s.of, at).Elem()
	if v.IsNil() {
		w.number(holdsNothing)
		return
	}
	v = v.Elem()
	switch t := v.Type(); {
	case foreign(t):
		w.number(holdsForeign)
	case t.Kind() == reflect.Pointer:
		w.number(holdsPointer)
		w.number(w.typeOf(w.heap.layouts.of(t.Elem())))
		w.reference(v.UnsafePointer(), t.Elem().Size())
	default:
		w.number(holdsValue)
		w.number(w.heap.boxes[at])
	}
}

func (w *writer) mapping(v reflect.Value) {
	if v.IsNil() {
		w.number(toNothing)
		return
	}
	at := v.UnsafePointer()
	if w.heap.given != nil {
		if i, known := w.heap.given.maps[at]; known {
			w.number(toGiven)
			w.number(i)
			w.number(0)
			return
		}
	}
	w.number(toObject)
	w.number(w.heap.maps[at])
	w.number(0)
}
