package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets"
)

// element says how an element of an array is written.
type element struct {
	size int  // in bytes
	big  bool // the most significant byte comes first
	wide bool // not every value is a float32
	read func(b []byte) (number, error)
}

// number is what is written: high + low, where low is 0 unless an integer has more digits than a
// float64.
type number struct{ high, low float64 }

// float32 rounds the number once.
func (n number) float32() float32 {
	v := float32(n.high)
	if n.low == 0 {
		return v
	}
	exact := func(f float32) float64 { return math.Abs(n.high - float64(f) + n.low) }
	toward := math.Nextafter32(v, float32(math.Inf(1)))
	if n.low < 0 {
		toward = math.Nextafter32(v, float32(math.Inf(-1)))
	}
	if exact(toward) < exact(v) {
		return toward
	}
	return v
}

func whole(v int64) (n number, err error) {
	n.high, n.low = datasets.Split(v)
	return n, nil
}

// types are the accepted element types, by their names in a header without the byte order.
var types = map[string]element{
	"b1": {size: 1, read: boolean},
	"i1": {size: 1, read: func(b []byte) (number, error) { return whole(int64(int8(b[0]))) }},
	"i2": {size: 2, read: func(b []byte) (number, error) {
		return whole(int64(int16(binary.LittleEndian.Uint16(b))))
	}},
	"i4": {size: 4, wide: true, read: func(b []byte) (number, error) {
		return whole(int64(int32(binary.LittleEndian.Uint32(b))))
	}},
	"i8": {size: 8, wide: true, read: func(b []byte) (number, error) {
		return whole(int64(binary.LittleEndian.Uint64(b)))
	}},
	"u1": {size: 1, read: func(b []byte) (number, error) { return whole(int64(b[0])) }},
	"u2": {size: 2, read: func(b []byte) (number, error) { return whole(int64(binary.LittleEndian.Uint16(b))) }},
	"u4": {size: 4, wide: true, read: func(b []byte) (number, error) {
		return whole(int64(binary.LittleEndian.Uint32(b)))
	}},
	"u8": {size: 8, wide: true, read: func(b []byte) (n number, err error) {
		n.high, n.low = datasets.SplitUnsigned(binary.LittleEndian.Uint64(b))
		return n, nil
	}},
	"f2": {size: 2, read: func(b []byte) (number, error) { return finite(half(binary.LittleEndian.Uint16(b))) }},
	"f4": {size: 4, read: func(b []byte) (number, error) {
		return finite(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}},
	"f8": {size: 8, wide: true, read: func(b []byte) (number, error) {
		return finite(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}},
}

const accepted = "accepted are booleans (b1), integers (i1, i2, i4, i8, u1, u2, u4, u8) and floating-point numbers " +
	"(f2, f4, f8), each after <, > or |"

// elementOf finds an element type by its name in a header, which begins with the byte order: < for
// little-endian, > for big-endian, | where there is none.
func elementOf(descr string) (element, bool) {
	if descr == "" || strings.IndexByte("<>|", descr[0]) < 0 {
		return element{}, false
	}
	e, ok := types[descr[1:]]
	e.big = descr[0] == '>'
	return e, ok && (descr[0] != '|' || e.size == 1)
}

// value reads an element. It may change b.
func (e element) value(b []byte) (number, error) {
	if e.big {
		slices.Reverse(b)
	}
	return e.read(b)
}

func boolean(b []byte) (number, error) {
	if b[0] > 1 {
		return number{}, fmt.Errorf("%d; accepted of booleans are 0 and 1", b[0])
	}
	return whole(int64(b[0]))
}

func finite(v float64) (number, error) {
	if !(math.Abs(v) <= math.MaxFloat32) {
		return number{}, fmt.Errorf("%v; accepted are numbers from %v to %v", v, -math.MaxFloat32, math.MaxFloat32)
	}
	return number{high: v}, nil
}

// half is the value of a binary16 of IEEE 754-2008.
func half(bits uint16) float64 {
	const fraction, exponents = 1<<10 - 1, 1<<5 - 1
	exponent := int(bits >> 10 & exponents)
	v := float64(bits & fraction)
	switch {
	case exponent == exponents && v == 0:
		v = math.Inf(1)
	case exponent == exponents:
		v = math.NaN()
	case exponent == 0: // subnormal
		v = math.Ldexp(v, -24)
	default:
		v = math.Ldexp(v+fraction+1, exponent-25)
	}
	return math.Copysign(v, 1-float64(bits>>15)*2)
}

// places counts through an array whose first dimension runs fastest, as Fortran keeps them.
type places struct {
	dims, strides, index []int
	at                   int
}

func newPlaces(dims []int) *places {
	p := &places{dims: dims, strides: make([]int, len(dims)), index: make([]int, len(dims))}
	stride := 1
	for i, n := range slices.Backward(dims) {
		p.strides[i] = stride
		stride *= n
	}
	return p
}

// next returns where the next element belongs if the last dimension is to run fastest.
func (p *places) next() int {
	at := p.at
	for i := range p.index {
		p.index[i]++
		p.at += p.strides[i]
		if p.index[i] < p.dims[i] {
			break
		}
		p.at -= p.dims[i] * p.strides[i]
		p.index[i] = 0
	}
	return at
}

// called says in words what an element type is that is not accepted.
func called(descr string) string {
	if len(descr) < 2 {
		return ""
	}
	if _, ok := types[descr[1:]]; ok {
		return ", without its byte order"
	}
	words := map[byte]string{
		'f': "floating-point numbers of another size", 'i': "integers of another size",
		'u': "unsigned integers of another size", 'b': "booleans of another size", 'c': "complex numbers",
		'O': "pickled objects, which would have to be run", 'S': "byte strings", 'U': "strings", 'V': "records",
		'M': "dates", 'm': "durations",
	}[descr[1]]
	if words == "" {
		return ""
	}
	return ", " + words
}
