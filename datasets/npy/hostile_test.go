package npy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/hostile"
)

// hostiles are the files of testdata/hostile.
var hostiles = []hostile.File{
	{"npy-empty", "The file is empty.", "offset 0: magic string: the file ends too early"},
	{
		"npy-matlab",
		"The file is of another program.",
		"this is a file of MATLAB; accepted is an array in NumPy's format NPY",
	},
	{"npy-version-9", "The version is none that there is.", "offset 6: version 9.0; accepted are 1.0, 2.0 and 3.0"},
	{"npy-length-cut", "The file ends within the length of its header.",
		"offset 8: length of the header: the file ends too early"},
	{"npy-header-4-gib", "The header is said to have 4 GiB.",
		"offset 8: a header of 4294967295 bytes; at most 10000 are accepted"},
	{"npy-header-cut", "The file ends within its header.",
		"offset 40: after 30 of 118 bytes of the header: the file ends too early"},
	{"npy-float128", "The elements are floats of 16 bytes.",
		`offset 10: header: element type "<f16", floating-point numbers of another size; ` +
			`accepted are booleans (b1), integers (i1, i2, i4, i8, u1, u2, u4, u8) and floating-point ` +
			`numbers (f2, f4, f8)`},
	{"npy-no-order", "Elements of four bytes come without a byte order.",
		`element type "|f4", without its byte order; accepted are booleans`},
	{"npy-integer-3", "The elements have three bytes.", `element type "<i3", integers of another size; accepted`},
	{"npy-boolean-2", "A boolean is neither 0 nor 1.", "offset 132: element 4 is 2; accepted of booleans are 0 and 1"},
	{"npy-half-infinite", "A half float is infinite.", "offset 136: element 4 is +Inf; accepted are numbers from"},
	{"npy-half-nan", "A half float is not a number.", "offset 130: element 1 is NaN; accepted are numbers from"},
	{"npy-fortran-cut", "The last element of an array in Fortran order is cut.",
		"offset 139: after 5 of 6 elements (shape [3 2]): the file ends too early"},
	{"npy-fortran-8-gib", "The header promises 8 GiB in Fortran order.",
		"elements of shape [1024 1024 1024]: 24 of 8589934592 bytes: the file ends too early"},
	{"npy-fortran-1", "The order is a number.", `header: "1, 'shape'`},
	{"npy-complex", "The elements are complex.", `element type "<c8", complex numbers; accepted`},
	{"npy-strings", "The elements are strings.", `element type "<U3", strings; accepted`},
	{"npy-pickle", "The elements are pickled objects, which would run a command.",
		`element type "|O", pickled objects, which would have to be run; accepted`},
	{"npy-record", "The elements are records.", "header: an element is a record; accepted are booleans"},
	{"npy-code", "The header is code.", `offset 20: header: "__import__`},
	{"npy-key-missing", "The header lacks a key.",
		"the key fortran_order is missing; descr, fortran_order and shape are expected"},
	{"npy-key-twice", "A key is there twice.", `the key "descr" is there twice`},
	{"npy-key-unknown", "The header has another key.",
		`unknown key "order"; descr, fortran_order and shape are expected`},
	{"npy-shape-negative", "A size is negative.", `header: "-1, 3), }`},
	{"npy-shape-float", "A size is no whole number.", `header: ".5, 3), }`},
	{"npy-shape-0", "The array is empty.", "dimension 1 of size 0 after []; sizes from 1"},
	{"npy-shape-overflow", "The product of the sizes is 2^64, which is 0 in 64 bits.",
		"dimension 1 of size 4294967296 after []; sizes from 1 and together at most 1073741824 elements"},
	{"npy-shape-digits", "A size has forty digits.", "where a size is expected"},
	{"npy-9-dimensions", "The array has nine dimensions.", "header: more than 8 dimensions"},
	{"npy-8-gib", "The header promises 8 GiB and a few bytes follow.",
		"offset 128: elements of shape [1073741824]: 24 of 8589934592 bytes: the file ends too early"},
	{"npy-cut", "The last element is cut.", "offset 150: after 5 of 6 elements (shape [2 3]): the file ends too early"},
	{"npy-trailing", "A byte follows the last element.",
		"offset 152: trailing bytes after the 6 elements of shape [2 3]"},
	{"npy-nan", "An element is not a number.", "offset 136: element 2 is NaN; accepted are numbers from -3.4"},
	{"npy-1e300", "An element does not fit a float32.", "offset 128: element 0 is 1e+300; accepted are numbers from"},
	{"npy-nested-deep", "The header opens three thousand brackets.", `header: "{{{`},
	{"npz-empty", "The archive is empty.", "offset 0: 0 bytes are not an NPZ file, which is a ZIP archive"},
	{"npz-cut", "The archive was cut off.",
		"is not the end of an NPZ file, which is a ZIP archive without a comment; the file may have been cut off"},
	{"npz-no-y", "An array is missing.",
		`there is no array "y"; there are ["X"]: x names the array of the inputs, y that of`},
	{"npz-array-twice", "Two arrays have one name.", `two arrays are named "y"`},
	{"npz-checksum", "The checksum of an array is wrong.", "zip: checksum error"},
	{"npz-bomb", "The archive becomes a thousand times as large.",
		"compressed bytes are to become 100000128; accepted are 67108864, or 128 for each"},
	{"npz-directory-1-gib", "The list of members is said to have 1 GiB.",
		"the list of the archive's members has 1073741824 bytes; at most 65536 are accepted"},
	{"npz-directory-elsewhere", "The list of members is said to be where it is not.", "is said to be at 5 with"},
	{"npz-encrypted", "An array is encrypted.",
		"the array is encrypted; accepted are those that are stored or deflated"},
	{"npz-lzma", "An array is compressed with LZMA.",
		"compression method 14; accepted are those that are stored (0) or deflated (8)"},
	{"npz-labels-matrix", "The labels are a matrix.", "shape [2 3]; one label a sample is expected"},
	{"npz-labels-fewer", "There are fewer labels than samples.", "has 2 samples"},
	{"npz-labels-real", "The labels are real-valued targets.", "label 0.5 of sample 0; accepted are whole numbers"},
	{"npz-inputs-flat", "The inputs have a single dimension.",
		"shape [2]; samples × at least one more dimension are expected"},
}

func TestHostileFilesAreRefused(t *testing.T) {
	hostile.Check(t, hostiles, func(file, name string, content []byte) error {
		if strings.HasPrefix(file, "npz-") {
			_, err := loadContent(content, name)
			return err
		}
		_, err := Read(bytes.NewReader(content), name)
		return err
	})
}

// loadContent is LoadArchive of an archive in memory.
func loadContent(content []byte, name string) (*datasets.Source, error) {
	a, err := openArchive(bytes.NewReader(content), int64(len(content)), name)
	if err != nil {
		return nil, err
	}
	return a.load(Pairs{X: "X", Y: "y"})
}
