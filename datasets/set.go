package datasets

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gradwire/gradwire/datasets/input"
)

// MaxSamples is the largest number of samples of a Set: rows are numbered by
// int32.
const MaxSamples = math.MaxInt32

// Set is a labelled data set in memory: n samples of Inputs numbers each, and
// one label a sample. It is immutable once made and shared by many runs; only
// a Scaler changes it, before it is shared.
type Set struct {
	// Name is what people and errors call the set.
	Name string
	// X holds the inputs, n × Inputs, row after row.
	X []float32
	// Y holds the labels, n of them, each an index into Classes.
	Y []int32
	// Inputs is the number of columns of X.
	Inputs int
	// Classes are the names of the labels; the index is the label.
	Classes []string
	// Numeric lists, ascending, the columns that a Scaler may change, each by
	// itself. The others, such as one-hot columns, are left alone. Without a
	// list (nil), as of images, all inputs are scaled alike.
	Numeric []int
	// Gaps says that where an input of a Numeric column is NaN the value is missing; a Filler puts
	// another in its place before the set is used.
	Gaps bool
	// Columns are the names of the inputs, in their order; nil where they have none.
	Columns []string
	// Layout says how the columns of a table became the inputs; nil for what was no table.
	Layout *Layout
	// Groups are the samples' values of the column that the set is split by, n of them, each an
	// index into GroupNames; nil where it is split otherwise.
	Groups     []int32
	GroupNames []string
	// Shape is a sample's shape as published, for instance 28 × 28; nil for a plain vector.
	Shape []int
}

// File is a file of samples that was read.
type File = input.File

// Source is what a reader delivers.
type Source struct {
	// Pool is there to train on, or to be split into training and test rows.
	Pool *Set
	// Test is the published test set: nil if there is none or it is not wanted.
	Test *Set
	// Files are all that were read, in the order of reading; none for a generated set.
	Files []File
}

// Len returns the number of samples.
func (s *Set) Len() int { return len(s.Y) }

// Row returns the inputs of sample i, a view of length Inputs that must not be
// written.
func (s *Set) Row(i int) []float32 {
	return s.X[i*s.Inputs : (i+1)*s.Inputs : (i+1)*s.Inputs]
}

// Rows returns the numbers of all samples.
func (s *Set) Rows() []int32 {
	rows := make([]int32, s.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

// Subset returns a new set of the given rows in the given order, which may
// repeat. Inputs and labels are copied; names, column lists and the shape are shared. A
// row outside the set panics.
func (s *Set) Subset(rows []int32) *Set {
	sub := &Set{
		Name:    s.Name,
		X:       make([]float32, len(rows)*s.Inputs),
		Y:       make([]int32, len(rows)),
		Inputs:  s.Inputs,
		Classes: s.Classes,
		Numeric: s.Numeric,
		Gaps:    s.Gaps,
		Columns: s.Columns,
		Layout:  s.Layout,
		Shape:   s.Shape,

		GroupNames: s.GroupNames,
	}
	if s.Groups != nil {
		sub.Groups = make([]int32, len(rows))
		for i, row := range rows {
			sub.Groups[i] = s.Groups[row]
		}
	}
	for i, row := range rows {
		copy(sub.X[i*s.Inputs:(i+1)*s.Inputs], s.Row(int(row)))
		sub.Y[i] = s.Y[row]
	}
	return sub
}

// Counts returns the number of samples of every class, len(Classes) numbers.
func (s *Set) Counts() []int {
	counts := make([]int, len(s.Classes))
	for _, y := range s.Y {
		counts[y]++
	}
	return counts
}

// Validate reports the first thing that makes the set unusable: a shape that
// does not fit, no samples, class names missing or named twice, a label
// without a class, a Numeric column that does not exist, an input that is neither
// finite nor a gap. It reads the whole set.
func (s *Set) Validate() error {
	if err := s.validateShape(); err != nil {
		return fmt.Errorf("data set %q: %w", s.Name, err)
	}
	for i, y := range s.Y {
		if y < 0 || int(y) >= len(s.Classes) {
			return fmt.Errorf("data set %q: sample %d has label %d; labels are 0 to %d", s.Name, i, y, len(s.Classes)-1)
		}
	}
	for i, x := range s.X {
		if math.IsNaN(float64(x)) && s.Gaps {
			if _, numeric := slices.BinarySearch(s.Numeric, i%s.Inputs); numeric {
				continue
			}
		}
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("data set %q: sample %d, input %d is %v; inputs must be finite", s.Name, i/s.Inputs,
				i%s.Inputs, x)
		}
	}
	return nil
}

func (s *Set) validateShape() error {
	switch n := len(s.Y); {
	case s.Inputs < 1:
		return fmt.Errorf("%d inputs a sample; at least 1 is needed", s.Inputs)
	case n == 0:
		return errors.New("no samples")
	case n > MaxSamples:
		return fmt.Errorf("%d samples; at most %d can be numbered", n, MaxSamples)
	case len(s.X)%s.Inputs != 0 || len(s.X)/s.Inputs != n:
		return fmt.Errorf("%d inputs do not make %d samples of %d", len(s.X), n, s.Inputs)
	case len(s.Classes) == 0:
		return errors.New("no class names")
	case s.Groups != nil && len(s.Groups) != n:
		return fmt.Errorf("%d samples have a group; all %d must, or none", len(s.Groups), n)
	}
	for i, name := range s.Classes {
		if name == "" {
			return fmt.Errorf("class %d has no name", i)
		}
		if first := slices.Index(s.Classes, name); first != i {
			return fmt.Errorf("classes %d and %d are both named %q", first, i, name)
		}
	}
	last := -1
	for _, column := range s.Numeric {
		if column <= last || column >= s.Inputs {
			return fmt.Errorf("numeric column %d after %d; columns must ascend and be below %d", column, last, s.Inputs)
		}
		last = column
	}
	return nil
}

// Validate checks the pool and, if there is one, the test set, and that both
// have the same inputs and classes.
func (s *Source) Validate() error {
	if s.Pool == nil {
		return errors.New("data source without a pool to train on")
	}
	if err := s.Pool.Validate(); err != nil {
		return err
	}
	if s.Test == nil {
		return nil
	}
	if err := s.Test.Validate(); err != nil {
		return err
	}
	if s.Test.Inputs != s.Pool.Inputs || !slices.Equal(s.Test.Classes, s.Pool.Classes) {
		return fmt.Errorf("test set %q has %d inputs and classes %q; the pool %q has %d and %q",
			s.Test.Name, s.Test.Inputs, s.Test.Classes, s.Pool.Name, s.Pool.Inputs, s.Pool.Classes)
	}
	return nil
}
