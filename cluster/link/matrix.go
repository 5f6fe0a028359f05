package link

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/link/lines"
)

const (
	// MaxSites bounds the sites of a Matrix.
	MaxSites = 2000
	// MaxMatrixLine bounds a line of a matrix's file, in bytes with its end.
	MaxMatrixLine = 1 << 16
)

// Matrix is how far sites are from each other.
type Matrix struct {
	// Sites are the names of the sites.
	Sites []string

	delays []time.Duration // one way, by source, then destination
}

// Delay is the time that a message takes from one site to another, or within one, by their places
// in Sites.
func (m *Matrix) Delay(from, to int) time.Duration { return m.delays[from*len(m.Sites)+to] }

// unmeasured is a delay that a file leaves out.
const unmeasured = -1

// matrixUnits are the units that a header may name, in nanoseconds of one way.
var matrixUnits = map[string]float64{
	"delay_s": 1e9, "delay_ms": 1e6, "delay_us": 1e3,
	"round_trip_s": 0.5e9, "round_trip_ms": 0.5e6, "round_trip_us": 0.5e3,
}

// ReadMatrix reads a matrix: CSV with the unit and the sites in the first line, and a line for each
// site from which messages go, in any order,
//
//	# pings of 3 May
//	round_trip_ms,lyon,rome,oslo
//	lyon,,24,41
//	rome,24,,58.5
//	oslo,41,58.5,0.4
//
// The unit is delay_s, delay_ms or delay_us, one way, or round_trip_s, round_trip_ms or
// round_trip_us, of which one way is half. A field that is empty is as in the other direction;
// within a site it is 0. Blank lines and what follows a # are skipped. Errors begin with name and
// line ("sites.csv:3: …"); an error of r is wrapped.
func ReadMatrix(r io.Reader, name string) (*Matrix, error) {
	t := matrixReader{}
	count, err := lines.Each(r, name, MaxMatrixLine, 2*MaxSites, func(text []byte, _ int) error {
		plain, _, _ := strings.Cut(string(text), "#")
		if plain = strings.TrimSpace(plain); plain == "" {
			return nil
		}
		return t.line(strings.Split(plain, ","))
	})
	if err == nil {
		if err = t.finish(); err != nil {
			err = fmt.Errorf("%s:%d: %w", name, count+1, err)
		}
	}
	if err != nil {
		return nil, err
	}
	return &t.Matrix, nil
}

// matrixReader reads the lines of a matrix.
type matrixReader struct {
	Matrix
	unit lines.Heading // named once the header is read
	read []bool        // by site, whether its line was
}

func (t *matrixReader) line(fields []string) error {
	if t.unit.Name == "" {
		return t.header(fields)
	}
	from := slices.Index(t.Sites, fields[0])
	switch {
	case from < 0:
		return fmt.Errorf("%q is no site of the first line", fields[0])
	case t.read[from]:
		return fmt.Errorf("a second line of %s", fields[0])
	case len(fields) != len(t.Sites)+1:
		return fmt.Errorf("%d fields, expected %d: the site and a delay to each of the %d", len(fields),
			len(t.Sites)+1, len(t.Sites))
	}
	t.read[from] = true
	for to, text := range fields[1:] {
		if text == "" {
			continue
		}
		delay, err := t.unit.Figure([]byte(text), float64(MaxDelay))
		if err != nil {
			return fmt.Errorf("to %s: %w", t.Sites[to], err)
		}
		t.delays[from*len(t.Sites)+to] = nearest(delay)
	}
	return nil
}

func (t *matrixReader) header(fields []string) error {
	unit, sites := matrixUnits[fields[0]], fields[1:]
	switch {
	case unit == 0:
		return fmt.Errorf("the first line begins with %q, expected a unit such as round_trip_ms or delay_ms", fields[0])
	case len(sites) == 0 || len(sites) > MaxSites:
		return fmt.Errorf("%d sites, expected 1 to %d", len(sites), MaxSites)
	}
	for i, site := range sites {
		if site == "" || slices.Contains(sites[:i], site) {
			return fmt.Errorf("site %d is %q, expected a name that differs from the others", i+1, site)
		}
	}
	t.unit, t.Sites = lines.Heading{Name: fields[0], Of: unit}, slices.Clone(sites)
	t.delays = slices.Repeat([]time.Duration{unmeasured}, len(sites)*len(sites))
	t.read = make([]bool, len(sites))
	return nil
}

// finish fills in what is as in the other direction.
func (t *matrixReader) finish() error {
	if t.unit.Name == "" {
		return fmt.Errorf("empty file, expected a first line such as %q", "round_trip_ms,lyon,rome")
	}
	n := len(t.Sites)
	for from := range n {
		if !t.read[from] {
			return fmt.Errorf("no line of %s", t.Sites[from])
		}
		if t.delays[from*n+from] == unmeasured {
			t.delays[from*n+from] = 0
		}
		for to := range from {
			there, back := &t.delays[from*n+to], &t.delays[to*n+from]
			if *there == unmeasured && *back == unmeasured {
				return fmt.Errorf("no delay between %s and %s in either direction", t.Sites[to], t.Sites[from])
			}
			if *there == unmeasured {
				*there = *back
			}
			if *back == unmeasured {
				*back = *there
			}
		}
	}
	return nil
}
