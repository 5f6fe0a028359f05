// Package libsvm reads the sparse text format of LIBSVM (Chang & Lin, "LIBSVM: a library for
// support vector machines", ACM TIST 2(3), 2011), plain or compressed with gzip. It treats
// files as hostile: every length is bounded.
//
// A line is `label index:value …`. The label is a number that names a class; indices start at 1
// and ascend; an input that a line omits is 0. A # begins a comment.
package libsvm

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
)

const (
	// MaxRows bounds the number of samples.
	MaxRows = 10_000_000
	// MaxInputs bounds the index of an input.
	MaxInputs = 1 << 20
	// MaxClasses bounds the number of different labels, so that a file of real-valued
	// targets is not taken for one of classes.
	MaxClasses = 1000
	// MaxPrecise bounds the inputs whose values need more digits than a float32 has, and get an
	// origin if need be.
	MaxPrecise = 1 << 16
)

// Options says what a file must hold.
type Options struct {
	// Inputs is the number of inputs of a sample; 0 stands for the largest index in the file.
	Inputs int
	// Training is the name of the file that Inputs and Classes were read from; empty for none.
	Training string
	// Classes are the labels that there can be, as they are written or equal in value; nil
	// stands for those in the file, in ascending order, named as each is first written.
	Classes []string
	// Bare says that labels are not looked at, and need not be there.
	Bare bool
	// Origin is the set's; see datasets.Set.
	Origin []float64
}

// reader turns lines into samples, which stay sparse until all are there.
type reader struct {
	text    *input.Reader
	options Options
	labels  []float64           // of Classes
	classes []string            // as first written
	y       input.Chunks[int32] // by position in classes
	counts  input.Chunks[int32] // of each sample's inputs that are written
	written input.Chunks[entry]
	inputs  int // largest index so far, or Options.Inputs
	// precision is of inputs, from 0, whose values do not all survive as float32.
	precision map[int]*datasets.Precision
}

// entry is an input that is written, with its index from 0.
type entry struct {
	index int32
	value float32
}

// Read reads samples. No column is Numeric. Errors begin with name and the number of the
// line and say what is accepted there.
func Read(r io.Reader, name string, o Options) (*datasets.Set, error) {
	_, set, err := read(r, name, o)
	return set, err
}

func read(r io.Reader, name string, o Options) (*reader, *datasets.Set, error) {
	if o.Inputs < 0 || o.Inputs > MaxInputs {
		return nil, nil, fmt.Errorf(
			"%s: %d inputs are asked for; accepted are 1 to %d, or 0 for as many as there are",
			name,
			o.Inputs,
			MaxInputs,
		)
	}
	text, err := input.New(r, name, nil)
	if err != nil {
		return nil, nil, err
	}
	d := &reader{text: text, options: o, inputs: o.Inputs, precision: map[int]*datasets.Precision{}}
	for _, class := range o.Classes {
		v, err := number([]byte(class), math.MaxFloat64)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: class %w", name, err)
		}
		d.labels, d.classes = append(d.labels, v), append(d.classes, class)
	}
	err = text.Lines("text in LIBSVM's format", input.MaxLine, func(_ int, line []byte) error { return d.parse(line) })
	switch {
	case err != nil:
		return nil, nil, err
	case d.y.Len() == 0:
		return nil, nil, fmt.Errorf("%s: no samples; accepted are lines of the form label index:value …", name)
	case d.inputs == 0:
		return nil, nil, fmt.Errorf("%s: no sample has an input", name)
	}
	set := d.set()
	set.Name = name
	return d, set, nil
}

// parse takes one line.
func (d *reader) parse(line []byte) error {
	line, _, _ = bytes.Cut(line, []byte("#"))
	text, rest := field(line)
	if len(text) == 0 {
		return nil
	}
	if d.options.Bare && bytes.IndexByte(text, ':') >= 0 {
		rest = line
	}
	if d.y.Len() == MaxRows {
		return fmt.Errorf("more than %d samples", MaxRows)
	}
	class, err := d.class(text)
	if err != nil {
		return err
	}
	last, written := 0, int32(0)
	for {
		if text, rest = field(rest); len(text) == 0 {
			break
		}
		index, v, err := d.pair(text, last)
		if err != nil {
			return err
		}
		last = index
		written++
		d.written.Append(entry{int32(index - 1), v})
	}
	d.inputs = max(d.inputs, last)
	d.y.Append(class)
	d.counts.Append(written)
	return d.checkBudget()
}

// checkBudget checks that the samples can be written out.
func (d *reader) checkBudget() error {
	need := 4*int64(d.y.Len())*int64(d.inputs) + 2*d.y.Bytes() + 2*d.counts.Bytes() + d.written.Bytes()
	if need > d.text.Budget() {
		return fmt.Errorf("%d samples of %d inputs take %d bytes when every input is written out; accepted are %d "+
			"and %d for each of the %d bytes of text",
			d.y.Len(), d.inputs, need, input.Slack, input.Factor, d.text.Offset())
	}
	return nil
}

