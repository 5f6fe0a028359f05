package datasets

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

// The uses of a table's columns.
const (
	Number  = "number"  // one input
	Word    = "word"    // one input for each word
	Label   = "label"   // the class
	Ignored = "ignored" // none
)

// Layout says how the columns of a table become inputs.
type Layout struct {
	// Header says that the table's first line names the columns.
	Header bool `json:"header"`
	// Columns are those of the table, in its order; so are their inputs.
	Columns []Column `json:"columns"`
}

// Column is a column of a table.
type Column struct {
	// Name is as the header has it, or the column's number from 1.
	Name string `json:"name"`
	// Use is Number, Word, Label or Ignored.
	Use string `json:"use"`
	// Words are those that become an input each, or those that name the classes, in the order of
	// the inputs or classes.
	Words []string `json:"words,omitempty"`
}

// Other is a file of samples for a model that was trained on a set: of the same format, read as the
// set was.
type Other struct {
	// Path is the file's. Where Text is not nil, that is read in its place; formats of arrays have
	// only files.
	Path string
	Text io.Reader
	// Labelled asks for labels too. Without it they are not looked at, and need not be there.
	Labelled bool
	// Labels is the file of the labels, in formats that have one for them.
	Labels string
	// Inputs and Classes are those of the set.
	Inputs  int
	Classes []string
	// Layout is the set's; nil if it was no table.
	Layout *Layout
	// Origin is the set's; see Set.Origin.
	Origin []float64
	// Shape is a sample's in the set; nil where that is not known.
	Shape []int
}

// Others are the samples of another file.
type Others struct {
	// Set has them, not scaled, with labels of 0 where they were not asked for.
	Set *Set
	// Rows are their numbers in the file, from 0, where some are left out; else nil.
	Rows []int32
	// Total is the number of samples of the file.
	Total int
	// Unknown are the columns of words in which there are others than the set has.
	Unknown []Unknown
	// Notes say what else of the file was passed over; see File.
	Notes []string
}

// Unknown are words of a column that the training set has not. All inputs of the column are 0 then.
type Unknown struct {
	Column string `json:"column"`
	// First is the one that comes first, in Line, up to 200 bytes of it; Values counts all.
	First  string `json:"first"`
	Line   int    `json:"line"`
	Values int    `json:"values"`
}

// String says what the words are and what becomes of them.
func (u Unknown) String() string {
	return fmt.Sprintf("column %s has words that the training set has not, %d in all, the first, %q, on line %d: all "+
		"of its inputs are 0 there", u.Column, u.Values, u.First, u.Line)
}

// CountUnknown counts a word of a column, in a line, that the training set has not.
func CountUnknown(all []Unknown, column string, word []byte, line int) []Unknown {
	for i := range all {
		if all[i].Column == column {
			all[i].Values++
			return all
		}
	}
	const longest = 200
	first := strings.ToValidUTF8(string(word[:min(len(word), longest)]), "�")
	return append(all, Unknown{Column: column, First: first, Line: line, Values: 1})
}

// ReadOther gives the text of a file to read, with its name for errors.
func ReadOther[T any](o Other, read func(r io.Reader, name string) (T, error)) (T, error) {
	if o.Text != nil {
		return read(o.Text, "stdin")
	}
	content, _, err := input.Open(o.Path, read)
	return content, err
}

// WholeOthers are the samples of a file of which none is left out.
func WholeOthers(s *Set) *Others { return &Others{Set: s, Total: s.Len()} }

// CheckArrays returns an error for a file that formats of arrays, with labels in another one if
// there are any, cannot read.
func (o *Other) CheckArrays() error {
	switch {
	case o.Text != nil:
		return errors.New("stdin: the samples are arrays, which are read from files; name one")
	case o.Labelled && o.Labels == "":
		return fmt.Errorf("%s has no labels: they are in a file to themselves; name that too", o.Path)
	}
	return nil
}

// CheckInputs returns an error unless the samples of the file have as many inputs as the model
// takes, in the same shape where both are known.
func (o *Other) CheckInputs(s *Set) error {
	if s.Inputs != o.Inputs {
		return fmt.Errorf("%s: %d inputs a sample; the model takes %d", o.Path, s.Inputs, o.Inputs)
	}
	if o.Shape == nil {
		return nil
	}
	return checkSameShape(o.Path, s.dims(), "the samples that the model was trained on", o.Shape)
}
