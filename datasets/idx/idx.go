// Package idx reads IDX files, the format of MNIST and of the data sets modelled on it, plain
// or compressed with gzip. It treats them as hostile: a header alone never causes an
// allocation, and every length is bounded.
//
// An IDX file is two zero bytes, a type byte, the number of dimensions, one big-endian 32-bit
// size per dimension, and the elements, of which the last dimension varies fastest
// (http://yann.lecun.com/exdb/mnist/).
package idx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxDims is the largest number of dimensions that Read accepts.
	MaxDims = 4
	// MaxBytes bounds the elements of an array: 1 GiB, twenty times MNIST.
	MaxBytes = input.MaxBytes
	// MaxSamples bounds the number of samples.
	MaxSamples = 10_000_000
)

// typeUint8 is the type byte of unsigned bytes, the only one that MNIST and
// its likenesses use.
const typeUint8 = 0x08

// Array is an array of unsigned bytes.
type Array struct {
	// Dims are the sizes of the dimensions, the slowest first.
	Dims []int
	// Data holds the elements; their number is the product of Dims.
	Data []byte
}

// Read reads one array of unsigned bytes and requires r to end there. It sees from the first two
// bytes whether r is compressed with gzip. Errors begin with name and tell the offset, in the
// uncompressed bytes, at which the content stops making sense: a bad header, another element type,
// more than MaxDims dimensions or MaxBytes elements, an early end, trailing bytes. An array of more
// than 8 MiB can be read only from an io.ReadSeeker.
func Read(r io.Reader, name string) (*Array, error) {
	a := &Array{}
	dims, err := read(r, name, func(size int) { a.Data = make([]byte, 0, size) },
		func(part []byte) { a.Data = append(a.Data, part...) })
	if err != nil {
		return nil, err
	}
	a.Dims = dims
	return a, nil
}

// read reads an array: it calls begin with the number of elements once they are known to be
// there, and take with some of them at a time.
func read(r io.Reader, name string, begin func(size int), take func(part []byte)) ([]int, error) {
	plain, err := input.New(r, name, nil)
	if err != nil {
		return nil, err
	}
	if err := plain.Foreign("\x00\x00\x08", "an array in IDX, the format of MNIST's files"); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	dims, size, err := readHeader(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	offset := int(plain.Offset())
	if err := plain.Holds(int64(size)); err != nil {
		return nil, fmt.Errorf("%s: offset %d: elements of dimensions %v: %w", name, offset, dims, err)
	}
	begin(size)
	buffer := make([]byte, min(size, 1<<16))
	for left := size; left > 0; {
		n, err := io.ReadFull(plain, buffer[:min(left, len(buffer))])
		take(buffer[:n])
		if left -= n; err != nil {
			return nil, fmt.Errorf("%s: offset %d: after %d of %d elements (dimensions %v): %w",
				name, offset+size-left, size-left, size, dims, input.Ends(err))
		}
	}
	switch _, err := plain.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%s: offset %d: trailing bytes after the %d elements of dimensions %v", name,
			offset+size, size, dims)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: offset %d: after the last element: %w", name, offset+size, err)
	}
	return dims, nil
}

// readHeader returns the dimensions and their product.
func readHeader(r io.Reader) (dims []int, size int, err error) {
	var word [4]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, 0, fmt.Errorf("offset 0: magic number: %w", input.Ends(err))
	}
	if word[0] != 0 || word[1] != 0 {
		return nil, 0, fmt.Errorf("offset 0: magic number % x is not an IDX file's; 00 00 08 and the number of "+
			"dimensions are expected", word)
	}
	if word[2] != typeUint8 {
		return nil, 0, fmt.Errorf("offset 2: element type %#02x; only unsigned bytes (%#02x) are accepted", word[2],
			typeUint8)
	}
	if word[3] < 1 || word[3] > MaxDims {
		return nil, 0, fmt.Errorf("offset 3: %d dimensions; 1 to %d are accepted", word[3], MaxDims)
	}
	dims, size = make([]int, word[3]), 1
	offset := len(word)
	for i := range dims {
		if _, err := io.ReadFull(r, word[:]); err != nil {
			return nil, 0, fmt.Errorf("offset %d: size of dimension %d of %d: %w", offset, i+1, len(dims),
				input.Ends(err))
		}
		n := binary.BigEndian.Uint32(word[:])
		if n == 0 || uint64(n) > MaxBytes/uint64(size) {
			return nil, 0, fmt.Errorf("offset %d: dimension %d of size %d after %v; sizes from 1 and together at "+
				"most %d elements are accepted",
				offset, i+1, n, dims[:i], MaxBytes)
		}
		dims[i], size, offset = int(n), size*int(n), offset+len(word)
	}
	return dims, size, nil
}
