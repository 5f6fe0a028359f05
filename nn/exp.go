package nn

import "math"

// exp is e^x for float32, at most 0.59 units in the last place off (found by trying every third
// argument of magnitude 2⁻¹⁵ to 105 with a normal result). It has no table and no products that a
// compiler may fuse, so unlike math.Exp it gives the same bits everywhere. math.Exp also takes
// about 1.5 times as long on amd64.
//
// The argument is reduced to r = x − k·ln 2, |r| ≤ ln 2 / 2, and e^r is summed in float64 as its
// Taylor series up to r⁷/7!, leaving a remainder below 5.3e-9.
func exp(x float32) float32 { return expParts(reduce(x)) }

// expAll replaces every element of x by its exp, with the same bits on every platform.
func expAll(x []float32) {
	x = x[expVectors(x):]
	for i, v := range x {
		x[i] = expParts(reduce(v))
	}
}

// reduce returns r and k of the reduction, k in the low bits of a float64.
func reduce(x float32) (r, k float64) {
	const (
		log2e = 1 / math.Ln2
		shift = 3 << 51 // adding it rounds to an integer, left in the low bits of the sum
	)
	v := float64(x)
	// Beyond these the result is 0 or +Inf in float32 whatever x is. NaN passes both.
	if v < -150 {
		v = -150
	}
	if v > 150 {
		v = 150
	}
	k = float64(v*log2e) + shift
	return v - float64((k-shift)*math.Ln2), k
}

// expParts returns e^r·2^k.
func expParts(r, k float64) float32 {
	const (
		c2, c3, c4 = 1. / 2, 1. / 6, 1. / 24
		c5, c6, c7 = 1. / 120, 1. / 720, 1. / 5040
	)
	r2 := float64(r * r)
	low := 1 + r + float64(r2*(c2+float64(r*c3)))
	high := c4 + float64(r*c5) + float64(r2*(c6+float64(r*c7)))
	scale := math.Float64frombits((math.Float64bits(k) + 1023) << 52)
	return float32(float64(low+float64(float64(r2*r2)*high)) * scale)
}

// sigmoid is 1/(1+e^−x).
func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }

// tanh is the hyperbolic tangent, (1−e^−2|x|)/(1+e^−2|x|) with the sign of x, and near zero, where
// that would cancel, the odd polynomial of the Cephes library (S. Moshier, tanhf.c).
func tanh(x float32) float32 {
	a := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if a < 0.625 {
		v := float64(x)
		s := float64(v * v)
		p := float64(s*-5.70498872745e-3) + 2.06390887954e-2
		p = float64(p*s) - 5.37397155531e-2
		p = float64(p*s) + 1.33314422036e-1
		p = float64(p*s) - 3.33332819422e-1
		return float32(v + float64(v*float64(s*p)))
	}
	e := exp(-2 * a)
	return float32(math.Copysign(float64((1-e)/(1+e)), float64(x)))
}
