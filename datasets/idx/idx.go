// Package idx reads IDX files, the format of MNIST and of the data sets made
// in its likeness, compressed with gzip or not, and treats them as hostile:
// nothing is allocated on a header's word alone, every length is bounded.
//
// An IDX file is two zero bytes, a type byte, the number of dimensions, one
// big-endian 32-bit size for each dimension, and the elements, the last
// dimension running fastest (http://yann.lecun.com/exdb/mnist/).
package idx

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// MaxDims is the largest number of dimensions that Read accepts.
	MaxDims = 4
	// MaxBytes bounds the elements of an array, and the bytes read of a
	// compressed file: 1 GiB, twenty times MNIST.
	MaxBytes = 1 << 30
)

// typeUint8 is the type byte of unsigned bytes, the only one that MNIST and
// its likenesses use.
const typeUint8 = 0x08

// firstChunk is what is allocated before any element has arrived.
const firstChunk = 1 << 20

// Array is an array of unsigned bytes.
type Array struct {
	// Dims are the sizes of the dimensions, the slowest first.
	Dims []int
	// Data holds the elements; their number is the product of Dims.
	Data []byte
}

// Read reads one array of unsigned bytes and requires r to end there. It sees
// from the first two bytes whether r is compressed with gzip. Errors begin
// with name and tell the offset, in the uncompressed bytes, at which the
// content stops making sense: a bad header, another element type, more than
// MaxDims dimensions or MaxBytes elements, an early end, trailing bytes.
func Read(r io.Reader, name string) (*Array, error) {
	plain, err := decompressed(r)
	if err != nil {
		return nil, fmt.Errorf("%s: gzip: %w", name, err)
	}
	dims, size, offset, err := readHeader(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	data, err := readElements(plain, size)
	if err != nil {
		return nil, fmt.Errorf("%s: offset %d: after %d of %d elements (dimensions %v): %w",
			name, offset+len(data), len(data), size, dims, truncated(err))
	}
	switch _, err := plain.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%s: offset %d: trailing bytes after the %d elements of dimensions %v", name, offset+size, size, dims)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: offset %d: after the last element: %w", name, offset+size, err)
	}
	return &Array{Dims: dims, Data: data}, nil
}

func decompressed(r io.Reader) (*bufio.Reader, error) {
	raw := bufio.NewReaderSize(io.LimitReader(r, MaxBytes+firstChunk), 1<<16)
	magic, err := raw.Peek(2)
	if err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return raw, nil // an error shows up again, with an offset, when read
	}
	z, err := gzip.NewReader(raw)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, 1<<16), nil
}

// readHeader returns the dimensions, their product and the header's length.
func readHeader(r io.Reader) (dims []int, size, offset int, err error) {
	var word [4]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, 0, 0, fmt.Errorf("offset 0: magic number: %w", truncated(err))
	}
	if word[0] != 0 || word[1] != 0 {
		return nil, 0, 0, fmt.Errorf("offset 0: magic number % x is not that of an IDX file; 00 00 08 and the number of dimensions are expected", word)
	}
	if word[2] != typeUint8 {
		return nil, 0, 0, fmt.Errorf("offset 2: element type %#02x; only unsigned bytes (%#02x) are accepted", word[2], typeUint8)
	}
	if word[3] < 1 || word[3] > MaxDims {
		return nil, 0, 0, fmt.Errorf("offset 3: %d dimensions; 1 to %d are accepted", word[3], MaxDims)
	}
	dims, size, offset = make([]int, word[3]), 1, len(word)
	for i := range dims {
		if _, err := io.ReadFull(r, word[:]); err != nil {
			return nil, 0, 0, fmt.Errorf("offset %d: size of dimension %d of %d: %w", offset, i+1, len(dims), truncated(err))
		}
		n := binary.BigEndian.Uint32(word[:])
		if n == 0 || uint64(n) > MaxBytes/uint64(size) {
			return nil, 0, 0, fmt.Errorf("offset %d: dimension %d of size %d after %v; sizes from 1 and together at most %d elements are accepted",
				offset, i+1, n, dims[:i], MaxBytes)
		}
		dims[i], size, offset = int(n), size*int(n), offset+len(word)
	}
	return dims, size, offset, nil
}

// readElements grows its buffer as bytes arrive, so that a header cannot make
// it allocate more than about twice what was delivered.
func readElements(r io.Reader, size int) ([]byte, error) {
	data := make([]byte, 0, min(size, firstChunk))
	for {
		n, err := io.ReadFull(r, data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err != nil || len(data) == size {
			return data, err
		}
		grown := make([]byte, len(data), min(size, 2*cap(data)))
		copy(grown, data)
		data = grown
	}
}

// truncated says in words what io.ReadFull's errors mean here.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file ends too early: %w", io.ErrUnexpectedEOF)
	}
	return err
}
