package plan

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Available says when a node is there: on and off in turns, or as a device of a trace was. It joins
// and leaves in order, and knows nothing when it is back. Package faults writes this out as a part
// of the schedule.
type Available struct {
	// On and Off are how long it is there, and then away, in turns.
	On  unit.Duration `plan:"on,omitzero" range:">0s" either:"on|file" with:"off" doc:"how long the node is there at a time"`
	Off unit.Duration `plan:"off,omitzero" range:">0s" with:"on" doc:"how long it is away at a time"`
	// First is when it comes, away until then. Nil has the seed draw where in a turn the run
	// begins.
	First *unit.Duration `plan:"first,omitzero" with:"on" doc:"when it comes for the first time; default: the run begins at any point of its turns, which the seed draws for each node"`
	// File is a trace, and Devices is what it says. The i-th of the plan's nodes that name the file
	// is as its i-th device, and those that are left as the first ones again.
	File    string `plan:"file,omitzero" either:"on|file" doc:"a CSV file beside the plan: the header device,on_s,off_s, and then a line for each time that a device is there; the nodes that name the file take its devices in turn, in the order of both"`
	Devices []Device
	// Repeat is after how long the trace begins again; 0 is never.
	Repeat unit.Duration `plan:"repeat,omitzero" range:">0s" with:"file" doc:"after how long the trace begins again, not before its end; default: it does not, and who is away at its end stays away"`
	// Source is the syntax that this was read from, for errors.
	Source *syntax.Node `plan:",node"`
}

// Device is when a device of a trace is there, one time after the other.
type Device []Attendance

// Attendance is a time from On until before Off.
type Attendance struct{ On, Off unit.Duration }

// turn is how long it takes until all is again as it was; 0 if never.
func (a *Available) turn() unit.Duration {
	if a.File != "" {
		return a.Repeat
	}
	return a.On + a.Off
}

// Times are when a node is there, as a device of the trace if there is one, up to the first time
// that begins at or after an end. Phase is where in the turns the run begins, if First is nil.
func (a *Available) Times(device int, phase, end unit.Duration) (times []Attendance) {
	turn, of, from := a.turn(), Device{{0, a.On}}, unit.Duration(0)
	switch {
	case a.File != "":
		of = a.Devices[device%len(a.Devices)]
	case a.First != nil:
		from = *a.First
	default:
		from = -phase
	}
	for ; ; from += turn {
		for _, t := range of {
			t = Attendance{max(from+t.On, 0), from + t.Off}
			last := len(times) - 1
			switch {
			case t.Off <= 0:
				continue
			case last >= 0 && times[last].Off == t.On:
				times[last].Off = t.Off
			default:
				times = append(times, t)
			}
			if t.On >= end {
				return times
			}
		}
		if turn == 0 {
			return times
		}
	}
}

// Phases is how many nanoseconds the phase of a node is drawn from; 0 if none is.
func (a *Available) Phases() int64 {
	if a.File != "" || a.First != nil {
		return 0
	}
	return int64(a.turn())
}

// Traced calls read for the availability of each entry of the plan's nodes that names a trace, to
// fill in its Devices, and checks that what comes of all nodes is not too much.
func (p *Plan) Traced(read func(a *Available) error) error {
	strikes, before := 0.0, (*Available)(nil)
	for i := range p.Nodes {
		a := p.Nodes[i].Available
		if a == nil {
			continue
		}
		if a != before && a.File != "" {
			if err := read(a); err != nil {
				return err
			}
			if err := a.checkRepeat(); err != nil {
				return err
			}
		}
		before = a
		if strikes += a.changes(p.Stop.Time); strikes > MaxNodeEvents {
			return syntax.Errorf(a.Source, "up to here nodes come and go more than %d times until %s; give a shorter "+
				"stop.time, or longer times", MaxNodeEvents, p.Stop.Time)
		}
	}
	return nil
}

// checkRepeat returns an error if the trace begins again before it has ended.
func (a *Available) checkRepeat() error {
	for _, d := range a.Devices {
		if off := d[len(d)-1].Off; a.Repeat > 0 && a.Repeat < off {
			return syntax.Errorf(a.Source.At("repeat"), "the trace goes on until %s; accepted is that or more", off)
		}
	}
	return nil
}

// changes is about how often a node comes and goes until an instant, at most.
func (a *Available) changes(end unit.Duration) float64 {
	most := 1
	for _, d := range a.Devices {
		most = max(most, len(d))
	}
	turns := 1.0
	if turn := a.turn(); turn > 0 {
		turns += float64(end) / float64(turn)
	}
	return 2 * float64(most) * turns
}

// traceHeader is the first line of a trace.
const traceHeader = "device,on_s,off_s"

