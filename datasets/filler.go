package datasets

import (
	"fmt"
	"math"
	"strconv"
)

// Filler puts the mean of a numeric column where its value is missing; of a column with an origin,
// the mean difference from it.
type Filler struct {
	columns []int
	means   []float64
}

// FitFiller measures the mean of each numeric column over those of the given rows that have a value
// there, nil meaning all rows, in float64 and in the order of rows. A column without any is an
// error that names it, a *NoMean. It panics if there is no row to fit on.
func FitFiller(set *Set, rows []int32) (*Filler, error) {
	if set.Len() == 0 || (rows != nil && len(rows) == 0) {
		panic("datasets: filler fitted on no rows")
	}
	f := &Filler{columns: set.Numeric, means: make([]float64, len(set.Numeric))}
	counts := make([]int, len(f.columns))
	eachRow(set, rows, func(x []float32) {
		for j, column := range f.columns {
			if v := float64(x[column]); !math.IsNaN(v) {
				f.means[j] += v
				counts[j]++
			}
		}
	})
	for j, column := range f.columns {
		if counts[j] == 0 {
			return nil, &NoMean{set, column}
		}
		f.means[j] /= float64(counts[j])
	}
	return f, nil
}

// NoMean is the error about a numeric column without a value in any training sample.
type NoMean struct {
	Set    *Set
	Column int // among the inputs, from 0
}

func (e *NoMean) Error() string {
	name := strconv.Itoa(e.Column)
	if e.Set.Columns != nil {
		name = strconv.Quote(e.Set.Columns[e.Column])
	}
	return fmt.Sprintf("data set %q: no training sample has a value of input %s, so that it has no mean; leave the "+
		"column out, or fill it with a constant", e.Set.Name, name)
}

// NewFiller returns the filler of sets with a number of inputs that a fitted one describes by
// Columns. A column that is not among the inputs, or has no value, is an error.
func NewFiller(inputs int, columns []int, values []float64) (*Filler, error) {
	if len(columns) != len(values) {
		return nil, fmt.Errorf("%d columns are filled with %d values", len(columns), len(values))
	}
	for _, c := range columns {
		if c < 0 || c >= inputs {
			return nil, fmt.Errorf("filled column %d is none of the %d inputs", c, inputs)
		}
	}
	return &Filler{columns: columns, means: values}, nil
}

// Apply fills the gaps of set in place; it has none afterwards. The set has the columns of the one
// that was fitted.
func (f *Filler) Apply(set *Set) {
	for i := range set.Len() {
		x := set.Row(i)
		for j, column := range f.columns {
			if x[column] != x[column] { // NaN
				x[column] = float32(f.means[j])
			}
		}
	}
	set.Gaps = false
}

// FilledColumn says what a numeric column is filled with where a value is missing.
type FilledColumn struct {
	Column int // among the inputs, from 0
	Value  float64
}

// Columns returns what each numeric column is filled with, in their order.
func (f *Filler) Columns() []FilledColumn {
	columns := make([]FilledColumn, len(f.columns))
	for j, c := range f.columns {
		columns[j] = FilledColumn{c, f.means[j]}
	}
	return columns
}
