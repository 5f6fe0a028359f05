package unit

import (
	"regexp"
	"strings"
)

// Patterns of units as JSON Schema has them. They accept what the parsers of this package do, but
// for lengths and the largest numbers.
const (
	numberPattern   = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	timePattern     = `(ns|us|µs|μs|ms|s|m|h)`
	durationPattern = `[0-9]+\.?[0-9]*( ?` + timePattern + `|` + timePattern + `(` + numberPattern + timePattern + `)+)`
)

// Form is how a quantity is written, for schemas.
type Form struct {
	// Name is what the quantity is called in schemas, such as duration.
	Name, Description string
	// Pattern is a regular expression of the whole text.
	Pattern  string
	Examples []string
	// Share says that a plain number from 0 to 1 is accepted beside the text.
	Share bool
}

// Forms returns the forms of all quantities.
func Forms() []Form {
	interval := `([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? +epochs?|[0-9]+ +(steps?|rounds?)|` + durationPattern
	percent := `\+?0*(100(\.0*)?|[0-9]{1,2}(\.[0-9]*)?|\.[0-9]+) ?%`
	return []Form{
		{
			Name: Duration(0).Unit(), Description: "A duration with its unit: ns, us, ms, s, m or h.",
			Pattern: durationPattern, Examples: []string{"5ms", "1.5s", "1m30s"},
		},
		{
			Name: DurationRange{}.Unit(), Description: "A range of durations, or one.",
			Pattern: durationPattern + `( *\.\. *` + durationPattern + `)?`, Examples: []string{"1s..5s", "2s"},
		},
		{
			Name: Interval{}.Unit(), Description: "A distance between two events: epochs, steps, rounds or a duration.",
			Pattern: interval, Examples: []string{"0.05 epochs", "10 steps", "20 rounds", "2s"},
		},
		{
			Name: Fraction(0).Unit(), Description: "A share from 0 to 1: 94% or 0.94.",
			Pattern: percent, Examples: []string{"94%"}, Share: true,
		},
		{
			Name: ByteRate(0).Unit(), Description: "A number with a unit of bits or bytes a second, or unlimited.",
			Pattern: unlimited + "|" + byteRates.pattern(), Examples: []string{"10 Mbit/s", "100 KiB/s"},
		},
		{
			Name: Throughput(0).Unit(), Description: "A number with a unit of bits or bytes a second.",
			Pattern: throughputs.pattern(), Examples: []string{"10 Mbit/s", "0 Mbit/s"},
		},
		{
			Name: Speed(0).Unit(), Description: "Floating-point operations per second.",
			Pattern: speeds.pattern(), Examples: []string{"10 GFLOP/s"},
		},
		{
			Name: Size(0).Unit(), Description: "A number of bytes.",
			Pattern: sizes.pattern(), Examples: []string{"64 KiB", "1 MB"},
		},
	}
}

// pattern accepts a number and one of the units.
func (q *scale) pattern() string {
	var names []string
	for _, u := range q.units {
		names = append(names, regexp.QuoteMeta(u.name))
	}
	return numberPattern + ` *(` + strings.Join(names, "|") + `)`
}

// Unit is the name of the quantity among [Forms].
func (Duration) Unit() string { return "duration" }

// Unit is the name of the quantity among [Forms].
func (DurationRange) Unit() string { return "duration-range" }

// Unit is the name of the quantity among [Forms].
func (Interval) Unit() string { return "interval" }

// Unit is the name of the quantity among [Forms].
func (Fraction) Unit() string { return "fraction" }

// Unit is the name of the quantity among [Forms].
func (ByteRate) Unit() string { return "byte-rate" }

// Unit is the name of the quantity among [Forms].
func (Throughput) Unit() string { return "throughput" }

// Unit is the name of the quantity among [Forms].
func (Speed) Unit() string { return "speed" }

// Unit is the name of the quantity among [Forms].
func (Size) Unit() string { return "size" }
