//go:build !race

package image

import "unsafe"

// raw writes bytes as they are.
func (w *writer) raw(at unsafe.Pointer, size uintptr) {
	w.out = append(w.out, unsafe.Slice((*byte)(at), size)...)
}
