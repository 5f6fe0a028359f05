// Package portable has functions that give the same bits on every processor. Those of package math
// do not: some are written in assembly, and compilers may fuse a product and a sum unless the
// product is converted.
package portable

import "math"

// Log returns the natural logarithm of a finite x > 0, within 1 ulp: the algorithm of FreeBSD's
// e_log.c.
func Log(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	fraction, exponent := math.Frexp(x)
	if fraction < math.Sqrt2/2 {
		fraction *= 2
		exponent--
	}
	f := fraction - 1
	k := float64(exponent)
	s := f / (2 + f)
	s2 := s * s
	s4 := s2 * s2
	odd := s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7))))))
	even := s4 * (l2 + float64(s4*(l4+float64(s4*l6))))
	r := float64(odd) + float64(even)
	half := float64(0.5 * f * f)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+r)) + float64(k*ln2Lo))) - f)
}

// Exp returns eˣ, within some ulp: Taylor's series after the multiples of log 2 are taken out.
func Exp(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
	)
	switch {
	case x < -745:
		return 0
	case x > 710:
		return math.Inf(1)
	}
	k := math.Floor(x/math.Ln2 + 0.5)
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo)
	sum := 1.0
	for i := 18; i > 0; i-- {
		sum = 1 + float64(sum*r)/float64(i)
	}
	return math.Ldexp(sum, int(k))
}

// NormalDensity returns Exp(−x²/2)/√(2π).
func NormalDensity(x float64) float64 {
	return Exp(-x*x/2) / math.Sqrt(2*math.Pi)
}

// NormalCDF returns the probability of a unit normal to be at most x, with small relative error for
// x < 0 too.
func NormalCDF(x float64) float64 {
	if x > 0 {
		return 1 - normalTail(x)
	}
	return normalTail(-x)
}

// normalTail returns the probability of a unit normal to exceed x ≥ 0: below 2 by the series of
// Marsaglia 2004 ("Evaluating the normal distribution"), above by Laplace's continued fraction.
func normalTail(x float64) float64 {
	if x > 38 {
		return 0
	}
	if x < 2 {
		term, sum := x, x
		for n := 3.0; term > 1e-18; n += 2 {
			term *= x * x / n
			sum += float64(term)
		}
		return 0.5 - float64(sum*NormalDensity(x))
	}
	fraction := x
	for k := 120.0; k > 0; k-- {
		fraction = x + k/fraction
	}
	return NormalDensity(x) / fraction
}

// NormalQuantile returns the x at which NormalCDF is p, 0 < p < 1, to about 16 digits: algorithm AS
// 241, PPND16 (Wichura 1988, "The percentage points of the normal distribution").
func NormalQuantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * ratio(r, &quantileCentre)
	}
	r := p
	if q > 0 {
		r = 1 - p
	}
	r = math.Sqrt(-Log(max(r, math.SmallestNonzeroFloat64)))
	x := 0.0
	if r <= 5 {
		x = ratio(r-1.6, &quantileMiddle)
	} else {
		x = ratio(r-5, &quantileTail)
	}
	if q < 0 {
		return -x
	}
	return x
}

// rational is a quotient of polynomials, highest power first, numerator and denominator side by
// side.
type rational [8][2]float64

func ratio(x float64, c *rational) float64 {
	above, below := c[0][0], c[0][1]
	for i := 1; i < len(c); i++ {
		above = float64(above*x) + c[i][0]
		below = float64(below*x) + c[i][1]
	}
	return above / below
}

var (
	quantileCentre = rational{
		{2509.0809287301226727, 5226.495278852854561},
		{33430.575583588128105, 28729.085735721942674},
		{67265.770927008700853, 39307.89580009271061},
		{45921.953931549871457, 21213.794301586595867},
		{13731.693765509461125, 5394.1960214247511077},
		{1971.5909503065514427, 687.1870074920579083},
		{133.14166789178437745, 42.313330701600911252},
		{3.387132872796366608, 1},
	}
	quantileMiddle = rational{
		{7.7454501427834140764e-4, 1.05075007164441684324e-9},
		{0.0227238449892691845833, 5.475938084995344946e-4},
		{0.24178072517745061177, 0.0151986665636164571966},
		{1.27045825245236838258, 0.14810397642748007459},
		{3.64784832476320460504, 0.68976733498510000455},
		{5.7694972214606914055, 1.6763848301838038494},
		{4.6303378461565452959, 2.05319162663775882187},
		{1.42343711074968357734, 1},
	}
	quantileTail = rational{
		{2.01033439929228813265e-7, 2.04426310338993978564e-15},
		{2.71155556874348757815e-5, 1.4215117583164458887e-7},
		{0.0012426609473880784386, 1.8463183175100546818e-5},
		{0.026532189526576123093, 7.868691311456132591e-4},
		{0.29656057182850489123, 0.0148753612908506148525},
		{1.7848265399172913358, 0.13692988092273580531},
		{5.4637849111641143699, 0.59983220655588793769},
		{6.6579046435011037772, 1},
	}
)
