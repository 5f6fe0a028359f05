// Package libsvm reads the sparse text format of LIBSVM (Chang & Lin, "LIBSVM: a library
// for support vector machines", ACM TIST 2(3), 2011), plain or compressed with gzip, and
// treats it as hostile: every length is bounded.
//
// A line is `label index:value …`: the label is a number that names a class, indices count
// from 1 and ascend, an input that is left out is 0. What follows a # is a comment.
package libsvm

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
)

const (
	// MaxLine bounds a line's length in bytes, line end included.
	MaxLine = 1 << 20
	// MaxBytes bounds the uncompressed text: 1 GiB.
	MaxBytes = 1 << 30
	// MaxRows bounds the number of samples.
	MaxRows = 10_000_000
	// MaxInputs bounds the index of an input.
	MaxInputs = 1 << 20
	// MaxClasses bounds the number of different labels, so that a file of real-valued
	// targets is not taken for one of classes.
	MaxClasses = 1000
	// DenseBytes is what the inputs of a set may take once they are written out, four bytes
	// each, beside DenseFactor for each byte of text.
	DenseBytes = 64 << 20
	// DenseFactor is how many bytes of inputs a byte of text may become, beside DenseBytes.
	DenseFactor = 4
)

// Options says what a file must hold.
type Options struct {
	// Inputs is the number of inputs of a sample; 0 stands for the largest index in the file.
	Inputs int
	// Classes are the labels that there can be, as they are written or equal in value; nil
	// stands for those in the file, in ascending order, named as each is first written.
	Classes []string
}

// reader turns lines into samples, which stay sparse until all are there.
type reader struct {
	name    string
	line    int
	options Options
	read    int       // bytes of text
	labels  []float64 // of Classes
	classes []string  // as first written
	y       []int32   // by position in classes
	ends    []int     // of each sample in indices
	indices []int32   // from 0
	values  []float32
	inputs  int // largest index so far, or Options.Inputs
}

// Read reads samples. No column is Numeric. Errors begin with name and the number of the
// line and say what is accepted there.
func Read(r io.Reader, name string, o Options) (*datasets.Set, error) {
	if o.Inputs < 0 || o.Inputs > MaxInputs {
		return nil, fmt.Errorf("%s: %d inputs are asked for; accepted are 1 to %d, or 0 for as many as there are", name, o.Inputs, MaxInputs)
	}
	d := &reader{name: name, options: o, inputs: o.Inputs}
	for _, class := range o.Classes {
		v, err := number([]byte(class), math.MaxFloat64)
		if err != nil {
			return nil, fmt.Errorf("%s: class %w", name, err)
		}
		d.labels, d.classes = append(d.labels, v), append(d.classes, class)
	}
	if err := d.readAll(r); err != nil {
		return nil, err
	}
	if d.inputs == 0 {
		return nil, fmt.Errorf("%s: no sample has an input", name)
	}
	return d.set(), nil
}

func (d *reader) readAll(r io.Reader) error {
	lines := bufio.NewReaderSize(r, MaxLine)
	if magic, err := lines.Peek(2); err == nil && bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(lines)
		if err != nil {
			return fmt.Errorf("%s: gzip: %w", d.name, err)
		}
		lines = bufio.NewReaderSize(z, MaxLine)
	}
	for {
		line, err := lines.ReadSlice('\n')
		d.line++
		d.read += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return d.errorf("line longer than %d bytes, beginning %s", MaxLine, quote(line))
		case err != nil && !errors.Is(err, io.EOF):
			return d.errorf("%w", err)
		case d.read > MaxBytes:
			return d.errorf("more than %d bytes of text", MaxBytes)
		}
		if e := d.parse(line); e != nil {
			return d.errorf("%w", e)
		}
		if err != nil {
			break
		}
	}
	if len(d.y) == 0 {
		return fmt.Errorf("%s: no samples", d.name)
	}
	return nil
}

func (d *reader) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %w", d.name, d.line, fmt.Errorf(format, args...))
}

