package datasets

import (
	"cmp"
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
	// Origin has a number for each input: what its values in X are differences from, where they
	// would not survive as float32 otherwise; see Precision. It is 0 for others, and nil where it
	// is for all. A Scaler measures and scales the sum, and leaves none.
	Origin []float64
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
		Origin:  s.Origin,
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
	if s.Origin != nil && (len(s.Origin) != s.Inputs || s.Numeric == nil) {
		return fmt.Errorf("%d origins for %d inputs", len(s.Origin), s.Inputs)
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
	if !slices.Equal(s.Test.Origin, s.Pool.Origin) {
		return fmt.Errorf("test set %q has other origins than the pool %q", s.Test.Name, s.Pool.Name)
	}
	return s.checkShapes()
}

// checkShapes returns an error unless the samples of the pool and of the test set have the same shape.
func (s *Source) checkShapes() error {
	return checkSameShape(s.Test.Name, s.Test.dims(), "those in "+s.Pool.Name, s.Pool.dims())
}

// dims returns the shape of a sample; that of a plain vector is its length.
func (s *Set) dims() []int {
	if s.Shape == nil {
		return []int{s.Inputs}
	}
	return s.Shape
}

// checkSameShape returns an error unless two files have samples of the same shape. One shape may lack
// dimensions of size 1 that the other has. A plain vector never has the shape of an image: nothing
// says in which order it has the values.
func checkSameShape(name string, shape []int, others string, theirs []int) error {
	if len(shape) != len(theirs) && slices.Equal(significant(shape), significant(theirs)) ||
		slices.Equal(shape, theirs) {
		return nil
	}
	return fmt.Errorf("%s: samples of shape %v; %s have the shape %v; accepted are samples of the same shape", name,
		shape, others, theirs)
}

// CheckShape returns an error if a sample's shape is known and another one than the wanted,
// dimensions of size 1 aside. A plain vector fits: it says nothing about the order of the dimensions.
func CheckShape(name string, shape []int, whose string, wanted []int) error {
	a, b := significant(shape), significant(wanted)
	if len(a) < 2 || len(b) < 2 || slices.Equal(a, b) {
		return nil
	}
	hint := ""
	if last := len(a) - 1; slices.Equal(append([]int{a[last]}, a[:last]...), b) {
		hint = "; if the last dimension is the channels, say layout: channels-last, which moves it to the front"
	}
	return fmt.Errorf("%s: a sample has the shape %v; %s is %v%s", name, shape, whose, wanted, hint)
}

// significant are the dimensions of a shape whose size is not 1.
func significant(shape []int) (dims []int) {
	for _, n := range shape {
		if n != 1 {
			dims = append(dims, n)
		}
	}
	return dims
}

// Layouts of the dimensions of a sample.
const (
	ChannelsFirst = "channels-first"
	ChannelsLast  = "channels-last"
)

// Arrange moves the channels of both sets to the front if the layout has them last. It returns an
// error that names the files if the sets differ in the shape of their samples, or if the layout has
// channels and the samples have none.
func (s *Source) Arrange(layout string) error {
	if s.Test == nil {
		return s.Pool.Arrange(layout)
	}
	if err := s.checkShapes(); err != nil {
		return err
	}
	return cmp.Or(s.Pool.Arrange(layout), s.Test.Arrange(layout))
}

// Arrange is like Source.Arrange, for one set.
func (s *Set) Arrange(layout string) error {
	const image = 3 // dimensions: height, width, channels
	if layout != ChannelsLast {
		return nil
	}
	if len(s.Shape) != image {
		return fmt.Errorf("%s: samples of shape %v; layout: channels-last applies to arrays of shape (N, H, W, C), "+
			"samples × height × width × channels: leave it out for others", s.Name, s.dims())
	}
	channels := s.Shape[len(s.Shape)-1]
	s.Shape = append([]int{channels}, s.Shape[:len(s.Shape)-1]...)
	moved := make([]float32, s.Inputs)
	for i := range s.Len() {
		transpose(moved, s.Row(i), channels)
		copy(s.Row(i), moved)
	}
	if s.Origin != nil {
		origin := make([]float64, s.Inputs)
		transpose(origin, s.Origin, channels)
		s.Origin = origin
	}
	return nil
}

// transpose transposes a matrix of that many columns.
func transpose[T any](to, from []T, columns int) {
	rows := len(from) / columns
	for at, v := range from {
		to[at%columns*rows+at/columns] = v
	}
}

// OriginAsIn returns the origins of the set's inputs in the order of a file of that layout.
func (o *Other) OriginAsIn(layout string) []float64 {
	if layout != ChannelsLast || o.Origin == nil || len(o.Shape) < 2 {
		return o.Origin
	}
	origin := make([]float64, len(o.Origin))
	transpose(origin, o.Origin, len(o.Origin)/o.Shape[0])
	return origin
}
