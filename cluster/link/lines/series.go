package lines

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxPoints bounds the points of a series.
	MaxPoints = 1_000_000
	// MaxPointLine bounds a line of a series, in bytes with its end.
	MaxPointLine = 256
)

// Column is a column of figures. The header has its name: Quantity, an underscore and a unit.
type Column struct {
	Quantity string
	Units    []Unit  // accepted, the first one in examples
	Most     float64 // in the base unit
}

// Unit is a unit that a column may be in.
type Unit struct {
	Name string
	Of   float64 // base units
}

// Times are the units of times, whose base unit is the nanosecond.
var Times = []Unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}}

// Series is the format of a file of two columns: instants, and what is so from then on.
//
//	# half of round trips to the site in Lyon, 3 May
//	time_s,delay_ms
//	0,50
//	0.5,62.5
type Series struct {
	Value   Column
	Latest  time.Duration // the last instant that is accepted
	Example string        // a line of it
}

// Read calls take for each point, in the order of the file; instants increase strictly, and are
// since the run began, as a [Clock] has them, whose origin it returns. Figures are decimal numbers
// without blanks, instants are rounded to nanoseconds. Blank lines and what
// follows a # are skipped. At most MaxPoints points in twice as many lines of at most MaxPointLine
// bytes are read.
func (s Series) Read(r io.Reader, name string, take func(at time.Duration, value float64)) (
	origin time.Duration, err error) {
	t := series{Series: s, take: take}
	lines, err := Each(r, name, MaxPointLine, 2*MaxPoints, func(text []byte, _ int) error { return t.line(text) })
	switch {
	case err != nil:
		return 0, err
	case t.header[0].Name == "":
		return 0, fmt.Errorf("%s:%d: empty file, expected the line %q", name, lines+1, s.first())
	case t.points == 0:
		return 0, fmt.Errorf("%s:%d: no points after the header, expected lines such as %q", name, lines+1, s.Example)
	}
	return t.clock.Origin, nil
}

// first is the header of a file in the first units.
func (s Series) first() string {
	return "time_s," + s.Value.Quantity + "_" + s.Value.Units[0].Name
}

// series reads the lines of a Series.
type series struct {
	Series
	take   func(at time.Duration, value float64)
	header [2]Heading // of the columns, once it is read
	points int
	clock  Clock
	latest time.Duration
}

func (t *series) line(text []byte) error {
	plain := Plain(text)
	switch {
	case len(plain) == 0:
		return nil
	case t.header[0].Name == "":
		return t.columns(string(plain))
	case t.points == MaxPoints:
		return fmt.Errorf("more than %d points", MaxPoints)
	}
	at, value, err := t.point(plain)
	if err != nil {
		return err
	}
	if t.points > 0 && at <= t.latest {
		return fmt.Errorf("%s in %q is not after the previous line's (%v)", t.header[0].Name, plain, t.latest)
	}
	t.take(at, value)
	t.points++
	t.latest = at
	return nil
}

func (t *series) columns(text string) error {
	names := strings.Split(text, ",")
	for i, c := range [2]Column{{Quantity: "time", Units: Times}, t.Value} {
		if len(names) != 2 {
			break
		}
		unit, ok := strings.CutPrefix(names[i], c.Quantity+"_")
		if k := slices.IndexFunc(c.Units, func(u Unit) bool { return u.Name == unit }); ok && k >= 0 {
			t.header[i] = Heading{names[i], c.Units[k].Of}
		}
	}
	if t.header[0].Name == "" || t.header[1].Name == "" {
		return fmt.Errorf("header %q, expected %q; %s", text, t.first(), t.others())
	}
	return nil
}

// others says which units the columns may be in instead.
func (t *series) others() string {
	names := func(units []Unit) string {
		var rest []string
		for _, u := range units[1:] {
			rest = append(rest, u.Name)
		}
		return strings.Join(rest[:len(rest)-1], ", ") + " or " + rest[len(rest)-1]
	}
	others := "for seconds there may be " + names(Times)
	if first := t.Value.Units[0].Name; first != "s" {
		others += ", for " + first + " " + names(t.Value.Units)
	}
	return others
}

func (t *series) point(text []byte) (at time.Duration, value float64, err error) {
	first, second, ok := bytes.Cut(text, []byte(","))
	if !ok || bytes.IndexByte(second, ',') >= 0 {
		return 0, 0, fmt.Errorf("%q has %d fields, expected 2: %s,%s", text, bytes.Count(text, []byte(","))+1,
			t.header[0].Name, t.header[1].Name)
	}
	at, err = t.clock.time(t.header[0], first, t.Latest)
	if err == nil {
		value, err = t.header[1].Figure(second, t.Value.Most)
	}
	return at, value, err
}

// Heading is a column as the header of a file names it.
type Heading struct {
	Name string
	Of   float64 // base units
}

// Figure reads a decimal number, not the hexadecimal ones, infinities and NaN of strconv, and
// returns it in base units, of which it accepts 0 to most.
func (h Heading) Figure(text []byte, most float64) (float64, error) {
	value, err := strconv.ParseFloat(string(text), 64)
	decimal := bytes.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && r != '.' && r != '+' && r != '-' && r != 'e' && r != 'E'
	}) < 0
	most /= h.Of
	if err != nil || !decimal || value < 0 || value > most {
		return 0, fmt.Errorf("%s %q, expected a decimal number from 0 to %.0f", h.Name, text, most)
	}
	return float64(value * h.Of), nil
}
