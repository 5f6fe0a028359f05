package record

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/record/cell"
)

// list is one of the lists of Data, and the CSV file with the rows of all runs.
type list struct {
	// name is the list's key in JSON and, with .csv behind it, the file's name.
	name string
	// columns are the columns of the file behind those that name the run.
	columns string
	// optional says that the file is written only where a run has elements.
	optional bool
	// of returns the elements of a run.
	of func(d *Data) List
	// rows writes the rows of a run.
	rows func(w *rowWriter, r *Run, d *Data)
}

func (l *list) file() string { return l.name + ".csv" }

// header names the columns of the file, the last of which are the keys of the sweep.
func (l *list) header(keys []string) string {
	if len(keys) == 0 {
		return "run,point,seed," + l.columns + "\n"
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(keys) // a builder takes everything
	w.Flush()
	return "run,point,seed," + l.columns + "," + b.String()
}

// sweptKeys are the keys of runs' points, in the order in which they first occur.
func sweptKeys(runs []Run) (keys []string) {
	for _, r := range runs {
		for _, s := range r.Point {
			if !slices.Contains(keys, s.Key) {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

// Columns returns the point's values of some keys, one a column of a CSV file; empty where the
// point lacks the key.
func (p Point) Columns(keys []string) []string {
	cells := make([]string, len(keys))
	for i, key := range keys {
		cells[i] = cell.Text(p.Value(key))
	}
	return cells
}

// filled reports whether the file is to be written for a run.
func (l *list) filled(d *Data) bool { return !l.optional || l.of(d).Len > 0 }

// Element is an element of one of the lists of Data.
type Element interface {
	// Where says which element of its list it is.
	Where() string
	// check returns an error if its figures cannot be.
	check() error
}

// List is one of the lists of Data.
type List struct {
	// Name is its key in JSON.
	Name string
	Len  int
	// At returns a pointer to element i, from 0.
	At func(i int) Element
}

// listOf gives elements the form of a List.
func listOf[T any, P interface {
	*T
	Element
}](elements []T) List {
	return List{Len: len(elements), At: func(i int) Element { return P(&elements[i]) }}
}

// rowWriter writes records that begin with what names the run, and end with its settings of the
// sweep's keys.
type rowWriter struct {
	buffer   *bytes.Buffer
	csv      *csv.Writer
	record   []string
	settings []string
}

func newRowWriter(b []byte, r *Run, keys ...string) *rowWriter {
	w := &rowWriter{buffer: bytes.NewBuffer(b), settings: r.Point.Columns(keys)}
	w.csv = csv.NewWriter(w.buffer)
	w.record = Cells(r.Number, r.Point, r.Seed)
	return w
}

// row writes a record of these values.
func (w *rowWriter) row(values ...any) {
	w.record = append(append(w.record[:3], Cells(values...)...), w.settings...)
	_ = w.csv.Write(w.record) // a buffer takes everything
}

func (w *rowWriter) bytes() []byte {
	w.csv.Flush()
	return w.buffer.Bytes()
}

// Cells writes values as the CSV files have them: numbers exactly, see Float, texts as [cell.Text]
// does, and nothing for nil or NaN.
func Cells(values ...any) []string {
	cells := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case float64:
			cells[i] = floatCell(v)
		case Float:
			cells[i] = floatCell(float64(v))
		case *float64:
			if v != nil {
				cells[i] = floatCell(*v)
			}
		default:
			cells[i] = cell.Text(fmt.Sprint(v))
		}
	}
	return cells
}

func floatCell(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return Float(v).String()
}
