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
	Low, High string // empty for none
	Above     bool   // Low itself is not accepted
}

const rangeMessage = "field: a range in a tag is written 1..1000, 0.. or >0, not "

func parseRange(text string) *Range {
	r := Range{}
	if low, above := strings.CutPrefix(text, ">"); above {
		r.Low, r.Above = low, true
	} else {
		r.Low, r.High, _ = strings.Cut(text, "..")
	}
	for _, bound := range []string{r.Low, r.High} {
		if _, err := parseBound(bound); err != nil && (bound != "" || r.Low == "") {
			panic(rangeMessage + text)
		}
	}
	return &r
}

// parseBound reads a number, a share in percent, or a duration in nanoseconds.
func parseBound(text string) (float64, error) {
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
func (r *Range) Holds(v float64) bool {
	low, _ := parseBound(r.Low)
	high, err := parseBound(r.High)
	return v >= low && (v > low || !r.Above) && (err != nil || v <= high)
}

// String says what is accepted: "more than 0", "1 or more", "1 to 1000".
func (r *Range) String() string {
	switch {
	case r.Above:
		return "more than " + r.Low
	case r.High == "":
		return r.Low + " or more"
	}
	return r.Low + " to " + r.High
}

// Number is the value of a field that has a range. It panics for one that is no number.
func Number(v reflect.Value) float64 {
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
