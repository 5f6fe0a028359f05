// Package image makes bytes of all that some values lead to, and brings values that were made in
// the same way into the same state again.
//
// An image is of objects as they lie in memory: structs, arrays and maps, with every field,
// exported or not, and with every pointer between them, so that what was shared is shared again. It
// is read into values that a program has made as it made those that the image is of. An object that
// these have in the same place, behind the same fields and under the same keys, is written over;
// any other is made. What the values of both have in common and nobody changes, such as samples, is
// given, and not part of an image.
//
// An image holds no functions and no channels: a field that leads to one ends Marshal with an
// error, unless its tag says what becomes of it:
//
//	image:"kept"   the object that is read into has it, as it was made with it; to be without it
//	               is an error
//	image:"-"      it holds nothing that matters, such as memory to be used again; as the tag of a
//	               blank first field, it leaves out the struct, and pointers to it
//	image:"loose"  what it leads to is no place by which objects are told: a queue's items
//
// What belongs to protoactor, a lock or a file is kept without a tag. An image is for the program
// file that made it, and Unmarshal refuses any other.
package image

import (
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Given is what the values of all images have in common and nobody changes.
type Given struct {
	layouts layouts
	heap    *heap
	hash    uint64 // of it, and of the program
}

// NewGiven explores what some pointers lead to. Whoever reads an image gives what is equal to it.
func NewGiven(roots ...any) (*Given, error) {
	own, err := program()
	if err != nil {
		return nil, err
	}
	g := &Given{layouts: layouts{}}
	if g.heap, err = explore(g.layouts, nil, roots...); err != nil {
		return nil, err
	}
	h := xxhash.New()
	_, _ = h.Write(number(nil, own))
	for i := range g.heap.objects {
		o := &g.heap.objects[i]
		_, _ = h.Write(number(number(nil, o.layout.hash), uint64(o.count)))
		o.digest(h)
	}
	g.hash = h.Sum64()
	return g, nil
}

// digest takes in what is in an object, but for where it leads.
func (o *object) digest(h *xxhash.Digest) {
	if o.sort == mapping {
		return
	}
	size := o.layout.size
	if raw := o.layout.raw; len(raw) == 1 && raw[0] == (span{0, size}) {
		_, _ = h.Write(unsafe.Slice((*byte)(o.base), uintptr(o.count)*size))
		return
	}
	for n := range o.count {
		at := unsafe.Add(o.base, uintptr(n)*size)
		for _, r := range o.layout.raw {
			_, _ = h.Write(unsafe.Slice((*byte)(unsafe.Add(at, r.low)), r.high-r.low))
		}
		for i := range o.layout.slots {
			if s := &o.layout.slots[i]; s.kind == text {
				_, _ = h.WriteString(*(*string)(unsafe.Add(at, s.offset)))
			}
		}
	}
}