// ReadDevices reads a trace of devices:
//
//	# two phones, of which the second is charged twice
//	device,on_s,off_s
//	a,0,28800
//	b,3600,7200
//	b,10800,14400
//
// The lines of a device follow each other in the order of time, with others between them or not; a
// time may begin when the one before ends. Blank lines and what follows a # are skipped. Errors
// begin with name and line and quote what was found; an error of r is wrapped. Times of another clock
// are since the first time at which a device is there, the origin.
func ReadDevices(r io.Reader, name string) (devices []Device, origin time.Duration, err error) {
	t := trace{positions: map[string]int{}}
	n, err := lines.Each(r, name, lines.MaxPointLine, lines.MaxPoints, func(text []byte, _ int) error {
		return t.line(lines.Plain(text))
	})
	switch {
	case err != nil:
		return nil, 0, err
	case len(t.devices) == 0:
		return nil, 0, fmt.Errorf("%s:%d: no devices, expected the line %q and then lines such as \"a,0,28800\"", name,
			n+1, traceHeader)
	}
	return t.devices, t.origin(), t.shift(t.origin(), name)
}

// trace reads the lines of a trace.
type trace struct {
	begun     bool // the header is read
	positions map[string]int
	devices   []Device
}

// origin is the first time in the file if it is of another clock, else 0.
func (t *trace) origin() time.Duration {
	first := t.devices[0][0].On
	for _, d := range t.devices {
		first = min(first, d[0].On)
	}
	clock := lines.Clock{}
	clock.Since(time.Duration(first))
	return clock.Origin
}

// shift counts all times from an origin.
func (t *trace) shift(origin time.Duration, name string) error {
	for _, d := range t.devices {
		for i := range d {
			d[i].On, d[i].Off = d[i].On-unit.Duration(origin), d[i].Off-unit.Duration(origin)
		}
		if off := d[len(d)-1].Off; off > lastInstant {
			return fmt.Errorf("%s: a device is there until %s after the first time in the file; accepted is up to %s",
				name, off, lastInstant)
		}
	}
	return nil
}

func (t *trace) line(text []byte) error {
	fields := bytes.Split(text, []byte(","))
	switch {
	case len(text) == 0:
		return nil
	case !t.begun && string(text) != traceHeader:
		return fmt.Errorf("%q, expected the line %q", text, traceHeader)
	case !t.begun:
		t.begun = true
		return nil
	case len(fields) != 3 || len(fields[0]) == 0:
		return fmt.Errorf("%q, expected a device and two times, such as \"a,0,28800\"", text)
	}
	on, err := (lines.Heading{Name: "on_s", Of: 1e9}).Figure(fields[1], lines.LatestClock)
	if err != nil {
		return err
	}
	off, err := (lines.Heading{Name: "off_s", Of: 1e9}).Figure(fields[2], lines.LatestClock)
	if err != nil {
		return err
	}
	at, known := t.positions[string(fields[0])]
	if !known {
		at = len(t.devices)
		t.positions[string(fields[0])], t.devices = at, append(t.devices, nil)
	}
	d, there := t.devices[at], Attendance{unit.Duration(on), unit.Duration(off)}
	switch {
	case there.Off <= there.On:
		return fmt.Errorf("%q ends before it has begun", text)
	case len(d) > 0 && there.On < d[len(d)-1].Off:
		return fmt.Errorf("%q begins before the time of %s that stands before it is over", text, fields[0])
	}
	t.devices[at] = append(d, there)
	return nil
}

// available checks that nodes that come and go by themselves have an end, and nothing else happens
// to them.
func (c *check) available(p *Plan) {
	goes := map[string]*Available{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Available == nil {
			continue
		}
		goes[n.Name], goes[n.Group] = n.Available, n.Available
		if i > 0 && p.Nodes[i-1].Available == n.Available {
			continue // of the same group
		}
		c.turns(p, n.Available)
	}
	delete(goes, "")
	for _, change := range p.Schedule {
		if a := goes[change.Node]; a != nil {
			c.errorf(change.Source.At("node"), "%s comes and goes as line %d says (available); nothing else can "+
				"happen to it", change.Node, a.Source.Pos.Line)
		}
	}
}

func (c *check) turns(p *Plan, a *Available) {
	switch {
	case a.On == 0 && a.File == "":
		c.errorf(a.Source, "when the node is there is missing; give {on: 8h, off: 16h} or {file: trace.csv}")
	case p.Stop.Time == 0:
		c.errorf(a.Source, "nodes that come and go need an end, or a run would never be without one to come; give "+
			"stop: {time: 48h}")
	case p.Stop.Time > lastInstant:
		c.errorf(a.Source, "times up to %s would come later than a run can be; give a stop.time of up to %s",
			p.Stop.Time, lastInstant)
	case a.First != nil:
		c.span(a.Source, *a.First, span{key: "on", length: a.On}, span{key: "off", length: a.Off})
	default:
		c.span(a.Source, p.Stop.Time, span{key: "on", length: a.On}, span{key: "off", length: a.Off},
			span{key: "repeat", length: a.Repeat})
	}
}
