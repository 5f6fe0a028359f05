package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
)

// maxIntervals is how many intervals an axis is divided into at most.
const maxIntervals = 8

// roundTicks labels an axis at multiples of 1, 2 or 5 times a power of ten.
type roundTicks struct {
	most int // intervals; 0 = maxIntervals
}

// Ticks implements plot.Ticker.
func (r roundTicks) Ticks(low, high float64) []plot.Tick {
	most := float64(r.most)
	if r.most == 0 {
		most = maxIntervals
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	if step == 0 || math.IsInf(step, 0) || math.IsNaN(step) {
		return nil // no float lies between the ends
	}
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= most {
			step *= factor
			break
		}
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var ticks []plot.Tick
	for i := int(math.Ceil(low/step - 1e-9)); float64(i)*step <= high+step*1e-9; i++ {
		k := float64(i)
		ticks = append(ticks, plot.Tick{Value: k * step, Label: fmt.Sprintf("%.*f", decimals, k*step)})
		if middle := (k + 0.5) * step; middle < high {
			ticks = append(ticks, plot.Tick{Value: middle})
		}
	}
	return ticks
}
