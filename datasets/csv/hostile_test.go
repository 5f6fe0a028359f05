package csv

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/datasets/hostile"
)

// hostiles are the files of testdata/hostile.
var hostiles = []hostile.File{
	{"empty", "The file is empty.", "no samples; accepted are lines of fields with a label"},
	{"header-only-many", "There is one line, of which nobody can say what it is.",
		"a single line, of which it cannot be told whether it is a header"},
	{"one-field", "There is a single column.", `:1: a single field, "a"; a label and at least one input are needed`},
	{"semicolons", "The fields are separated by semicolons.",
		`:1: a single field, "1;2;x"; a label and at least one input are needed, ` +
			`with ',' between them, or another separator`},
	{"field-missing", "A line has a field too few.", ":4: 2 fields; the table has 3 columns"},
	{"field-extra", "The second line has a field too many.", ":2: 4 fields; the first line has 3"},
	{"all-words", "There is no number, and nobody can say whether there is a header.",
		":2: it cannot be told whether the line before is a header; say so with header: present or absent"},
	{"header-of-numbers", "The header has numbers in it.", ":2: it cannot be told whether the line before is a header"},
	{"name-binary", "A name in the header cannot be printed.",
		`name of column 1: "\abell" has a character in it that cannot be printed`},
	{"word", "A number is a word.", `:4: column 1 (a): "red" is not a number from -3.4`},
	{"missing-value", "A value is missing.", `:4: column 1 (a): "" is not a number`},
	{"missing-na", "A value is marked as missing.", `:4: column 2 (b): "NA" is not a number`},
	{"label-missing", "A label is missing.",
		":4: column 3 (label): the field is empty; missing values are left out or filled"},
	{"nan", "A number is not one, which float parsers accept.", `:4: column 1 (a): "NaN" is not a number`},
	{"infinity", "A number is infinite.", `:4: column 2 (b): "-inf" is not a number`},
	{"1e999", "A number is beyond any float.", `:4: column 1 (a): "1e999" is not a number`},
	{"hexadecimal", "A number is hexadecimal.", `:4: column 1 (a): "0x10" is not a number`},
	{"decimal-comma", "A number has a decimal comma.", `:4: column 1 (a): "1,5" is not a number`},
	{"quote-open", "A quote is not closed.", ":4: the closing quote of a field is missing"},
	{"quote-inside", "A quote stands within a field without quotes.", `:4: field 3: "x\"y" has a quote in it`},
	{"quote-text-behind", "Text follows a closing quote.",
		`:4: field 1: "0,2,x" follows the closing quote; a separator or the end of the line is expected`},
	{"utf-16", "The text is in UTF-16.", ": this is text in UTF-16; accepted is a table of text (CSV)"},
	{
		"latin-1",
		"A label is in Latin-1.",
		`:2: column 3 (label): "caf\xe9" is not UTF-8; if the file is of Windows or in Latin-1, say encoding: windows-1252`,
	},
	{"nul", "A label has a zero byte in it.",
		`:2: column 3 (label): "x\x00y" has a character in it that cannot be printed`},
	{"label-long", "A label has 201 bytes.", "has 201 bytes; at most 200 are accepted"},
	{"regression", "The labels are real-valued targets.",
		`:1002: column 2 (label): "1000.5" is one more than 1000 different values`},
	{"columns", "There are 70,001 columns.", ":1: 70000 separators; at most 65536 columns are accepted"},
	{"long-line", "A line is longer than 1 MiB.", `:4: line longer than 1048576 bytes, beginning "1,2,xxx`},
	{"gzip-cut", "The compressed file ends early.", "the file ends too early"},
	{"gzip-junk", "The file begins as if it were compressed.", "gzip: "},
	{"words-many", "A column of words has 1,001 different ones.", "is one more than 1000 different values"},
	{"words-wide", "Few bytes would become 80 MB once the words are written out.",
		"when every word is written out; accepted are 67108864 and 4 for each"},
}

func TestHostileFilesAreRefused(t *testing.T) {
	hostile.Check(t, hostiles, func(file, name string, content []byte) error {
		o := Options{Label: Last}
		if strings.HasPrefix(file, "words-") {
			o.Words = []string{"2"}
		}
		_, err := Read(bytes.NewReader(content), name, o)
		return err
	})
}
