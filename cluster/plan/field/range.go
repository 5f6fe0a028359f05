package field

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Range bounds a number. Its bounds are written in the number's unit, as the tag has them.
type Range struct {
	Low, High    string // empty for none
	Above, Below bool   // Low, or High, itself is not accepted

	low, high float64 // their values; without High infinite
}

func parseRange(text string) *Range {
	r := Range{high: math.Inf(1)}
	low, high, _ := strings.Cut(text, "..")
	r.Low, r.Above = strings.CutPrefix(low, ">")
	r.High, r.Below = strings.CutPrefix(high, "<")
	var err error
	if r.low, err = parseBound(r.Low); err == nil && r.High != "" {
		r.high, err = parseBound(r.High)
	}
	if err != nil {
		panic("field: a range in a tag is written 1..1000, 0.., >0 or >0..<1, not " + text)
	}
	return &r
}

// parseBound reads a number, a share in percent, bytes, or a duration in nanoseconds.
func parseBound(text string) (float64, error) {
	text = strings.TrimSuffix(text, " B")
	if number, percent := strings.CutSuffix(text, "%"); percent {
		share, err := strconv.ParseFloat(number, 64)
		return share / 100, err
	}
	if d, err := time.ParseDuration(text); err == nil && strings.Trim(text, "0123456789.") != "" {
		return float64(d), nil
	}
	return strconv.ParseFloat(text, 64)
}

// Holds reports whether a number is in the range. NaN is in none, infinity only in one without an
// upper bound.
func (r *Range) Holds(f reflect.Value) bool {
	if !f.CanInt() {
		return between(r, r.low, number(f), r.high)
	}
	high := int64(math.MaxInt64)
	if r.High != "" {
		high = int64(r.high)
	}
	return between(r, int64(r.low), f.Int(), high) // a float64 has not all digits
}

func between[N int64 | float64](r *Range, low, v, high N) bool {
	return (v > low || v == low && !r.Above) && (v < high || v == high && !r.Below)
}

// String says what is accepted: "more than 0", "1 or more", "1 to 1000", "more than 0%, up to
// 100%", "0 or more, below 1".
func (r *Range) String() string {
	text := r.Low + " or more"
	if r.Above {
		text = "more than " + r.Low
	}
	switch {
	case r.High == "":
		return text
	case r.Below:
		return text + ", below " + r.High
	case r.Above:
		return text + ", up to " + r.High
	}
	return r.Low + " to " + r.High
}

// number is the value of a field that has a range. It panics for one that is no number.
func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	panic(fmt.Sprintf("field: only numbers have a range, not %s", v.Type()))
}

func finite(v reflect.Value) bool {
	return !v.CanFloat() || !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
}
