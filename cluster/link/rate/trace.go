package rate

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/field"
)

const (
	// MaxRate bounds what a trace says, in bytes a second.
	MaxRate = 1e15
	// Latest is the last instant of a trace.
	Latest = 365 * 24 * time.Hour
	// Packet is how many bytes can leave at each instant of a Mahimahi trace.
	Packet = 1500
	// MaxOpportunities bounds the instants of a Mahimahi trace.
	MaxOpportunities = 1 << 22
)

// Point is a measured rate.
type Point struct {
	At   time.Duration // since the run began, or since the trace did where it repeats
	Rate float64       // from then on, in bytes a second
}

// Trace replays measured rates: each point's holds until the next one's, the first point's before
// it too, the last point's for ever. With Repeat the trace from its first to its last point starts
// over when it ends, and the first point takes the place of the last.
type Trace struct {
	Points []Point `key:"file"` // at least one, in strictly increasing order of At; not to be changed after use
	Repeat bool    `plan:"repeat" doc:"whether the trace starts over after its end"`
	// Anywhere lets each link begin at an instant of its own, drawn once.
	Anywhere bool `plan:"anywhere" doc:"whether each link begins at an instant of the trace that is drawn, rather than all at its beginning; needs repeat"`

	before []float64 // bytes from the first point to each
}

// NewTrace returns a trace. Its points are read when it is used.
func NewTrace(t Trace) *Trace {
	t.before = make([]float64, len(t.Points))
	for i := 1; i < len(t.Points); i++ {
		p := t.Points[i-1]
		t.before[i] = t.before[i-1] + bytes(p.Rate, t.Points[i].At-p.At)
	}
	return &t
}

// Validate reports the first field that is not accepted, as a *field.Error.
func (t *Trace) Validate() error {
	n := len(t.Points)
	switch {
	case n == 0:
		return field.Errorf(*t, "Points", "one point at least")
	case t.Repeat && n < 2:
		return field.Errorf(*t, "Repeat", "false for a trace of one point")
	case t.Anywhere && !t.Repeat:
		return field.Errorf(*t, "Anywhere", "false for a trace that does not repeat")
	}
	for i, p := range t.Points {
		if i > 0 && p.At <= t.Points[i-1].At || p.At < 0 || p.At > Latest || !(p.Rate >= 0 && p.Rate <= MaxRate) {
			return field.Errorf(*t, "Points", "instants that increase from 0s to %v and rates from 0 to %g, not "+
				"point %d: %v, %g", Latest, float64(MaxRate), i+1, p.At, p.Rate)
		}
	}
	if silent := func(p Point) bool { return p.Rate == 0 }; t.Repeat && t.before[n-1] == 0 ||
		!slices.ContainsFunc(t.Points, func(p Point) bool { return !silent(p) }) {
		return field.Errorf(*t, "Points", "a trace in which something passes")
	}
	return nil
}

// Mean is that of the trace once through; of one point its rate.
func (t *Trace) Mean() float64 {
	last := len(t.Points) - 1
	if last == 0 {
		return t.Points[0].Rate
	}
	return t.before[last] / (t.Points[last].At - t.Points[0].At).Seconds()
}

// Start returns a process that draws one number if links begin anywhere.
func (t *Trace) Start(draws Draws) Process {
	if !t.Anywhere {
		return &replay{Trace: t}
	}
	first, last := t.Points[0].At, t.Points[len(t.Points)-1].At
	return begin(&replay{Trace: t}, first, last-first, draws)
}

// replay is a Trace at work.
type replay struct {
	*Trace
	near int // where the last look-up ended: a hint, no state
}

// Carried looks up the point before an instant.
func (r *replay) Carried(at time.Duration) float64 {
	first, last := r.Points[0], len(r.Points)-1
	if at <= first.At {
		return bytes(first.Rate, at)
	}
	total := bytes(first.Rate, first.At)
	if r.Repeat {
		period := r.Points[last].At - first.At
		total += float64((at-first.At)/period) * r.before[last]
		at = first.At + (at-first.At)%period
	}
	i := r.point(at)
	return total + r.before[i] + bytes(r.Points[i].Rate, at-r.Points[i].At)
}

