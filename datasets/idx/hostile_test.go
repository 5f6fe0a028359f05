package idx

import (
	"bytes"
	"testing"

	"github.com/gradwire/gradwire/datasets/hostile"
)

// hostiles are the files of testdata/hostile.
var hostiles = []hostile.File{
	{"empty", "The file is empty.", "offset 0: magic number: the file ends too early"},
	{"magic-cut", "The file ends within its magic number.", "offset 0: magic number: the file ends too early"},
	{"png", "The file is an image, not an array of them.",
		"this is a PNG image; accepted is an array in IDX, the format of MNIST's files"},
	{"little-endian", "The magic number is written in little-endian order.",
		"offset 0: magic number 03 08 00 00 is not"},
	{"floats", "The elements are floats.", "offset 2: element type 0x0d; only unsigned bytes (0x08) are accepted"},
	{"signed", "The elements are signed bytes.", "offset 2: element type 0x09; only unsigned bytes"},
	{"no-dimensions", "The array has no dimensions.", "offset 3: 0 dimensions; 1 to 4 are accepted"},
	{"255-dimensions", "The array has 255 dimensions.", "offset 3: 255 dimensions; 1 to 4 are accepted"},
	{"dimension-cut", "The file ends within the size of a dimension.",
		"offset 8: size of dimension 2 of 2: the file ends too early"},
	{"dimension-0", "A dimension has the size 0.", "offset 8: dimension 2 of size 0 after [3]; sizes from 1"},
	{"4-tebibytes", "The sizes promise 4 TiB.",
		"offset 4: dimension 1 of size 2147483648 after []; sizes from 1 and together at most 1073741824 elements"},
	{"product-overflow", "The product of the sizes is 2^64, which is 0 in 64 bits.",
		"together at most 1073741824 elements are accepted"},
	{"1-gibibyte", "The header promises 1 GiB and a few bytes follow.",
		"offset 8: elements of dimensions [1073741824]: 10 of 1073741824 bytes: the file ends too early"},
	{"cut", "The last element is missing.",
		"offset 23: after 11 of 12 elements (dimensions [3 4]): the file ends too early"},
	{"trailing", "A byte follows the last element.", "offset 24: trailing bytes after the 12 elements"},
	{"gzip-cut", "The compressed file ends early.", "unexpected EOF"},
	{"gzip-bomb", "The compressed file becomes a thousand times as large, beyond what its header promises.",
		"offset 18: trailing bytes after the 10 elements"},
	{"gzip-checksum", "The checksum of the compressed file is wrong.",
		"offset 24: after the last element: gzip: invalid checksum"},
}

func TestHostileFilesAreRefused(t *testing.T) {
	hostile.Check(t, hostiles, func(_, name string, content []byte) error {
		_, err := Read(bytes.NewReader(content), name)
		return err
	})
}
