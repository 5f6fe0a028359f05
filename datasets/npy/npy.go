// Package npy reads arrays in NumPy's formats NPY (Kern, "A Simple File Format for NumPy
// Arrays", NEP 1, 2007) and NPZ, a ZIP archive of NPY files. It needs no NumPy and never
// executes anything that a file contains. It treats files as hostile: it checks every length
// before it allocates.
//
// It accepts little-endian float32, float64, int32 and int64, and bytes, in C order. An NPY
// file may be compressed with gzip.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxDims is the largest number of dimensions that is accepted.
	MaxDims = 8
	// MaxElements bounds the elements of an array: 2^30.
	MaxElements = input.MaxBytes
	// MaxHeader bounds the text of a header in bytes, as NumPy's own reader does.
	MaxHeader = 10_000
)

// Array is an array of numbers.
type Array struct {
	// Dims are the sizes of the dimensions, the slowest first; none for a single number.
	Dims []int
	// Values are the elements, the last dimension running fastest.
	Values []float32
}

// types are the accepted element types, by their names in a header.
var types = map[string]struct {
	size int
	read func(b []byte) float64
}{
	"<f4": {4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	"<f8": {8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
	"<i4": {4, func(b []byte) float64 { return float64(int32(binary.LittleEndian.Uint32(b))) }},
	"<i8": {8, func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
	"|u1": {1, func(b []byte) float64 { return float64(b[0]) }},
}

const accepted = "accepted are little-endian f4, f8, i4 and i8 (written <f4, <f8, <i4, <i8) and u1 (|u1)"

// Read reads one array and requires r to end there. Errors begin with name and tell the offset, in
// the uncompressed bytes, at which the content stops making sense: another format or version, a
// header that is not as NumPy writes it, another element type, Fortran order, more than MaxDims
// dimensions or MaxElements elements, an early end, trailing bytes, a number that is not finite as
// a float32. An array of more than 8 MiB can be read only from an io.ReadSeeker.
func Read(r io.Reader, name string) (*Array, error) { return read(r, name, nil) }

func read(r io.Reader, name string, rewind func() (io.Reader, error)) (*Array, error) {
	plain, err := input.New(r, name, rewind)
	if err != nil {
		return nil, err
	}
	a, err := readArray(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func readArray(r *input.Reader) (*Array, error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	start := r.Offset()
	h, at, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("offset %d: header: %w", start-int64(len(text)-at), err)
	}
	size, err := h.elements()
	if err != nil {
		return nil, fmt.Errorf("offset %d: header: %w", start-int64(len(text)), err)
	}
	element := types[h.descr]
	if err := r.Holds(int64(size) * int64(element.size)); err != nil {
		return nil, fmt.Errorf("offset %d: elements of shape %v: %w", start, h.shape, err)
	}
	a := &Array{Dims: h.dims(), Values: make([]float32, size)}
	const most = 1 << 13 // elements at a time
	buffer := make([]byte, min(size, most)*element.size)
	for i := 0; i < size; {
		part := buffer[:min(size-i, most)*element.size]
		at := r.Offset()
		if n, err := io.ReadFull(r, part); err != nil {
			return nil, fmt.Errorf("offset %d: after %d of %d elements (shape %v): %w", at+int64(n), i+n/element.size,
				size, h.shape, input.Ends(err))
		}
		for k := 0; k < len(part); k, i = k+element.size, i+1 {
			v := element.read(part[k : k+element.size])
			if !(math.Abs(v) <= math.MaxFloat32) {
				return nil, fmt.Errorf("offset %d: element %d is %v; accepted are numbers from %v to %v", at+int64(k),
					i, v, -math.MaxFloat32, math.MaxFloat32)
			}
			a.Values[i] = float32(v)
		}
	}
	switch _, err := r.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("offset %d: trailing bytes after the %d elements of shape %v", r.Offset()-1, size,
			h.shape)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("offset %d: after the last element: %w", r.Offset(), err)
	}
	return a, nil
}

// readHeader returns the text of the header.
func readHeader(r *input.Reader) (string, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return "", fmt.Errorf("offset 0: magic string: %w", input.Ends(err))
	}
	if magic := string(start[:6]); magic != "\x93NUMPY" {
		return "", fmt.Errorf("offset 0: magic string %q is not an NPY file's; %q is expected", magic,
			"\x93NUMPY")
	}
	var length int64
	var word [4]byte
	switch major, minor := start[6], start[7]; {
	case major == 1 && minor == 0:
		_, err := io.ReadFull(r, word[:2])
		if err != nil {
			return "", fmt.Errorf("offset 8: length of the header: %w", input.Ends(err))
		}
		length = int64(binary.LittleEndian.Uint16(word[:2]))
	case (major == 2 || major == 3) && minor == 0:
		if _, err := io.ReadFull(r, word[:]); err != nil {
			return "", fmt.Errorf("offset 8: length of the header: %w", input.Ends(err))
		}
		length = int64(binary.LittleEndian.Uint32(word[:]))
	default:
		return "", fmt.Errorf("offset 6: version %d.%d; accepted are 1.0, 2.0 and 3.0", major, minor)
	}
	if length > MaxHeader {
		return "", fmt.Errorf("offset 8: a header of %d bytes; at most %d are accepted", length, MaxHeader)
	}
	text := make([]byte, length)
	at := r.Offset()
	if n, err := io.ReadFull(r, text); err != nil {
		return "", fmt.Errorf("offset %d: after %d of %d bytes of the header: %w", at+int64(n), n, length,
			input.Ends(err))
	}
	return string(text), nil
}

// header is what a header says.
type header struct {
	descr   string
	fortran bool
	shape   []int64
}

// elements checks the header and returns the number of elements.
func (h *header) elements() (int, error) {
	if _, ok := types[h.descr]; !ok {
		return 0, fmt.Errorf("element type %s%s; %s", strconv.Quote(h.descr), called(h.descr), accepted)
	}
	if h.fortran {
		return 0, errors.New("the array is in Fortran order; accepted is C order, as numpy.ascontiguousarray makes it")
	}
	size := int64(1)
	for i, n := range h.shape {
		if n == 0 || n > MaxElements/size {
			return 0, fmt.Errorf("dimension %d of size %d after %v; sizes from 1 and together at most %d elements "+
				"are accepted", i+1, n, h.shape[:i], MaxElements)
		}
		size *= n
	}
	return int(size), nil
}

// dims is the shape of a header whose elements are checked.
func (h *header) dims() []int {
	var dims []int
	for _, n := range h.shape {
		dims = append(dims, int(n))
	}
	return dims
}

// called says in words what an element type is that is not accepted.
func called(descr string) string {
	if len(descr) < 2 {
		return ""
	}
	words := map[byte]string{
		'f': "floating-point numbers", 'i': "integers", 'u': "unsigned integers", 'b': "booleans",
		'c': "complex numbers",
		'O': "pickled objects, which would have to be run", 'S': "byte strings", 'U': "strings", 'V': "records",
		'M': "dates", 'm': "durations",
	}[descr[1]]
	if words == "" {
		return ""
	}
	if descr[0] == '>' {
		words = "big-endian " + words
	}
	return ", " + words
}
