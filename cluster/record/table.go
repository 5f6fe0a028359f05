package record

import (
	"bytes"
	"encoding/csv"
	"strconv"
)

// table is a CSV file with the rows of all runs.
type table struct {
	name, header string
	// rows appends those of a run.
	rows func(b []byte, r *Run, d *Data) ([]byte, error)
	// any, if not nil, reports whether a run has rows: the file is written only where a run has.
	any func(d *Data) bool
}

// tables are those that Folder.Write makes.
var tables = [...]table{
	{name: "curve.csv", header: "run,point,seed,time_s,step,epoch,accuracy,loss,bytes,models,average_model,mean,all," +
		"any",
		rows: curveRows},
	{name: "links.csv", header: "run,point,seed,from,to,messages,bytes,delay_asked_s,delay_achieved_s,lost," +
		"control_messages,control_bytes", rows: linkRows},
	{name: "updates.csv", header: "run,point,seed,node,quantity,cause,low,high,count,total", rows: updateRows},
	{
		name: "models.csv", header: "run,point,seed,evaluation,node,time_s,step,accuracy,loss", rows: modelRows,
		any: func(d *Data) bool { return len(d.Models) > 0 },
	},
	{
		name: "selections.csv", header: "run,point,seed,node,neighbour,count", rows: selectionRows,
		any: func(d *Data) bool { return len(d.Selections) > 0 },
	},
	{
		name: "measured.csv", header: "run,point,seed,node,time_s,name,value", rows: measuredRows,
		any: func(d *Data) bool { return len(d.Measured) > 0 },
	},
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
	w.record = append(w.record, strconv.Itoa(r.Number), r.Point.String(), strconv.FormatUint(r.Seed, 10))
	return w
}

// row writes a record; the writer keeps its first error for bytes.
func (w *rowWriter) row(fields ...string) {
	_ = w.csv.Write(append(w.record[:3], fields...))
}

func (w *rowWriter) bytes() ([]byte, error) {
	w.csv.Flush()
	return w.buffer.Bytes(), w.csv.Error()
}

func curveRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	for _, e := range d.Curve {
		w.row(decimal(e.Time), strconv.FormatUint(e.Step, 10), decimal(e.Epoch), e.Accuracy.String(), e.Loss.String(),
			integer(e.Bytes),
			strconv.Itoa(e.Models), e.AverageModel.String(), e.Mean.String(), e.All.String(), e.Any.String())
	}
	return w.bytes()
}

func modelRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	times := map[uint64]float64{}
	for _, e := range d.Curve {
		times[e.Number] = e.Time
	}
	for _, m := range d.Models {
		w.row(strconv.FormatUint(m.Number, 10), m.Node, decimal(times[m.Number]), strconv.FormatUint(m.Step, 10),
			m.Accuracy.String(), m.Loss.String())
	}
	return w.bytes()
}

func linkRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	for _, l := range d.Links {
		w.row(l.From, l.To, integer(l.Messages), integer(l.Bytes), decimal(l.DelayAsked), decimal(l.DelayAchieved),
			integer(l.Lost),
			integer(l.Control), integer(l.ControlBytes))
	}
	return w.bytes()
}

// updateRows writes a row for each bucket that is not empty: for the quantity
// "staleness", in versions, low = high is the value; for "waiting", in seconds, the
// bucket holds low and ends before high. The total is the sum of the bucket's values.
func updateRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	for _, u := range d.Updates {
		for _, c := range u.Staleness.Counts {
			value := strconv.FormatUint(c.Value, 10)
			w.row(u.Node, "staleness", "", value, value, strconv.FormatUint(c.Count, 10),
				strconv.FormatUint(c.Value*c.Count, 10))
		}
		for _, cause := range u.Waiting {
			for _, k := range cause.Buckets {
				w.row(u.Node, "waiting", cause.Cause, decimal(k.Low), decimal(k.High), strconv.FormatUint(k.Count, 10),
					decimal(k.Total))
			}
		}
	}
	return w.bytes()
}

func selectionRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	for _, s := range d.Selections {
		for i, neighbour := range s.Neighbours {
			w.row(s.Node, neighbour, strconv.FormatUint(s.Counts[i], 10))
		}
	}
	return w.bytes()
}

func measuredRows(b []byte, r *Run, d *Data) ([]byte, error) {
	w := newRowWriter(b, r)
	for _, m := range d.Measured {
		w.row(m.Node, decimal(m.Time), m.Name, m.Value.String())
	}
	return w.bytes()
}

func decimal(v float64) string { return Float(v).String() }
func integer(v int64) string   { return strconv.FormatInt(v, 10) }
