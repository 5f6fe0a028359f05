package datasets

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Scaling says how a Scaler changes a numeric column.
type Scaling string

const (
	// NoScaling leaves every column as it is.
	NoScaling Scaling = "none"
	// MinMax maps the smallest fitted value to 0 and the largest to 1.
	MinMax Scaling = "min-max"
	// Standard subtracts the fitted mean and divides by the fitted standard
	// deviation (of the population: divided by n).
	Standard Scaling = "standard"
	// LogMinMax takes sign(x)·log(1+|x|) first, then MinMax: for counts and
	// sizes that span many orders of magnitude.
	LogMinMax Scaling = "log-min-max"
)

// Scaler maps each numeric column x to (x − offset)/width, or to
// (log1p(x) − offset)/width. Values outside the fitted range are left outside
// the target range, never clipped. A column that is constant on the fitted
// rows says nothing there and becomes 0 everywhere. All inputs of a set without
// a list of numeric columns, as of images, are one column: they are scaled alike. Where the set has
// an origin for a column, x is the difference from it, of which only the logarithm takes the sum.
type Scaler struct {
	scaling Scaling
	inputs  int
	columns []int
	origin  []float64 // of the inputs; nil for none
	offset  []float64
	width   []float64
}

// FitScaler measures the numeric columns of the given rows, nil meaning all of
// them, in float64 and in the order of rows. It panics if there is no row to
// fit on or the scaling is not one of the constants; the empty one stands for NoScaling.
func FitScaler(s Scaling, set *Set, rows []int32) *Scaler {
	s = cmp.Or(s, NoScaling)
	if !slices.Contains([]Scaling{NoScaling, MinMax, Standard, LogMinMax}, s) {
		panic("datasets: unknown scaling")
	}
	if set.Len() == 0 || (rows != nil && len(rows) == 0) {
		panic("datasets: scaler fitted on no rows")
	}
	k := len(set.Numeric)
	if set.Numeric == nil {
		k = 1
	}
	sc := &Scaler{
		scaling: s,
		inputs:  set.Inputs,
		columns: set.Numeric,
		origin:  set.Origin,
		offset:  make([]float64, k),
		width:   make([]float64, k),
	}
	switch {
	case s == NoScaling:
	case set.Numeric == nil && s == Standard:
		sc.fitMomentsOfAll(set, rows)
	case set.Numeric == nil:
		sc.fitRangeOfAll(set, rows)
	case s == Standard:
		sc.fitMoments(set, rows)
	default:
		sc.fitRange(set, rows)
	}
	return sc
}

// NewScaler returns the scaler of sets with these numeric columns that a fitted one describes by
// Scaling and by Columns or, where the columns are nil, by Alike; see [Scaler.Apply]. Columns that
// do not ascend or are not among the inputs, and offsets or widths that are not as many, are
// errors. Origin is the set's.
func NewScaler(s Scaling, inputs int, columns []int, origin, offset, width []float64) (*Scaler, error) {
	sc := &Scaler{scaling: s, inputs: inputs, columns: columns, origin: origin, offset: offset, width: width}
	if !slices.Contains([]Scaling{MinMax, Standard, LogMinMax}, s) {
		return nil, fmt.Errorf("scaling %q; accepted are min-max, standard and log-min-max", s)
	}
	k := len(columns)
	if columns == nil {
		k = 1
	}
	if len(offset) != k || len(width) != k {
		return nil, fmt.Errorf("scaling %s has %d offsets and %d widths; %d of each are needed", s, len(offset),
			len(width), k)
	}
	last := -1
	for _, c := range sc.columns {
		if c <= last || c >= inputs {
			return nil, fmt.Errorf("scaled column %d after %d; columns must ascend and be below %d", c, last, inputs)
		}
		last = c
	}
	return sc, nil
}

// fitRangeOfAll is fitRange for inputs that are one column.
func (sc *Scaler) fitRangeOfAll(set *Set, rows []int32) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	eachRow(set, rows, func(x []float32) {
		for _, v := range x {
			m := sc.measure(v, 0)
			lowest, highest = min(lowest, m), max(highest, m)
		}
	})
	sc.offset[0], sc.width[0] = lowest, highest-lowest
}

// fitMomentsOfAll is fitMoments for inputs that are one column.
func (sc *Scaler) fitMomentsOfAll(set *Set, rows []int32) {
	n, sum, squares := 0.0, 0.0, 0.0
	lowest, highest := float32(math.Inf(1)), float32(math.Inf(-1))
	eachRow(set, rows, func(x []float32) {
		n += float64(len(x))
		for _, v := range x {
			sum += float64(v)
			lowest, highest = min(lowest, v), max(highest, v)
		}
	})
	mean := sum / n
	eachRow(set, rows, func(x []float32) {
		for _, v := range x {
			d := float64(v) - mean
			squares += float64(d * d)
		}
	})
	if lowest < highest {
		sc.offset[0], sc.width[0] = mean, math.Sqrt(squares/n)
	}
}

// Scaling returns what the scaler was fitted for.
func (sc *Scaler) Scaling() Scaling { return sc.scaling }

