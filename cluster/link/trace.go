package link

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
)

const (
	// TraceHeader is the first line of a trace file whose columns are in seconds.
	TraceHeader = "time_s,delay_s"
	// MaxTracePoints bounds the points of a trace file.
	MaxTracePoints = 1_000_000
	// MaxTraceLine bounds a line of a trace file, in bytes with its end.
	MaxTraceLine = 256
)

// Point is a measured delay.
type Point struct {
	At    time.Duration // since the run began, or since the trace did where it repeats
	Delay time.Duration
}

// Trace replays measured delays. A message takes the delay that the trace has when the message
// departs onto the edge: the delay of the last point at or before this instant, or with Interpolate
// a point on the straight line to the next one. The first point's delay holds before it, the last
// point's after it. With Repeat the trace from its first to its last point starts over when it
// ends, and the first point takes the place of the last.
type Trace struct {
	Points      []Point `key:"file"` // at least one, in strictly increasing order of At; not to be changed after use
	Interpolate bool    `plan:"interpolate" doc:"whether delays change linearly from line to line"`
	Repeat      bool    `plan:"repeat" doc:"whether the trace starts over after its end"` // needs two points
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (d Trace) Validate() error {
	if len(d.Points) == 0 {
		return field.Errorf(d, "Points", "one point at least")
	}
	if d.Repeat && len(d.Points) < 2 {
		return field.Errorf(d, "Repeat", "false for a trace of one point")
	}
	for i, p := range d.Points {
		if p.At < 0 || p.At > Horizon {
			return field.At(field.Within(d, "Points", field.Errorf(p, "At", "from 0s to %v", Horizon)), i)
		}
		if i > 0 && p.At <= d.Points[i-1].At {
			return field.At(field.Within(d, "Points", field.Errorf(p, "At", "after the previous point's (%v)",
				d.Points[i-1].At)), i)
		}
		if err := within(p, "Delay", p.Delay, 0); err != nil {
			return field.At(field.Within(d, "Points", err), i)
		}
	}
	return nil
}

// Start returns a process that draws nothing.
func (d Trace) Start(func() *rand.Rand, Process) Process { return &replay{Trace: d} }

type replay struct {
	Trace
	near int // where the last look-up ended: a hint, no state
}

func (r *replay) Next(departure time.Duration) time.Duration { return r.Present(departure) }

func (r *replay) Present(now time.Duration) time.Duration {
	points := r.Points
	first, last := points[0], points[len(points)-1]
	if now <= first.At {
		return first.Delay
	}
	if r.Repeat {
		now = first.At + (now-first.At)%(last.At-first.At)
	}
	if now >= last.At {
		return last.Delay
	}
	i := r.locate(now)
	from, to := points[i], points[i+1]
	if !r.Interpolate {
		return from.Delay
	}
	rise := float64(now-from.At) * float64(to.Delay-from.Delay) / float64(to.At-from.At)
	return from.Delay + time.Duration(math.Floor(rise+0.5))
}

// locate returns the i with Points[i].At ≤ now < Points[i+1].At. Messages follow each other
// closely, so that it is mostly the same as before, or the next.
func (r *replay) locate(now time.Duration) int {
	for i := r.near; i < min(r.near+2, len(r.Points)-1); i++ {
		if r.Points[i].At <= now && now < r.Points[i+1].At {
			r.near = i
			return i
		}
	}
	r.near = sort.Search(len(r.Points), func(i int) bool { return r.Points[i].At > now }) - 1
	return r.near
}

// ReadTrace reads the points of a trace: CSV of times and delays, times strictly increasing, the
// columns and their units named in the first line,
//
//	# half of round trips to the site in Lyon, 3 May
//	time_s,delay_ms
//	0,50
//	0.5,62.5
//
// Units are s, ms and us, in decimal numbers without blanks. Blank lines and what follows a # are
// skipped. Times are rounded to nanoseconds. At most MaxTracePoints points in twice as many lines
// of at most MaxTraceLine bytes are read. Errors begin with name and line ("delays.csv:17: …") and
// quote what was found; an error of r is wrapped.
func ReadTrace(r io.Reader, name string) ([]Point, error) {
	t := traceReader{}
	lines, err := eachLine(r, name, MaxTraceLine, 2*MaxTracePoints,
		func(text []byte, _ int) error { return t.line(text) })
	if err != nil {
		return nil, err
	}
	return t.finish(name, lines+1)
}

// traceReader reads the lines of a trace.
type traceReader struct {
	columns [2]traceColumn // named once the header is read
	points  []Point
}

// traceColumn is a column of times, as the header names it.
type traceColumn struct {
	name string
	unit float64 // in nanoseconds
}

func (t *traceReader) finish(name string, line int) ([]Point, error) {
	switch {
	case t.columns[0].name == "":
		return nil, fmt.Errorf("%s:%d: empty file, expected the line %q", name, line, TraceHeader)
	case len(t.points) == 0:
		return nil, fmt.Errorf("%s:%d: no points after the header, expected lines such as \"0.5,0.0625\"", name, line)
	}
	return t.points, nil
}

// eachLine calls take for each line of a file, of at most width bytes with its end, and returns how
// many there are. A file of more than most lines is an error. Errors begin with name and line.
func eachLine(r io.Reader, name string, width, most int, take func(text []byte, line int) error) (lines int,
	err error) {
	b := bufio.NewReaderSize(r, width)
	for line := 1; ; line++ {
		text, err := readLine(b)
		switch {
		case errors.Is(err, io.EOF):
			return line - 1, nil
		case err == nil && line > most:
			err = fmt.Errorf("more than %d lines", most)
		case err == nil:
			err = take(text, line)
		}
		if err != nil {
			return 0, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

// readLine returns the next line without its end, or io.EOF after the last one.
func readLine(r *bufio.Reader) ([]byte, error) {
	text, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("line %q… is longer than %d bytes", text[:32], r.Size())
	case err != nil && (len(text) == 0 || !errors.Is(err, io.EOF)):
		return nil, err
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

func (t *traceReader) line(text []byte) error {
	plain, _, commented := bytes.Cut(text, []byte("#"))
	if commented {
		plain = bytes.TrimRight(plain, " \t")
	}
	switch {
	case len(plain) == 0:
		return nil
	case t.columns[0].name == "":
		return t.header(string(plain))
	case len(t.points) == MaxTracePoints:
		return fmt.Errorf("more than %d points", MaxTracePoints)
	}
	p, err := t.point(plain)
	if err != nil {
		return err
	}
	if n := len(t.points); n > 0 && p.At <= t.points[n-1].At {
		return fmt.Errorf("%s in %q is not after the previous line's (%v)", t.columns[0].name, plain,
			t.points[n-1].At)
	}
	t.points = append(t.points, p)
	return nil
}

func (t *traceReader) header(text string) error {
	units := map[string]float64{"s": 1e9, "ms": 1e6, "us": 1e3}
	names := strings.Split(text, ",")
	for i, quantity := range [2]string{"time", "delay"} {
		if len(names) != 2 {
			break
		}
		unit, ok := strings.CutPrefix(names[i], quantity+"_")
		if ok && units[unit] > 0 {
			t.columns[i] = traceColumn{names[i], units[unit]}
		}
	}
	if t.columns[0].name == "" || t.columns[1].name == "" {
		return fmt.Errorf("header %q, expected %q; for seconds there may be ms or us", text, TraceHeader)
	}
	return nil
}

func (t *traceReader) point(text []byte) (p Point, err error) {
	at, delay, ok := bytes.Cut(text, []byte(","))
	if !ok || bytes.IndexByte(delay, ',') >= 0 {
		return p, fmt.Errorf("%q has %d fields, expected 2: %s,%s", text, bytes.Count(text, []byte(","))+1,
			t.columns[0].name, t.columns[1].name)
	}
	if p.At, err = t.columns[0].parse(at, Horizon); err != nil {
		return p, err
	}
	p.Delay, err = t.columns[1].parse(delay, MaxDelay)
	return p, err
}

// parse accepts decimal numbers from 0 to most; not the hexadecimal ones, infinities and NaN of
// strconv.
func (c traceColumn) parse(text []byte, most time.Duration) (time.Duration, error) {
	value, err := strconv.ParseFloat(string(text), 64)
	decimal := bytes.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '+' && r != '-' && r != 'e' && r != 'E'
	}) < 0
	if err != nil || !decimal || value < 0 || value > float64(most)/c.unit {
		return 0, fmt.Errorf("%s %q, expected a decimal number from 0 to %.0f", c.name, text, float64(most)/c.unit)
	}
	return nearest(value * c.unit), nil
}