// Passed looks up the point before which as many bytes have not passed yet.
func (r *replay) Passed(b float64) time.Duration {
	first, last := r.Points[0], len(r.Points)-1
	total := bytes(first.Rate, first.At)
	if b <= total {
		if b <= 0 {
			return 0
		}
		return after(0, b, first.Rate)
	}
	b -= total
	past := time.Duration(0)
	if r.Repeat {
		rounds := max(math.Ceil(b/r.before[last])-1, 0)
		period := r.Points[last].At - first.At
		if !(rounds < float64(Never-Latest)/float64(period)-1) {
			return Never
		}
		b = min(max(b-float64(rounds*r.before[last]), 0), r.before[last])
		past = time.Duration(rounds) * period
	}
	i := r.pointBefore(b)
	if r.Points[i].Rate == 0 {
		return Never // after the last point
	}
	at := after(r.Points[i].At, b-r.before[i], r.Points[i].Rate)
	if at > Never-past {
		return Never
	}
	return past + at
}

// Rate looks up the point before an instant.
func (r *replay) Rate(at time.Duration) (bytes float64, until time.Duration) {
	first, last := r.Points[0].At, len(r.Points)-1
	past := time.Duration(0)
	if period := r.Points[last].At - first; r.Repeat && at >= first {
		past = (at - first) / period * period
	}
	i := 0
	if at >= first {
		i = r.point(at - past)
	}
	if i == last {
		return r.Points[i].Rate, Never
	}
	return r.Points[i].Rate, past + r.Points[i+1].At
}

// point returns the last point at or before an instant. Messages follow each other closely, so that
// it is mostly the same as before, or the next.
func (r *replay) point(at time.Duration) int {
	n := len(r.Points)
	for i := r.near; i < min(r.near+2, n); i++ {
		if r.Points[i].At <= at && (i+1 == n || at < r.Points[i+1].At) {
			r.near = i
			return i
		}
	}
	r.near = sort.Search(n, func(i int) bool { return r.Points[i].At > at }) - 1
	return r.near
}

// pointBefore returns the last point by which fewer bytes have passed, or the first.
func (r *replay) pointBefore(b float64) int {
	n := len(r.Points)
	for i := r.near; i < min(r.near+2, n); i++ {
		if (i == 0 || r.before[i] < b) && (i+1 == n || r.before[i+1] >= b) {
			r.near = i
			return i
		}
	}
	r.near = max(sort.SearchFloat64s(r.before, b)-1, 0)
	return r.near
}

// ReadTrace reads the points of a trace, a [lines.Series] of rates in bits:
//
//	time_s,rate_mbps
//	0,12.5
//	1,0
//	4.2,9
//
// Units of rates are bps, kbps, mbps and gbps, and of times s, ms and us. Errors begin with name
// and line ("cell.csv:17: …"); an error of r is wrapped. Times of another clock are
// since the first one, the origin.
func ReadTrace(r io.Reader, name string) (points []Point, origin time.Duration, err error) {
	units := []lines.Unit{{Name: "mbps", Of: 125e3}, {Name: "bps", Of: 0.125}, {Name: "kbps", Of: 125},
		{Name: "gbps", Of: 125e6}}
	format := lines.Series{
		Value: lines.Column{Quantity: "rate", Units: units, Most: MaxRate}, Latest: Latest, Example: "0.5,12.5",
	}
	origin, err = format.Read(r, name, func(at time.Duration, rate float64) {
		points = append(points, Point{At: at, Rate: rate})
	})
	if err != nil {
		return nil, 0, err
	}
	return points, origin, nil
}

// Opportunities replays a trace of Mahimahi (Netravali et al. 2015, "Mahimahi: accurate
// record-and-replay for HTTP", section 3): instants at each of which a packet of 1,500 bytes can
// leave, or parts of several messages. What is not used then is lost. After the last instant the
// trace starts over.
type Opportunities struct {
	At []uint32 // milliseconds, ascending, the last one above 0; several may be the same
	// Anywhere lets each link begin at an instant of its own, drawn once.
	Anywhere bool
}

// Validate reports the first field that is not accepted.
func (o *Opportunities) Validate() error {
	n := len(o.At)
	if n == 0 || n > MaxOpportunities || o.At[n-1] == 0 || !slices.IsSorted(o.At) {
		return errors.New("a trace of Mahimahi has 1 to " + strconv.Itoa(MaxOpportunities) +
			" instants in milliseconds, ascending, the last one above 0")
	}
	return nil
}

// Mean is that of the trace once through.
func (o *Opportunities) Mean() float64 {
	n := len(o.At)
	return Packet * 1e3 * float64(n) / float64(o.At[n-1])
}

// Start returns a process that draws one number if links begin anywhere.
func (o *Opportunities) Start(draws Draws) Process {
	if !o.Anywhere {
		return (*packets)(o)
	}
	return begin((*packets)(o), 0, o.period(), draws)
}

