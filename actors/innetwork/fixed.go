package innetwork

import (
	"math"
	"math/bits"
)

// Values travel as integers: x as the integer next to x·2^(h−e), where all workers have agreed on
// e so that |x| < 2^e, and n of the greatest magnitude, 2^h, fit 31 bits. So sums of n are exact,
// in whatever order, and the sum of the x is within n/2 of the unit 2^(e−h).

// infinite is the peak of values of which one is no number.
const infinite = 255

// peak is the exponent of the value of the greatest magnitude as float32 has it: e + 126.
func peak(values []float32) uint64 {
	greatest := uint32(0)
	for _, v := range values {
		greatest = max(greatest, math.Float32bits(v)&^(1<<31))
	}
	return uint64(greatest >> 23)
}

// magnitude is h for a number of workers.
func magnitude(workers int) int { return bits.Len(uint(math.MaxInt32/workers)) - 1 }

// exponent is e − h.
func exponent(peak uint64, workers int) int { return int(peak) - 126 - magnitude(workers) }

// fix turns values, none above the peak, into integers. Where one is no number they are 0.
func fix(words, values []float32, peak uint64, workers int) {
	if peak >= infinite {
		clear(words)
		return
	}
	scale := math.Ldexp(1, -exponent(peak, workers))
	for i, v := range values {
		words[i] = word(int32(math.RoundToEven(float64(v) * scale)))
	}
}

// float turns sums of integers back, divided by a weight. Where a value was no number, none is.
func float(values, words []float32, peak uint64, workers int, weight float64) {
	unit := math.Ldexp(1, exponent(peak, workers))
	if peak >= infinite {
		unit = math.NaN()
	}
	for i, w := range words {
		values[i] = float32(float64(integer(w)) * unit / weight)
	}
}