// class returns the position of a label among the classes.
func (d *reader) class(text []byte) (int32, error) {
	if d.options.Bare {
		return 0, nil
	}
	v, err := number(text, math.MaxFloat64)
	if err != nil && bytes.ContainsAny(text, ",;|") {
		return 0, fmt.Errorf("label %w; if this is a table, set: csv reads it", err)
	}
	if err != nil {
		return 0, fmt.Errorf("label %w", err)
	}
	if i := slices.Index(d.labels, v); i >= 0 {
		return int32(i), nil
	}
	if d.options.Classes != nil {
		return 0, fmt.Errorf("label %s is none of the classes %q", input.Quote(text), d.classes)
	}
	if len(d.labels) == MaxClasses {
		return 0, fmt.Errorf("label %s is one more than %d different ones; a label names a class", input.Quote(text),
			MaxClasses)
	}
	d.labels, d.classes = append(d.labels, v), append(d.classes, string(text))
	return int32(len(d.labels) - 1), nil
}

// pair reads index:value, with an index after last.
func (d *reader) pair(text []byte, last int) (index int, v float32, err error) {
	left, right, ok := bytes.Cut(text, []byte(":"))
	if !ok {
		return 0, 0, fmt.Errorf("%s is not of the form index:value", input.Quote(text))
	}
	limit := MaxInputs
	if d.options.Inputs > 0 {
		limit = d.options.Inputs
	}
	if string(left) == "qid" {
		return 0, 0, fmt.Errorf("%s is the number of a query, as for ranking; labels name classes here: remove these, "+
			"for instance with sed -E 's/ qid:[0-9]+//'", input.Quote(text))
	}
	index, err = strconv.Atoi(string(left))
	if err == nil && index > limit && index <= MaxInputs && d.options.Training != "" {
		return 0, 0, fmt.Errorf("index %d; the training file %s has none above %d; features: %d gives the samples of "+
			"both as many inputs", index, d.options.Training, limit, index)
	}
	if err != nil || index < 1 || index > limit {
		return 0, 0, fmt.Errorf("index %s; accepted is a whole number from 1 to %d", input.Quote(left), limit)
	}
	if index <= last {
		return 0, 0, fmt.Errorf("index %d after %d; indices must ascend", index, last)
	}
	x, err := number(right, math.MaxFloat32)
	if err != nil {
		return 0, 0, fmt.Errorf("value of input %d: %w", index, err)
	}
	return index, d.narrow(index-1, string(right), x), nil
}

// narrow returns a value of an input, from 0, as the difference from its origin if it has one.
func (d *reader) narrow(at int, text string, x float64) float32 {
	high, low := datasets.Exact(text, x)
	if float64(float32(high)) != high || low != 0 {
		p := d.precision[at]
		if p == nil && len(d.precision) < MaxPrecise {
			p = &datasets.Precision{}
			d.precision[at] = p
		}
		if p != nil {
			p.Add(high, low)
		}
	}
	if d.options.Origin != nil && d.options.Origin[at] != 0 {
		return float32(high - d.options.Origin[at] + low)
	}
	return float32(x)
}

// origin returns the set's that its values, which are not yet differences from any, need; nil for
// none.
func (d *reader) origin(s *datasets.Set) (origin []float64) {
	for _, at := range slices.Sorted(maps.Keys(d.precision)) {
		p := d.precision[at]
		for i := range s.Len() {
			p.Widen(s.Row(i)[at])
		}
		if o := p.Origin(); o != 0 {
			if origin == nil {
				origin = make([]float64, s.Inputs)
			}
			origin[at] = o
		}
	}
	return origin
}

// number reads a finite number of at most a magnitude.
func number(text []byte, limit float64) (float64, error) {
	v, ok := input.Decimal(text, 64)
	if !ok || math.Abs(v) > limit {
		return 0, fmt.Errorf("%s is not a number from %.3g to %.3g%s", input.Quote(text), -limit, limit,
			input.NumberHint(text))
	}
	return v, nil
}

// field cuts the first field off a line; it is empty if there is none.
func field(line []byte) (first, rest []byte) {
	line = bytes.TrimLeft(line, " \t\r\n")
	if end := bytes.IndexAny(line, " \t\r\n"); end >= 0 {
		return line[:end], line[end:]
	}
	return line, nil
}

// set writes the samples out, with the classes in ascending order unless they were given.
func (d *reader) set() *datasets.Set {
	n := d.y.Len()
	s := &datasets.Set{X: make([]float32, n*d.inputs), Y: d.y.Slice(), Inputs: d.inputs, Classes: d.classes,
		Origin: d.options.Origin}
	for at, origin := range s.Origin {
		for i := 0; origin != 0 && i < n; i++ {
			s.X[i*d.inputs+at] = float32(-origin)
		}
	}
	counts := d.counts.Slice()
	row, left := 0, counts[0]
	d.written.Each(func(part []entry) {
		for _, e := range part {
			for left == 0 {
				row++
				left = counts[row]
			}
			s.X[row*d.inputs+int(e.index)] = e.value
			left--
		}
	})
	if d.options.Classes == nil {
		d.orderClasses(s)
	}
	return s
}

func (d *reader) orderClasses(s *datasets.Set) {
	sorted := slices.Sorted(slices.Values(d.labels))
	position, names := make([]int32, len(sorted)), make([]string, len(sorted))
	for i, v := range d.labels {
		k := slices.Index(sorted, v)
		position[i], names[k] = int32(k), d.classes[i]
	}
	for i, y := range s.Y {
		s.Y[i] = position[y]
	}
	s.Classes = names
}