func (o *Opportunities) period() time.Duration {
	return time.Duration(o.At[len(o.At)-1]) * time.Millisecond
}

// packets are Opportunities at work.
type packets Opportunities

// Carried counts the packets that could have left before an instant.
func (p *packets) Carried(at time.Duration) float64 {
	if at <= 0 {
		return 0
	}
	period := (*Opportunities)(p).period()
	rounds := (at - 1) / period
	rest := at - rounds*period // of (0, period]
	i := sort.Search(len(p.At), func(i int) bool { return time.Duration(p.At[i])*time.Millisecond >= rest })
	return Packet * (float64(rounds)*float64(len(p.At)) + float64(i))
}

// Rate counts the packets at the end of the millisecond of an instant. Those at 0 are at the end of
// the round before.
func (p *packets) Rate(at time.Duration) (bytes float64, until time.Duration) {
	period := (*Opportunities)(p).period()
	past := at / period * period
	slot := uint32((at-past)/time.Millisecond) + 1
	from := sort.Search(len(p.At), func(i int) bool { return p.At[i] >= slot })
	if next := p.At[from]; next > slot {
		return 0, past + time.Duration(next-1)*time.Millisecond
	}
	to := sort.Search(len(p.At), func(i int) bool { return p.At[i] > slot })
	if to == len(p.At) {
		to += sort.Search(len(p.At), func(i int) bool { return p.At[i] > 0 })
	}
	return Packet * 1e3 * float64(to-from), past + time.Duration(slot)*time.Millisecond
}

// Passed is the instant of the packet with the last of the bytes.
func (p *packets) Passed(b float64) time.Duration {
	if b <= 0 {
		return 0
	}
	number, n := math.Ceil(b/Packet)-1, float64(len(p.At))
	rounds := math.Floor(number / n)
	period := (*Opportunities)(p).period()
	if !(rounds < float64(Never)/float64(period)-2) {
		return Never
	}
	i := min(int(number-float64(rounds*n)), len(p.At)-1)
	return time.Duration(rounds)*period + time.Duration(p.At[i])*time.Millisecond
}

// ReadOpportunities reads a trace in the format of Mahimahi: a line for each instant at which a
// packet can leave, a whole number of milliseconds. Errors begin with name and line
// ("lte.down:17: …"); an error of r is wrapped. Times of another clock are since the first one, the
// origin.
func ReadOpportunities(r io.Reader, name string) (at []uint32, origin time.Duration, err error) {
	var clock lines.Clock
	count, err := lines.Each(r, name, lines.MaxPointLine, MaxOpportunities, func(text []byte, _ int) error {
		plain := string(lines.Plain(text))
		if plain == "" {
			return nil
		}
		given, err := strconv.ParseUint(plain, 10, 42)
		ms := clock.Since(time.Duration(given) * time.Millisecond).Milliseconds()
		if err != nil || ms < 0 || ms > Latest.Milliseconds() {
			return fmt.Errorf("%q, expected a whole number of milliseconds up to %d", plain, Latest.Milliseconds())
		}
		if n := len(at); n > 0 && ms < int64(at[n-1]) {
			return fmt.Errorf("%d ms is before the line above (%d ms)", ms, at[n-1])
		}
		at = append(at, uint32(ms))
		return nil
	})
	if err == nil && (len(at) == 0 || at[len(at)-1] == 0) {
		err = fmt.Errorf("%s:%d: no instant after 0, expected lines with a number of milliseconds each", name, count+1)
	}
	if err != nil {
		return nil, 0, err
	}
	return at, clock.Origin, nil
}

// begun is a process that begins at an instant of another one.
type begun struct {
	Process
	at    time.Duration
	bytes float64
}

// begin lets a process that repeats from first on begin somewhere in its period.
func begin(p Process, first, period time.Duration, draws Draws) Process {
	at := first + time.Duration(float64(period)*draws.At(0).Float64())
	return &begun{Process: p, at: at, bytes: p.Carried(at)}
}

func (b *begun) Carried(at time.Duration) float64 { return b.Process.Carried(at+b.at) - b.bytes }

func (b *begun) Passed(bytes float64) time.Duration {
	at := b.Process.Passed(bytes + b.bytes)
	if at == Never {
		return Never
	}
	return max(at-b.at, 0)
}

func (b *begun) Rate(at time.Duration) (bytes float64, until time.Duration) {
	bytes, until = b.Process.Rate(at + b.at)
	if until < Never {
		until -= b.at
	}
	return bytes, until
}
