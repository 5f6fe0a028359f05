package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// ErrOther says that an image is none of this program's, or of other values.
var ErrOther = errors.New("it was made by another program, or with other data")

// Unmarshal brings what roots, which are pointers, lead to into the state of an image of what roots
// of the same types led to. After an error they are not to be used. The image is trusted as the
// program is: it becomes memory.
func (g *Given) Unmarshal(image []byte, roots ...any) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", ErrOther, reason)
		}
	}()
	own, err := explore(g.layouts, g.heap, roots...)
	if err != nil {
		return err
	}
	r := &reader{given: g, own: own, in: image, taken: make([]bool, len(own.objects))}
	bodies := r.bytes(8)
	bodies, r.in = image[8:binary.LittleEndian.Uint64(bodies)], image[binary.LittleEndian.Uint64(bodies):]
	if r.heads(); r.failure != nil {
		return r.failure
	}
	if len(r.in) > 0 {
		panic("it is too long")
	}
	r.in = bodies
	r.scan()
	r.match(len(roots))
	r.allocate()
	r.doing = fill
	for i := range r.objects {
		r.in = r.bodies[i]
		r.content(&r.objects[i])
	}
	if r.failure == nil {
		r.close()
	}
	return r.failure
}

// reader reads an image.
type reader struct {
	given   *Given
	own     *heap // what is read into
	in      []byte
	types   []*layout // by number
	objects []object
	bodies  [][]byte // by object: what is in it
	bound   []int    // by object: the one of own that is written over; −1 if it is made
	taken   []bool   // by object of own
	doing   task
	queue   []int // objects that were bound and not looked into
	boxes   []opened
	failure error
}

// task is why contents are read.
type task uint8

const (
	scan  task = iota // to know where they end
	match             // to find the objects of own that are in the same places
	fill
)

// opened is an interface that will hold the value of a box.
type opened struct {
	slot reflect.Value
	box  int
}

func (r *reader) fail(format string, arguments ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("%w: "+format, append([]any{ErrOther}, arguments...)...)
	}
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		panic("it ends too early")
	}
	r.in = r.in[size:]
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	b := r.in[:n]
	r.in = r.in[n:]
	return b
}

func (r *reader) fixed() uint64 { return binary.LittleEndian.Uint64(r.bytes(8)) }
func (r *reader) text() string  { return string(r.bytes(r.number())) }

// heads reads types and objects.
func (r *reader) heads() {
	if r.fixed() != r.given.hash {
		r.failure = ErrOther
		return
	}
	for range r.number() {
		r.types = append(r.types, r.given.layouts.of(typeAt(r.fixed())))
	}
	for range r.number() {
		o := object{sort: sort(r.bytes(1)[0])}
		o.layout, o.count = r.types[r.number()], r.number()
		if o.sort == keyOf || o.sort == valueOf {
			o.more = &more{key: []byte(r.text())}
		}
		if o.sort == mapping {
			o.more = &more{}
			for range r.number() {
				o.more.entries = append(o.more.entries, r.number())
			}
		}
		r.objects, r.bound = append(r.objects, o), append(r.bound, -1)
	}
}

// allocate makes the objects that own does not have, and empties its maps.
func (r *reader) allocate() {
	for i := range r.objects {
		o := &r.objects[i]
		switch {
		case o.sort == mapping && r.bound[i] >= 0:
			o.more.variable.Clear()
		case o.sort == mapping:
			o.more.variable = reflect.MakeMapWithSize(o.layout.of, len(o.more.entries))
		case r.bound[i] < 0 && o.count == 1:
			o.base = reflect.New(o.layout.of).UnsafePointer()
		case r.bound[i] < 0:
			o.base = reflect.MakeSlice(reflect.SliceOf(o.layout.of), o.count, o.count).UnsafePointer()
		}
	}
}

