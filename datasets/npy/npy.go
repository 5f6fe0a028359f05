// Package npy reads arrays in NumPy's formats NPY (Kern, "A Simple File Format for NumPy
// Arrays", NEP 1, 2007) and NPZ, a ZIP archive of NPY files. It needs no NumPy and never
// executes anything that a file contains. It treats files as hostile: it checks every length
// before it allocates.
//
// It accepts booleans, integers of 8 to 64 bits and floating-point numbers of 16 to 64 bits, of
// either byte order, in C and in Fortran order. An NPY file may be compressed with gzip.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxDims is the largest number of dimensions that is accepted.
	MaxDims = 8
	// MaxElements bounds the elements of an array: 2^30.
	MaxElements = input.MaxBytes
	// MaxHeader bounds the text of a header in bytes, as NumPy's own reader does.
	MaxHeader = 10_000

	magic = "\x93NUMPY"
)

// Array is an array of numbers.
type Array struct {
	// Dims are the sizes of the dimensions, the slowest first; none for a single number.
	Dims []int
	// Values are the elements, the last dimension running fastest.
	Values []float32

	fraction   float64 // the first element that is no whole number, as it is in the file; 0 for none
	fractionAt int     // its place

	origin    []float64            // by input, what the values are differences from; nil for none
	precision []datasets.Precision // of each input; nil where that is not asked, or no value loses anything
}

// Read reads one array and requires r to end there. Errors begin with name and tell the offset, in
// the uncompressed bytes, at which the content stops making sense: another format or version, a
// header that is not as NumPy writes it, another element type, more than MaxDims dimensions or
// MaxElements elements, an early end, trailing bytes, a number that is not finite as a float32, a
// boolean other than 0 and 1. An array of more than 8 MiB can be read only from an io.ReadSeeker.
func Read(r io.Reader, name string) (*Array, error) { return read(r, name, nil, nil) }

// read reads an array whose values are differences from origins, unless these are nil.
func read(r io.Reader, name string, rewind func() (io.Reader, error), origin []float64) (*Array, error) {
	plain, err := input.New(r, name, rewind)
	if err != nil {
		return nil, err
	}
	a, err := readArray(plain, origin)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return a, nil
}

func readArray(r *input.Reader, origin []float64) (*Array, error) {
	if err := r.Foreign(magic, "an array in NumPy's format NPY"); err != nil {
		return nil, err
	}
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
	element, _ := elementOf(h.descr) // it has been checked
	if err := r.Holds(int64(size) * int64(element.size)); err != nil {
		return nil, fmt.Errorf("offset %d: elements of shape %v: %w", start, h.shape, err)
	}
	a := &Array{Dims: h.dims(), Values: make([]float32, size)}
	if inputs := a.inputs(); len(origin) == inputs && inputs > 0 {
		a.origin = origin
	} else if element.wide && inputs > 0 && inputs <= MaxInputs {
		a.precision = make([]datasets.Precision, inputs)
	}
	if err := a.fill(r, element, h.fortran); err != nil {
		return nil, err
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

// fill reads the elements.
func (a *Array) fill(r *input.Reader, e element, fortran bool) error {
	const most = 1 << 13 // elements at a time
	size := len(a.Values)
	buffer := make([]byte, min(size, most)*e.size)
	places := newPlaces(a.Dims)
	for i := 0; i < size; {
		part := buffer[:min(size-i, most)*e.size]
		at := r.Offset()
		if n, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("offset %d: after %d of %d elements (shape %v): %w", at+int64(n), i+n/e.size, size,
				a.Dims, input.Ends(err))
		}
		for k := 0; k < len(part); k, i = k+e.size, i+1 {
			v, err := e.value(part[k : k+e.size])
			if err != nil {
				return fmt.Errorf("offset %d: element %d is %w", at+int64(k), i, err)
			}
			to := i
			if fortran {
				to = places.next()
			}
			if a.fraction == 0 && v.high != math.Trunc(v.high) {
				a.fraction, a.fractionAt = v.high, to
			}
			a.Values[to] = a.narrow(v, to)
		}
	}
	return nil
}

// inputs is how many values a sample has; 0 of an array that has no samples of several.
func (a *Array) inputs() int {
	if len(a.Dims) < 2 {
		return 0
	}
	return len(a.Values) / a.Dims[0]
}

// narrow returns an element as Values has it at a position.
func (a *Array) narrow(v number, at int) float32 {
	switch {
	case a.origin != nil:
		if origin := a.origin[at%len(a.origin)]; origin != 0 {
			return float32(v.high - origin + v.low)
		}
	case a.precision != nil:
		a.precision[at%len(a.precision)].Add(v.high, v.low)
	}
	return v.float32()
}

// readHeader returns the text of the header.
func readHeader(r *input.Reader) (string, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return "", fmt.Errorf("offset 0: magic string: %w", input.Ends(err))
	}
	if found := string(start[:len(magic)]); found != magic {
		return "", fmt.Errorf("offset 0: magic string %q is not an NPY file's; %q is expected", found, magic)
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
	if _, ok := elementOf(h.descr); !ok {
		return 0, fmt.Errorf("element type %s%s; %s", strconv.Quote(h.descr), called(h.descr), accepted)
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
