package image

import (
	"io"
	"os"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// Program is a hash of the file of this program, which tells builds apart; 0 if it cannot be read.
func Program() uint64 {
	hash, err := program()
	if err != nil {
		return 0
	}
	return hash
}

// program is a hash of the file of this program.
var program = sync.OnceValues(func() (uint64, error) {
	path, err := os.Executable()
	if runtime.GOOS == "linux" {
		path = "/proc/self/exe" // also if another file has its name by now
	}
	if err != nil {
		return 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	h := xxhash.New()
	if _, err = io.Copy(h, file); err == nil {
		err = file.Close()
	}
	return h.Sum64(), err
})

// anchor is a type by whose description others are found: in each process of a program the same way
// from it. Values in interfaces can be of types that nothing else leads to, and reflect finds no
// type by its name.
var anchor = describe(reflect.TypeFor[Given]())

// describe is where the description of a type is in memory.
func describe(t reflect.Type) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1]
}

// wayTo is how far behind the anchor the description of a type is.
func wayTo(t reflect.Type) uint64 { return uint64(uintptr(describe(t)) - uintptr(anchor)) }

// typeAt returns the type that is that way from the anchor in this program.
func typeAt(way uint64) reflect.Type {
	var v any
	(*[2]unsafe.Pointer)(unsafe.Pointer(&v))[0] = unsafe.Add(anchor, int(way))
	return reflect.TypeOf(v)
}
