package figure

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decadeAndHalf is the ratio of the largest to the smallest value from which an axis is
// logarithmic.
const decadeAndHalf = 30

// extent is the range of the values of an axis.
type extent struct{ low, high float64 }

// newExtent is a range without values.
func newExtent() extent { return extent{math.Inf(1), math.Inf(-1)} }

// add widens the range to finite values.
func (e *extent) add(values ...float64) {
	for _, v := range values {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			e.low, e.high = min(e.low, v), max(e.high, v)
		}
	}
}

// spansDecades reports whether values need a logarithmic axis.
func (e extent) spansDecades() bool { return e.low > 0 && e.high >= decadeAndHalf*e.low }

// maxDecades limits the decades of a logarithmic axis.
const maxDecades = 6

// setLogarithmic makes an axis logarithmic, from the extent's low end to its high end but of no more
// than maxDecades, and returns a sentence for the caption. Values below the axis, such as 0, are drawn
// at its edge; least is the smallest value.
func (e extent) setLogarithmic(a *plot.Axis, name string, least float64) (note string) {
	logarithmic(a)
	a.Min, a.Max = max(e.low, e.high*math.Pow10(-maxDecades))/1.15, e.high*1.15
	note = " The " + name + " is logarithmic."
	if least < a.Min {
		note += fmt.Sprintf(" Values below %.3g, such as %.3g, are drawn at its edge.", a.Min, least)
	}
	return note
}

// logarithmic makes an axis logarithmic. Values below its least one are drawn at its edge.
func logarithmic(a *plot.Axis) {
	a.Scale, a.Tick.Marker = logScale{}, logTicks{}
}

// isLogarithmic reports whether logarithmic made an axis so.
func isLogarithmic(a *plot.Axis) bool {
	_, ok := a.Scale.(logScale)
	return ok
}

// logScale is plot.LogScale for values that may be zero.
type logScale struct{}

// Normalize implements plot.Normalizer.
func (logScale) Normalize(low, high, x float64) float64 {
	x = max(x, low)
	return math.Log(x/low) / math.Log(high/low)
}

// logTicks labels a logarithmic axis at powers of ten, and where it has few of these at 2 and 5
// times them too.
type logTicks struct{}

// Ticks implements plot.Ticker.
func (logTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	if !(low > 0) || !(high > low) || math.IsInf(high, 0) {
		return nil
	}
	from, to := int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(high)))
	decades, step := math.Log10(high/low), 1
	for decades/float64(step) > maxIntervals {
		step++
	}
	for k := from; k <= to; k++ {
		for factor := 1; factor < 10; factor++ {
			v := float64(factor) * math.Pow10(k)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if factor == 1 && k%step == 0 || step == 1 && (factor == 3 && decades <= 4 ||
				decades <= 2 && (factor == 2 || factor == 5)) && !(factor == 3 && decades <= 2) {
				t.Label = strconv.FormatFloat(v, 'g', 4, 64)
			}
			if step == 1 || factor == 1 {
				ticks = append(ticks, t)
			}
		}
	}
	return ticks
}
