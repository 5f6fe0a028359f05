//go:build race

package image

import (
	"slices"
	"unsafe"
)

// raw writes bytes as they are. Of what actors share, references to tensors are counted meanwhile,
// and values arrive in memory that was put up for them: either may be found as before or after, and
// the race detector need not know.
//
//go:norace
func (w *writer) raw(at unsafe.Pointer, size uintptr) {
	const word = 8
	first := len(w.out)
	w.out = slices.Grow(w.out, int(size))[:first+int(size)]
	to, done := unsafe.Pointer(unsafe.SliceData(w.out[first:])), uintptr(0)
	for ; done+word <= size; done += word {
		*(*uint64)(unsafe.Add(to, done)) = *(*uint64)(unsafe.Add(at, done))
	}
	for ; done < size; done++ {
		*(*byte)(unsafe.Add(to, done)) = *(*byte)(unsafe.Add(at, done))
	}
}
