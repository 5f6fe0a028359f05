package libsvm

import (
	"bytes"
	"testing"

	"github.com/gradwire/gradwire/datasets/hostile"
)

// hostiles are the files of testdata/hostile.
var hostiles = []hostile.File{
	{"empty", "The file is empty.", "no samples; accepted are lines of the form label index:value"},
	{"only-comments", "There are comments and no samples.", "no samples"},
	{"no-inputs", "No sample has an input.", "no sample has an input"},
	{"label-word", "The label is a word.", `:1: label "spam" is not a number`},
	{"label-nan", "The label is not a number, which float parsers accept.", `:2: label "nan" is not a number`},
	{"index-0", "The indices count from 0.", `:1: index "0"; accepted is a whole number from 1 to 1048576`},
	{"index-negative", "An index is negative.", `:1: index "-1"; accepted is a whole number from 1`},
	{"index-huge", "An index does not fit 32 bits.",
		`:1: index "4294967297"; accepted is a whole number from 1 to 1048576`},
	{"index-twice", "An index is there twice.", ":1: index 2 after 2; indices must ascend"},
	{"index-descends", "The indices descend.", ":2: index 2 after 3; indices must ascend"},
	{"value-missing", "A value is missing.", `:1: value of input 1: "" is not a number`},
	{"value-1e999", "A value is beyond any float.", `:1: value of input 1: "1e999" is not a number from -3.4`},
	{"colon-missing", "A pair has no colon.", `:1: "5" is not of the form index:value`},
	{"wide", "Few bytes would become 80 MiB once every input is written out.",
		":17: 17 samples of 1048576 inputs take 71303576 bytes when every input is written out; accepted are " +
			"67108864 and 4 for each"},
	{"regression", "The labels are real-valued targets.", `:1001: label "1000.5" is one more than 1000 different ones`},
	{"long-line", "A line is longer than 1 MiB.", `:1: line longer than 1048576 bytes, beginning "1 111`},
	{"binary", "The file is binary.", ": this is no text"},
	{"gzip-cut", "The compressed file ends early.", "the file ends too early, within what gzip has compressed"},
}

func TestHostileFilesAreRefused(t *testing.T) {
	hostile.Check(t, hostiles, func(_, name string, content []byte) error {
		_, err := Read(bytes.NewReader(content), name, Options{})
		return err
	})
}
