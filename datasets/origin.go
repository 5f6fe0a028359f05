package datasets

import (
	"math"
	"slices"
	"strconv"
)

// Precision finds out whether the values of a column survive as float32, which a Set holds: of times
// in milliseconds since 1970, for instance, all that differ within two minutes become one. Such a
// column is held as differences from an origin. A few values far from the others, such as a 0 that
// stands for a missing time, do not hide the loss of the others. The zero value has seen no value.
type Precision struct {
	sample         // values from the first on that loses digits
	first  float64 // the value that came first
	spread float32 // the largest distance of another one from it
	loss   float32 // the largest distance of a value from its float32
	seen   bool
	real   bool // some value is not whole
}

const (
	// coarse is the loss, as a part of the spread, from which on a column gets an origin. What a
	// float32 loses of a column that is scaled first is a 500th of it.
	coarse = 1.0 / (1 << 16)
	// noise is the spread, as a part of the values, up to which a column of real numbers counts as
	// constant: it varies by errors of rounding.
	noise = 1.0 / (1 << 44)
)

// Add takes the next value, which is high + low; low is 0 unless an integer has more digits than a
// float64.
func (p *Precision) Add(high, low float64) {
	if !p.seen {
		p.first, p.seen = high, true
	}
	p.real = p.real || high != math.Trunc(high)
	p.spread = max(p.spread, float32(math.Abs(high-p.first+low)))
	p.loss = max(p.loss, float32(math.Abs(high-float64(float32(high))+low)))
	if p.loss > 0 {
		p.add(high)
	}
}

// sample holds evenly spaced values of a column, at most sampled of them.
type sample struct {
	values       []float64
	stride, next int
}

const sampled = 64

func (s *sample) add(v float64) {
	if s.next > 0 {
		s.next--
		return
	}
	if len(s.values) == sampled {
		for i := range sampled / 2 {
			s.values[i] = s.values[2*i]
		}
		s.values, s.stride = s.values[:sampled/2], 2*max(s.stride, 1)
	}
	s.values, s.next = append(s.values, v), max(s.stride, 1)-1
}

// middle returns the values between the quartiles, in ascending order.
func (s *sample) middle() []float64 {
	ordered := slices.Sorted(slices.Values(s.values))
	n := len(ordered)
	return ordered[n/4 : n-n/4]
}

// clustered returns the median if float32 loses digits of the values between the quartiles, though not of
// the whole range; otherwise 0.
func (p *Precision) clustered() float64 {
	const least = 8 // values; of fewer, none are outliers
	if len(p.values) < least {
		return 0
	}
	half := p.middle()
	median, spread, loss := half[len(half)/2], half[len(half)-1]-half[0], 0.0
	for _, v := range half {
		loss = max(loss, math.Abs(v-float64(float32(v))))
	}
	constant := spread == 0 || p.real && spread <= noise*math.Abs(median)
	if constant || loss <= coarse*spread {
		return 0
	}
	return median
}

// Widen takes a value, rounded to a float32, into account that was not added.
func (p *Precision) Widen(v float32) {
	if d := float32(math.Abs(float64(v) - p.first)); d > 2*p.loss {
		p.spread = max(p.spread, d)
	}
}

// Origin returns what the column's values are held as differences from; 0 where they survive as they
// are.
func (p *Precision) Origin() float64 {
	constant := p.spread == 0 || p.real && float64(p.spread) <= noise*math.Abs(p.first)
	switch {
	case constant || p.loss == 0:
		return 0
	case float64(p.loss) <= coarse*float64(p.spread):
		return p.clustered()
	}
	return p.first
}

// Origins returns the origins of columns; nil where all are 0.
func Origins(columns []Precision) []float64 {
	var origins []float64
	for i := range columns {
		if o := columns[i].Origin(); o != 0 {
			if origins == nil {
				origins = make([]float64, len(columns))
			}
			origins[i] = o
		}
	}
	return origins
}

// Split splits an integer into a float64 and what that loses of it.
func Split(v int64) (high, low float64) {
	high = float64(v)
	if high >= 1<<63 {
		return high, float64(v - math.MaxInt64 - 1) // high is 2^63
	}
	return high, float64(v - int64(high))
}

// SplitUnsigned is Split of an unsigned integer.
func SplitUnsigned(v uint64) (high, low float64) {
	high = float64(v)
	if high >= 1<<64 {
		return high, -float64(-v) // high is 2^64
	}
	return high, float64(int64(v - uint64(high)))
}

// Exact splits a number that is written as text and was read as a float64 into that and what it lost
// of an integer of many digits.
func Exact(text string, v float64) (high, low float64) {
	const exact = 15 // digits of which every integer is a float64
	if len(text) <= exact {
		return v, 0
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Split(i)
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return SplitUnsigned(u)
	}
	return v, 0
}
