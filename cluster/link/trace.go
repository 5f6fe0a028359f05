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
	"time"
)

const (
	// TraceHeader is the first line of a trace file.
	TraceHeader = "time_s,delay_s"
	// MaxTracePoints bounds the points of a trace file.
	MaxTracePoints = 1_000_000
	// MaxTraceLine bounds a line of a trace file, in bytes with its end.
	MaxTraceLine = 128
)

// Point is a measured delay.
type Point struct {
	At    time.Duration // since the run began, or since the trace did where it repeats
	Delay time.Duration
}

// Trace replays measured delays. A message takes the delay that the trace has when it departs onto the edge: that of the
// last point at or before this instant, or with Interpolate a point on the straight line to the next one. Before the first
// point its delay holds, after the last point that one's; with Repeat the trace from its first to its last point begins
// again when it ends, the last point giving way to the first.
type Trace struct {
	Points      []Point // at least one, in strictly increasing order of At; not to be changed after use
	Interpolate bool
	Repeat      bool // needs two points
}

// Validate reports the first field that is not accepted, as a *FieldError.
func (d Trace) Validate() error {
	if len(d.Points) == 0 {
		return fieldError("Points", "empty", "one point at least")
	}
	if d.Repeat && len(d.Points) < 2 {
		return fieldError("Repeat", d.Repeat, "false for a trace of one point")
	}
	for i, p := range d.Points {
		if p.At < 0 || p.At > Horizon {
			return fieldError(fmt.Sprintf("Points[%d].At", i), p.At, "from 0s to %v", Horizon)
		}
		if i > 0 && p.At <= d.Points[i-1].At {
			return fieldError(fmt.Sprintf("Points[%d].At", i), p.At, "after that of the point before (%v)", d.Points[i-1].At)
		}
		if err := validateDelay(fmt.Sprintf("Points[%d].Delay", i), p.Delay, 0); err != nil {
			return err
		}
	}
	return nil
}

// Start returns a process that draws nothing.
func (d Trace) Start(func() *rand.Rand, Process) Process { return &replay{Trace: d} }

type replay struct {
	Stateless
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

// locate returns the i with Points[i].At ≤ now < Points[i+1].At. Messages follow each other closely, so that it is
// mostly the same as before, or the next.
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

// ReadTrace reads the points of a trace: CSV in decimal seconds, the line TraceHeader first, times strictly increasing,
//
//	time_s,delay_s
//	0,0.050
//	0.5,0.0625
//
// Times are rounded to nanoseconds. At most MaxTracePoints lines of at most MaxTraceLine bytes are read. Errors begin
// with name and line ("delays.csv:17: …") and quote what was found; an error of r is wrapped.
func ReadTrace(r io.Reader, name string) ([]Point, error) {
	lines := bufio.NewReaderSize(r, MaxTraceLine)
	var points []Point
	for line := 1; ; line++ {
		text, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return finish(points, name, line)
		}
		if err == nil {
			points, err = appendLine(points, text, line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, line, err)
		}
	}
}

func finish(points []Point, name string, line int) ([]Point, error) {
	switch {
	case line == 1:
		return nil, fmt.Errorf("%s:1: empty file, expected the line %q", name, TraceHeader)
	case len(points) == 0:
		return nil, fmt.Errorf("%s:%d: no points after the header, expected lines such as \"0.5,0.0625\"", name, line)
	}
	return points, nil
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

func appendLine(points []Point, text []byte, line int) ([]Point, error) {
	if line == 1 {
		if string(text) != TraceHeader {
			return nil, fmt.Errorf("header %q, expected %q", text, TraceHeader)
		}
		return points, nil
	}
	if len(points) == MaxTracePoints {
		return nil, fmt.Errorf("more than %d points", MaxTracePoints)
	}
	p, err := parsePoint(text)
	if err != nil {
		return nil, err
	}
	if n := len(points); n > 0 && p.At <= points[n-1].At {
		return nil, fmt.Errorf("time_s in %q is not after that of the line before (%v)", text, points[n-1].At)
	}
	return append(points, p), nil
}

func parsePoint(text []byte) (Point, error) {
	at, delay, ok := bytes.Cut(text, []byte(","))
	if !ok || bytes.IndexByte(delay, ',') >= 0 {
		return Point{}, fmt.Errorf("%q has %d fields, expected 2: %s", text, bytes.Count(text, []byte(","))+1, TraceHeader)
	}
	var p Point
	var err error
	if p.At, err = parseSeconds("time_s", at, Horizon); err != nil {
		return Point{}, err
	}
	if p.Delay, err = parseSeconds("delay_s", delay, MaxDelay); err != nil {
		return Point{}, err
	}
	return p, nil
}

// parseSeconds accepts decimal numbers from 0 to most; not the hexadecimal ones, infinities and NaN of strconv.
func parseSeconds(column string, text []byte, most time.Duration) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(string(text), 64)
	decimal := bytes.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '+' && r != '-' && r != 'e' && r != 'E'
	}) < 0
	if err != nil || !decimal || seconds < 0 || seconds > most.Seconds() {
		return 0, fmt.Errorf("%s %q, expected decimal seconds from 0 to %.0f", column, text, most.Seconds())
	}
	return nearest(seconds * 1e9), nil
}
