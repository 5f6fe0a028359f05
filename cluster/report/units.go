package report

import (
	"fmt"
	"math"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/record/stats"
)

// NoValue stands in a table for a figure that does not exist.
const NoValue = "–"

// NotReached stands for the median time of a point most of whose runs did not reach the target.
func NotReached(g record.Group) string {
	return fmt.Sprintf("not reached (%d of %d)", g.N-g.Reached, g.N)
}

// MedianCell writes a median and behind it its 95 % interval in brackets, or the range of too few runs
// for an interval in parentheses. An open range ends with ∞. The function write formats a finite value.
func MedianCell(a *record.Spread, median record.Float, open bool, write func(record.Float) string) string {
	end := func(v record.Float) string {
		if math.IsInf(float64(v), 1) {
			return "∞"
		}
		return write(v)
	}
	switch highest := a.Max; {
	case a.N < 2:
		return write(median)
	case a.Method != stats.TooFew:
		return fmt.Sprintf("%s [%s, %s]", write(median), end(a.Low), end(a.High))
	default:
		if open {
			highest = record.Float(math.Inf(1))
		}
		return fmt.Sprintf("%s (%s–%s)", write(median), end(a.Min), end(highest))
	}
}

// IsFinite reports whether a value is neither NaN nor an infinity.
func IsFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Unit is a unit of time.
type Unit struct {
	Name    string
	Seconds float64
}

// TimeUnit chooses the unit in which a time in seconds is a handy number.
func TimeUnit(seconds float64) Unit {
	switch {
	case seconds > 0 && seconds < 1:
		return Unit{"ms", 1e-3}
	case seconds < 600:
		return Unit{"s", 1}
	case seconds < 3*3600:
		return Unit{"min", 60}
	}
	return Unit{"h", 3600}
}

// Duration writes a time in seconds with three digits in a handy unit.
func Duration(seconds float64) string {
	u := TimeUnit(seconds)
	return digits(seconds/u.Seconds, 3) + " " + u.Name
}

// Percent writes a fraction such as 0.94 as "94 %".
func Percent(fraction float64) string {
	return fmt.Sprintf("%g %%", math.Round(fraction*1e6)/1e4)
}

// Count writes a number with its noun, in the plural where it is not one: "1 run", "3 runs".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