func (r *reader) content(o *object) {
	if o.sort == mapping {
		return
	}
	for n := range o.count {
		at := o.base
		if r.doing != scan {
			at = unsafe.Add(at, uintptr(n)*o.layout.size)
		}
		if len(o.layout.slots) == 0 {
			r.raw(at, span{0, uintptr(o.count) * o.layout.size})
			return
		}
		for _, s := range o.layout.raw {
			r.raw(at, s)
		}
		for i := range o.layout.slots {
			s := &o.layout.slots[i]
			if r.doing == scan {
				r.slot(o.layout, s, nil)
			} else {
				r.slot(o.layout, s, unsafe.Add(at, s.offset))
			}
		}
	}
}

// raw reads bytes of a value that are written as they are.
func (r *reader) raw(at unsafe.Pointer, s span) {
	b := r.bytes(int(s.high - s.low))
	if r.doing == fill {
		copy(unsafe.Slice((*byte)(unsafe.Add(at, s.low)), s.high-s.low), b)
	}
}

// slot reads what is in a slot.
func (r *reader) slot(l *layout, s *slot, at unsafe.Pointer) {
	switch s.kind {
	case pointer:
		to := r.target()
		switch r.doing {
		case match:
			r.tie(s, to, *(*unsafe.Pointer)(at))
		case fill:
			*(*unsafe.Pointer)(at) = r.address(to, s.of.Elem(), 1)
		}
	case list:
		r.list(s, at)
	case text:
		if t := r.text(); r.doing == fill {
			*(*string)(at) = t
		}
	case dynamic:
		r.dynamic(l, s, at)
	case table:
		r.mapping(s, at)
	case kept:
		if was := r.bytes(1)[0] != 0; was && r.doing == fill && *(*unsafe.Pointer)(at) == nil {
			r.lacks(l, s)
		}
	case cleared, closed:
		if r.doing == fill {
			reflect.NewAt(s.of, at).Elem().SetZero()
		}
	}
}

func (r *reader) lacks(l *layout, s *slot) {
	r.fail("%s.%s is kept, and there is none", l.name, s.name)
}

// target is where a pointer, a slice or a map leads.
type target struct{ what, object, offset int }

func (r *reader) target() target {
	t := target{what: r.number()}
	if t.what == toGiven || t.what == toObject {
		t.object, t.offset = r.number(), r.number()
	}
	return t
}

// address is where a pointer to values in a row leads.
func (r *reader) address(t target, of reflect.Type, count int) unsafe.Pointer {
	switch t.what {
	case toNothing:
		return nil
	case toNone:
		return reflect.New(of).UnsafePointer()
	}
	in := r.objects
	if t.what == toGiven {
		in = r.given.heap.objects
	}
	o := &in[t.object]
	end := uintptr(o.count) * o.layout.size
	if uintptr(t.offset) > end || uintptr(count) > (end-uintptr(t.offset))/of.Size() {
		panic("it leads out of an object")
	}
	return unsafe.Add(o.base, t.offset)
}

func (r *reader) list(s *slot, at unsafe.Pointer) {
	h := header{length: r.number(), bound: r.number()}
	if h.length < 0 || h.length > h.bound {
		panic("a slice is longer than its memory")
	}
	if h.bound == 0 {
		if there := r.bytes(1)[0] != 0; there && r.doing == fill {
			h.data = reflect.MakeSlice(s.of, 0, 0).UnsafePointer()
		}
		if r.doing == fill {
			*(*header)(at) = h
		}
		return
	}
	to := r.target()
	switch r.doing {
	case match:
		r.tie(s, to, (*header)(at).data)
	case fill:
		h.data = r.address(to, s.of.Elem(), h.bound)
		*(*header)(at) = h
	}
}

func (r *reader) mapping(s *slot, at unsafe.Pointer) {
	to := r.target()
	if r.doing == scan {
		return
	}
	v := reflect.NewAt(s.of, at).Elem()
	switch {
	case r.doing == match:
		if i, known := r.own.maps[v.UnsafePointer()]; known && to.what == toObject && !s.loose {
			r.bind(to.object, i)
		}
	case to.what == toNothing:
		v.SetZero()
	case to.what == toGiven:
		v.Set(r.given.heap.objects[to.object].more.variable)
	default:
		v.Set(r.objects[to.object].more.variable)
	}
}

