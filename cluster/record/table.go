package record

import (
	"bytes"
	"encoding/csv"
	"fmt"

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

func (l *list) file() string   { return l.name + ".csv" }
func (l *list) header() string { return "run,point,seed," + l.columns + "\n" }

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

// rowWriter writes records that begin with what names the run.
type rowWriter struct {
	buffer *bytes.Buffer
	csv    *csv.Writer
	record []string
}

func newRowWriter(b []byte, r *Run) *rowWriter {
	w := &rowWriter{buffer: bytes.NewBuffer(b)}
	w.csv = csv.NewWriter(w.buffer)
	w.record = Cells(r.Number, r.Point, r.Seed)
	return w
}

// row writes a record of these values.
func (w *rowWriter) row(values ...any) {
	_ = w.csv.Write(append(w.record[:3], Cells(values...)...)) // a buffer takes everything
}

func (w *rowWriter) bytes() []byte {
	w.csv.Flush()
	return w.buffer.Bytes()
}

// Cells writes values as the CSV files have them: numbers exactly, see Float, texts as [cell.Text]
// does, and nothing for what is nil.
func Cells(values ...any) []string {
	cells := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case float64:
			cells[i] = Float(v).String()
		case *float64:
			if v != nil {
				cells[i] = Float(*v).String()
			}
		default:
			cells[i] = cell.Text(fmt.Sprint(v))
		}
	}
	return cells
}