// Origins are those of the sets that it scales; nil for none. See Set.Origin.
func (sc *Scaler) Origins() []float64 {
	if sc == nil || sc.scaling == NoScaling {
		return nil
	}
	return sc.origin
}

// ScaledColumn says what becomes of a numeric column x: (x − Offset)/Width, with LogMinMax
// (sign(x)·log(1+|x|) − Offset)/Width; 0 where Width is 0.
type ScaledColumn struct {
	Column int     `json:"column"` // among the inputs, from 0
	Offset float64 `json:"offset"`
	Width  float64 `json:"width"`
}

// Alike returns the offset and the width by which all inputs are scaled; false with NoScaling, and
// where each numeric column has others.
func (sc *Scaler) Alike() (offset, width float64, ok bool) {
	if sc.scaling == NoScaling || sc.columns != nil {
		return 0, 0, false
	}
	return sc.offset[0], sc.width[0], true
}

// Columns returns what the scaler does to each numeric column, in their order; nil with NoScaling,
// and where all inputs are scaled alike.
func (sc *Scaler) Columns() []ScaledColumn {
	if sc.scaling == NoScaling {
		return nil
	}
	columns := make([]ScaledColumn, len(sc.columns))
	for j, c := range sc.columns {
		columns[j] = ScaledColumn{c, sc.offset[j], sc.width[j]}
	}
	return columns
}

func (sc *Scaler) fitRange(set *Set, rows []int32) {
	highest := make([]float64, len(sc.columns))
	for j := range sc.columns {
		sc.offset[j], highest[j] = math.Inf(1), math.Inf(-1)
	}
	eachRow(set, rows, func(x []float32) {
		for j, column := range sc.columns {
			v := sc.measure(x[column], sc.from(column))
			sc.offset[j] = min(sc.offset[j], v)
			highest[j] = max(highest[j], v)
		}
	})
	for j := range sc.columns {
		sc.width[j] = highest[j] - sc.offset[j]
	}
}

// fitMoments takes two passes over the rows: the one-pass formula cancels
// catastrophically on columns such as byte counts.
func (sc *Scaler) fitMoments(set *Set, rows []int32) {
	n := float64(set.Len())
	if rows != nil {
		n = float64(len(rows))
	}
	constant := make([]bool, len(sc.columns))
	first := make([]float32, len(sc.columns))
	for j, column := range sc.columns {
		at := 0
		if rows != nil {
			at = int(rows[0])
		}
		first[j], constant[j] = set.Row(at)[column], true
	}
	eachRow(set, rows, func(x []float32) {
		for j, column := range sc.columns {
			sc.offset[j] += float64(x[column])
			constant[j] = constant[j] && x[column] == first[j]
		}
	})
	for j := range sc.offset {
		sc.offset[j] /= n
	}
	eachRow(set, rows, func(x []float32) {
		for j, column := range sc.columns {
			d := float64(x[column]) - sc.offset[j]
			sc.width[j] += float64(d * d)
		}
	})
	for j := range sc.width {
		sc.width[j] = math.Sqrt(sc.width[j] / n)
		if constant[j] {
			sc.width[j] = 0
		}
	}
}

func eachRow(set *Set, rows []int32, visit func(x []float32)) {
	if rows == nil {
		for i := range set.Len() {
			visit(set.Row(i))
		}
		return
	}
	for _, row := range rows {
		visit(set.Row(int(row)))
	}
}

// from is the origin of an input.
func (sc *Scaler) from(column int) float64 {
	if sc.origin == nil {
		return 0
	}
	return sc.origin[column]
}

// measure is what is scaled of a value, given its origin.
func (sc *Scaler) measure(x float32, origin float64) float64 {
	v := float64(x)
	if sc.scaling == LogMinMax {
		v += origin
		return math.Copysign(math.Log1p(math.Abs(v)), v)
	}
	return v
}

// Apply scales the numeric columns of set in place, which has no origins then. It panics if set has
// another width, other numeric columns or other origins than the set that was fitted.
func (sc *Scaler) Apply(set *Set) {
	if set.Inputs != sc.inputs || (set.Numeric == nil) != (sc.columns == nil) ||
		!slices.Equal(set.Numeric, sc.columns) || !slices.Equal(set.Origin, sc.origin) {
		panic("datasets: scaler applied to a set of other columns")
	}
	defer func() { set.Origin = nil }()
	if sc.scaling == NoScaling {
		set.dropOrigins()
		return
	}
	for i := range set.Len() {
		x := set.Row(i)
		if sc.columns == nil {
			for column := range x {
				x[column] = sc.scaled(0, x[column], 0)
			}
		}
		for j, column := range sc.columns {
			x[column] = sc.scaled(j, x[column], sc.from(column))
		}
	}
}

// dropOrigins makes X the values themselves, as far as float32 goes.
func (s *Set) dropOrigins() {
	for column, origin := range s.Origin {
		for i := range s.Len() {
			if x := &s.X[i*s.Inputs+column]; origin != 0 {
				*x = float32(float64(*x) + origin)
			}
		}
	}
}

func (sc *Scaler) scaled(j int, x float32, origin float64) float32 {
	if sc.width[j] == 0 {
		return 0
	}
	return float32((sc.measure(x, origin) - sc.offset[j]) / sc.width[j])
}