func (r *reader) dynamic(l *layout, s *slot, at unsafe.Pointer) {
	what := r.number()
	var t reflect.Type
	var to target
	switch what {
	case holdsPointer:
		t, to = r.types[r.number()].of, r.target()
	case holdsValue:
		to = target{what: toObject, object: r.number()}
	}
	if r.doing == scan {
		return
	}
	v := reflect.NewAt(s.of, at).Elem()
	switch {
	case r.doing == match && what == holdsValue:
		if i, known := r.own.boxes[at]; known && !s.loose {
			r.bind(to.object, i)
		}
	case r.doing == match && what == holdsPointer:
		if !v.IsNil() && v.Elem().Type() == reflect.PointerTo(t) {
			r.tie(s, to, v.Elem().UnsafePointer())
		}
	case r.doing == match:
	case what == holdsNothing:
		v.SetZero()
	case what == holdsForeign:
		if v.IsNil() {
			r.lacks(l, s)
		}
	case what == holdsPointer:
		v.Set(reflect.NewAt(t, r.address(to, t, 1)))
	case what == holdsValue:
		r.boxes = append(r.boxes, opened{v, to.object})
	}
}

// scan finds what is in each object.
func (r *reader) scan() {
	for i := range r.objects {
		before := r.in
		r.content(&r.objects[i])
		r.bodies = append(r.bodies, before[:len(before)-len(r.in)])
	}
	if len(r.in) > 0 {
		panic("it is too long")
	}
}

// match binds the objects that own has in the same places: behind the same fields, and in maps
// under the same keys.
func (r *reader) match(roots int) {
	r.doing = match
	for i := range roots {
		if r.bind(i, i); r.bound[i] != i {
			panic("a root is of another type")
		}
	}
	for len(r.queue) > 0 {
		i := r.queue[0]
		r.queue = r.queue[1:]
		if o := &r.objects[i]; o.sort != mapping {
			r.in = r.bodies[i]
			r.content(o)
		} else {
			r.entries(o, &r.own.objects[r.bound[i]])
		}
	}
}

// tie binds the object that a slot of the image leads to, if the same slot of own leads to the same
// place in one.
func (r *reader) tie(s *slot, to target, own unsafe.Pointer) {
	if s.loose || to.what != toObject {
		return
	}
	if i, offset := r.own.find(own); i >= 0 && int(offset) == to.offset {
		r.bind(to.object, i)
	}
}

// bind has an object of own become one of the image.
func (r *reader) bind(object, own int) {
	o, with := &r.objects[object], &r.own.objects[own]
	if r.bound[object] >= 0 || r.taken[own] || with.sort != o.sort || with.layout != o.layout || with.count != o.count {
		return
	}
	r.bound[object], r.taken[own] = own, true
	if o.base = with.base; o.sort == mapping {
		o.more.variable = with.more.variable
	}
	r.queue = append(r.queue, object)
}

// entries binds keys and values of a map.
func (r *reader) entries(o, own *object) {
	known := map[string]int{}
	for _, e := range own.more.entries {
		if key := r.own.objects[e].more.key; key != nil {
			known[string(key)] = e
		}
	}
	for _, e := range o.more.entries {
		if with, there := known[string(r.objects[e].more.key)]; there {
			r.bind(e, with)
			r.bind(e+1, with+1)
		}
	}
}

// close puts values into the interfaces and maps that hold them. A box that lies in another one was
// found later.
func (r *reader) close() {
	slots := make(map[int][]reflect.Value, len(r.boxes))
	for _, b := range r.boxes {
		slots[b.box] = append(slots[b.box], b.slot)
	}
	for i := len(r.objects) - 1; i >= 0; i-- {
		o := &r.objects[i]
		for _, slot := range slots[i] {
			slot.Set(reflect.NewAt(o.layout.of, o.base).Elem())
		}
	}
	for i := range r.objects {
		o := &r.objects[i]
		if o.sort != mapping {
			continue
		}
		for _, e := range o.more.entries {
			key, value := &r.objects[e], &r.objects[e+1]
			o.more.variable.SetMapIndex(reflect.NewAt(key.layout.of, key.base).Elem(),
				reflect.NewAt(value.layout.of, value.base).Elem())
		}
	}
}