// parse takes one line.
func (d *reader) parse(line []byte) error {
	line, _, _ = bytes.Cut(line, []byte("#"))
	text, rest := field(line)
	if len(text) == 0 {
		return nil
	}
	if len(d.y) == MaxRows {
		return fmt.Errorf("more than %d samples", MaxRows)
	}
	class, err := d.class(text)
	if err != nil {
		return err
	}
	last := 0
	for {
		if text, rest = field(rest); len(text) == 0 {
			break
		}
		index, v, err := d.pair(text, last)
		if err != nil {
			return err
		}
		last = index
		d.indices, d.values = append(d.indices, int32(index-1)), append(d.values, v)
	}
	d.inputs = max(d.inputs, last)
	d.y, d.ends = append(d.y, class), append(d.ends, len(d.indices))
	if dense := 4 * len(d.y) * d.inputs; dense > DenseBytes+DenseFactor*d.read {
		return fmt.Errorf("%d samples of %d inputs are %d bytes when every input is written out; accepted are %d and %d for each of the %d bytes of text",
			len(d.y), d.inputs, dense, DenseBytes, DenseFactor, d.read)
	}
	return nil
}

// class returns the position of a label among the classes.
func (d *reader) class(text []byte) (int32, error) {
	v, err := number(text, math.MaxFloat64)
	if err != nil {
		return 0, fmt.Errorf("label %w", err)
	}
	if i := slices.Index(d.labels, v); i >= 0 {
		return int32(i), nil
	}
	if d.options.Classes != nil {
		return 0, fmt.Errorf("label %s is none of the classes %q", quote(text), d.classes)
	}
	if len(d.labels) == MaxClasses {
		return 0, fmt.Errorf("label %s is one more than %d different ones; a label names a class", quote(text), MaxClasses)
	}
	d.labels, d.classes = append(d.labels, v), append(d.classes, string(text))
	return int32(len(d.labels) - 1), nil
}

// pair reads index:value, with an index after last.
func (d *reader) pair(text []byte, last int) (index int, v float32, err error) {
	left, right, ok := bytes.Cut(text, []byte(":"))
	if !ok {
		return 0, 0, fmt.Errorf("%s is not of the form index:value", quote(text))
	}
	limit := MaxInputs
	if d.options.Inputs > 0 {
		limit = d.options.Inputs
	}
	if index, err = strconv.Atoi(string(left)); err != nil || index < 1 || index > limit {
		return 0, 0, fmt.Errorf("index %s; accepted is a whole number from 1 to %d", quote(left), limit)
	}
	if index <= last {
		return 0, 0, fmt.Errorf("index %d after %d; indices must ascend", index, last)
	}
	x, err := number(right, math.MaxFloat32)
	if err != nil {
		return 0, 0, fmt.Errorf("value of input %d: %w", index, err)
	}
	return index, float32(x), nil
}

// number reads a finite number of at most a magnitude.
func number(text []byte, limit float64) (float64, error) {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(math.Abs(v) <= limit) {
		return 0, fmt.Errorf("%s is not a number from %v to %v", quote(text), -limit, limit)
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
	s := &datasets.Set{
		Name: d.name, X: make([]float32, len(d.y)*d.inputs), Y: d.y, Inputs: d.inputs, Classes: d.classes,
	}
	first := 0
	for i, end := range d.ends {
		x := s.X[i*d.inputs : (i+1)*d.inputs]
		for k := first; k < end; k++ {
			x[d.indices[k]] = d.values[k]
		}
		first = end
	}
	if d.options.Classes == nil {
		d.sortClasses(s)
	}
	return s
}

func (d *reader) sortClasses(s *datasets.Set) {
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

// quote quotes text from a file, shortened, for an error.
func quote(text []byte) string {
	const longest = 60
	if len(text) > longest {
		return strconv.Quote(string(text[:longest])) + "…"
	}
	return strconv.Quote(string(text))
}
