package unit

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Fraction is a share from 0 to 1, written 94% or 0.94.
type Fraction float64

const fractionExamples = "write a share such as 94% or 0.94"

// ParseFraction reads a [Fraction].
func ParseFraction(s string) (Fraction, error) {
	number, percent := strings.CutSuffix(s, "%")
	number = strings.TrimSuffix(number, " ")
	if !percent {
		f, err := ParseFloat(s, 64)
		if err != nil {
			return 0, fmt.Errorf("%s %w; %s", syntax.Quote(s), err, fractionExamples)
		}
		if f > 1 && f <= 100 {
			return 0, fmt.Errorf("%s is not between 0 and 1; did you mean %s%%?", syntax.Quote(s), s)
		}
		return checkFraction(s, f)
	}
	if strings.ContainsAny(number, "eE") {
		return 0, fmt.Errorf("%s is no percentage; %s", syntax.Quote(s), fractionExamples)
	}
	// Moving the decimal point in the text, not in the number, rounds once.
	f, err := ParseFloat(number+"e-2", 64)
	if err != nil {
		return 0, fmt.Errorf("%s %w; %s", syntax.Quote(s), err, fractionExamples)
	}
	return checkFraction(s, f)
}

func checkFraction(s string, f float64) (Fraction, error) {
	if f < 0 || f > 1 {
		return 0, fmt.Errorf("%s is not between 0%% and 100%%; %s", syntax.Quote(s), fractionExamples)
	}
	return Fraction(f + 0), nil
}

// String writes f so that [ParseFraction] gives it back exactly, in percent unless it is very
// small.
func (f Fraction) String() string {
	if f != 0 && math.Abs(float64(f)) < 1e-6 || math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return formatFloat(float64(f))
	}
	digits := strconv.FormatFloat(float64(f), 'f', -1, 64)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	whole, frac, _ := strings.Cut(digits, ".")
	frac += strings.Repeat("0", max(0, 2-len(frac)))
	whole = strings.TrimLeft(whole+frac[:2], "0")
	if whole == "" {
		whole = "0"
	}
	if frac = frac[2:]; frac != "" {
		whole += "." + frac
	}
	return sign + whole + "%"
}

// UnmarshalPlan reads a share from a scalar.
func (f *Fraction) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, f, ParseFraction, fractionExamples)
}

// MarshalPlan writes [Fraction.String]; what is not between 0 and 1 is an error.
func (f Fraction) MarshalPlan() (*syntax.Node, error) {
	if !(f >= 0 && f <= 1) {
		return nil, fmt.Errorf("plan: %v is not a share between 0 and 1", float64(f))
	}
	return syntax.NewScalar(f.String()), nil
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// unit is a name and how many of the base unit, num/den, it stands for.
type unit struct {
	name     string
	num, den int64
}

// scale is a family of units, the base unit among them, and the range of values that are accepted.
type scale struct {
	what     string // with article, such as "a rate"
	examples string
	units    []unit // the first of a size that fits is how values are written, so order is preference
	written  int    // how many of units are used for writing
	min, max float64
}

var byteRates = scale{
	what: "a rate", examples: "write a rate such as 10 Mbit/s, 1.5 MB/s, 100 KiB/s or unlimited",
	units: []unit{
		{"Tbit/s", 1e12, 8}, {"Gbit/s", 1e9, 8}, {"Mbit/s", 1e6, 8}, {"kbit/s", 1e3, 8}, {"B/s", 1, 1},
		{"bit/s", 1, 8}, {"kB/s", 1e3, 1}, {"KB/s", 1e3, 1}, {"MB/s", 1e6, 1}, {"GB/s", 1e9, 1}, {"TB/s", 1e12, 1},
		{"KiB/s", 1 << 10, 1}, {"MiB/s", 1 << 20, 1}, {"GiB/s", 1 << 30, 1}, {"TiB/s", 1 << 40, 1},
	},
	written: 5, min: 1e-3, max: 1e18,
}

// throughputs are rates that can be nothing, and have bounds.
var throughputs = scale{
	what: "a rate", examples: "write a rate such as 10 Mbit/s, 1.5 MB/s or 0 Mbit/s",
	units: byteRates.units, written: byteRates.written, max: byteRates.max,
}

var speeds = scale{
	what: "a speed", examples: "write a speed such as 10 GFLOP/s",
	units: []unit{
		{"PFLOP/s", 1e15, 1}, {"TFLOP/s", 1e12, 1}, {"GFLOP/s", 1e9, 1}, {"MFLOP/s", 1e6, 1}, {"kFLOP/s", 1e3, 1},
		{"FLOP/s", 1, 1},
	},
	written: 6, min: 1, max: 1e24,
}

var sizes = scale{
	what: "a size", examples: "write a size such as 1500 B, 64 KiB or 1 MB",
	units: []unit{
		{"TiB", 1 << 40, 1}, {"TB", 1e12, 1}, {"GiB", 1 << 30, 1}, {"GB", 1e9, 1}, {"MiB", 1 << 20, 1}, {"MB", 1e6, 1},
		{"KiB", 1 << 10, 1}, {"kB", 1e3, 1}, {"B", 1, 1}, {"KB", 1e3, 1},
	},
	written: 9, min: 0, max: 1 << 60,
}

const maxNumber = 40 // characters of a number with a unit

// parse reads "number unit", rounding once, exactly.
func (q *scale) parse(s string) (*big.Rat, error) {
	end := 0
	for end < len(s) && strings.IndexByte("0123456789.", s[end]) >= 0 {
		end++
	}
	number, name := s[:end], strings.TrimSpace(s[end:])
	switch {
	case strings.HasPrefix(s, "-"):
		return nil, fmt.Errorf("%s is negative; %s", syntax.Quote(s), q.examples)
	case end == 0 || end > maxNumber || strings.Count(number, ".") > 1 || strings.Trim(number, ".") == "":
		return nil, fmt.Errorf("%s is no %s; %s", syntax.Quote(s), q.what[2:], q.examples)
	case name == "":
		return nil, fmt.Errorf("%s has no unit; %s", syntax.Quote(s), q.examples)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return nil, fmt.Errorf("%s is no %s; %s", syntax.Quote(s), q.what[2:], q.examples)
	}
	u, err := q.unit(name)
	if err != nil {
		return nil, fmt.Errorf("%s %w", syntax.Quote(s), err)
	}
	value.Mul(value, big.NewRat(u.num, u.den))
	if f, _ := value.Float64(); f < q.min || f > q.max {
		return nil, fmt.Errorf("%s is out of range; %s is between %s and %s", syntax.Quote(s), q.what, q.bound(q.min),
			q.bound(q.max))
	}
	return value, nil
}

func (q *scale) unit(name string) (unit, error) {
	var names []string
	for _, u := range q.units {
		if u.name == name {
			return u, nil
		}
		names = append(names, u.name)
	}
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, form := range spellings(name) {
			if i := slices.IndexFunc(q.units, func(u unit) bool { return same(u.name, form) }); i >= 0 {
				return unit{}, fmt.Errorf("has the unit %s, which is not known; did you mean %s?", syntax.Quote(name),
					q.units[i].name)
			}
		}
	}
	return unit{}, errors.New("has the unit " + syntax.Quote(name) + ", which is not known" + syntax.Suggest(name,
		"accepted", names))
}

// spellings returns the units that may be meant by an unknown name: Mbit/s for Mb, Mbps and Mbit, MB/s for
// MB, and MB for MB/s.
func spellings(name string) []string {
	base := name
	for _, ending := range []string{"/second", "/sec", "/s", "ps"} {
		if lower := strings.ToLower(name); strings.HasSuffix(lower, ending) {
			base = name[:len(name)-len(ending)]
			break
		}
	}
	all := []string{name}
	if bits, is := strings.CutSuffix(base, "b"); is {
		all = append(all, bits+"bit/s")
	}
	if bytes, is := strings.CutSuffix(strings.TrimSuffix(base, "s"), "byte"); is {
		all = append(all, bytes+"B", bytes+"B/s")
	}
	return append(all, base+"/s", base, strings.TrimSuffix(base, "s")+"/s", name[:max(len(name)-1, 0)]+"/s")
}

func (q *scale) bound(f float64) string {
	for _, u := range q.units {
		if u.num == 1 && u.den == 1 {
			return formatFloat(f) + " " + u.name
		}
	}
	return formatFloat(f)
}

// format writes value in the largest unit in which it is short and exact: parse(format(v)) == v, to
// the bit.
func (q *scale) format(value float64) string {
	for _, u := range q.units[:q.written] {
		number := value / float64(u.num) * float64(u.den)
		text := strconv.FormatFloat(number, 'f', -1, 64)
		base := u.num == 1 && u.den == 1
		if base {
			return strconv.FormatFloat(value, 'f', -1, 64) + " " + u.name
		}
		if number < 1 || len(text) > 8 {
			continue
		}
		if back, err := q.parse(text + " " + u.name); err == nil {
			if f, _ := back.Float64(); f == value {
				return text + " " + u.name
			}
		}
	}
	return formatFloat(value)
}

// ByteRate is bytes per second. 0 means unlimited and is written so; else it is a number with a
// unit of bits or bytes: 10 Mbit/s, 1.5 MB/s, 100 KiB/s.
type ByteRate float64

const unlimited = "unlimited"

// ParseByteRate reads a [ByteRate].
func ParseByteRate(s string) (ByteRate, error) {
	if s == unlimited {
		return 0, nil
	}
	v, err := byteRates.parse(s)
	if err != nil {
		return 0, err
	}
	f, _ := v.Float64()
	return ByteRate(f), nil
}

// String writes r so that [ParseByteRate] gives it back exactly.
func (r ByteRate) String() string {
	if r == 0 {
		return unlimited
	}
	return byteRates.format(float64(r))
}

// UnmarshalPlan reads a rate from a scalar.
func (r *ByteRate) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, r, ParseByteRate, byteRates.examples)
}

// MarshalPlan writes [ByteRate.String]; a rate outside the accepted range is an error.
func (r ByteRate) MarshalPlan() (*syntax.Node, error) {
	return marshalUnit(r, r.String(), ParseByteRate)
}

// Throughput is bytes per second, 0 for none: 10 Mbit/s, 1.5 MB/s, 0 Mbit/s.
type Throughput float64

// ParseThroughput reads a [Throughput].
func ParseThroughput(s string) (Throughput, error) {
	v, err := throughputs.parse(s)
	if err != nil {
		return 0, err
	}
	f, _ := v.Float64()
	return Throughput(f), nil
}

// String writes t so that [ParseThroughput] gives it back exactly.
func (t Throughput) String() string { return throughputs.format(float64(t)) }

// UnmarshalPlan reads a throughput from a scalar.
func (t *Throughput) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, t, ParseThroughput, throughputs.examples)
}

// MarshalPlan writes [Throughput.String]; one outside the accepted range is an error.
func (t Throughput) MarshalPlan() (*syntax.Node, error) {
	return marshalUnit(t, t.String(), ParseThroughput)
}

// marshalUnit makes a scalar of text after checking that it reads back as v.
func marshalUnit[T comparable](v T, text string, parse func(string) (T, error)) (*syntax.Node, error) {
	back, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if back != v {
		return nil, fmt.Errorf("plan: %s cannot be written exactly", syntax.Quote(text))
	}
	return syntax.NewScalar(text), nil
}

// Speed is floating-point operations per second, written 10 GFLOP/s.
type Speed float64

// ParseSpeed reads a [Speed].
func ParseSpeed(s string) (Speed, error) {
	v, err := speeds.parse(s)
	if err != nil {
		return 0, err
	}
	f, _ := v.Float64()
	return Speed(f), nil
}

// String writes s so that [ParseSpeed] gives it back exactly.
func (s Speed) String() string { return speeds.format(float64(s)) }

// UnmarshalPlan reads a speed from a scalar.
func (s *Speed) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, s, ParseSpeed, speeds.examples)
}

// MarshalPlan writes [Speed.String]; a speed outside the accepted range is an error.
func (s Speed) MarshalPlan() (*syntax.Node, error) { return marshalUnit(s, s.String(), ParseSpeed) }

// Size is a whole number of bytes, written 1500 B, 64 KiB or 1 MB.
type Size int64

// ParseSize reads a [Size].
func ParseSize(s string) (Size, error) {
	v, err := sizes.parse(s)
	if err != nil {
		return 0, err
	}
	if !v.IsInt() {
		return 0, fmt.Errorf("%s is no whole number of bytes; %s", syntax.Quote(s), sizes.examples)
	}
	return Size(v.Num().Int64()), nil
}

// String writes s, in the largest unit that divides it, so that [ParseSize] gives it back exactly.
func (s Size) String() string {
	for _, u := range sizes.units[:sizes.written] {
		if s != 0 && int64(s)%u.num == 0 {
			return strconv.FormatInt(int64(s)/u.num, 10) + " " + u.name
		}
	}
	return "0 B"
}

// UnmarshalPlan reads a size from a scalar.
func (s *Size) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, s, ParseSize, sizes.examples)
}

// MarshalPlan writes [Size.String]; a negative size is an error.
func (s Size) MarshalPlan() (*syntax.Node, error) { return marshalUnit(s, s.String(), ParseSize) }

var (
	errNoNumber   = errors.New("is no number")
	errOutOfRange = errors.New("is out of the range of numbers")
)

// ParseFloat reads a finite decimal number; hexadecimal, underscores, inf and nan are refused.
func ParseFloat(text string, bits int) (float64, error) {
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, errNoNumber
	}
	f, err := strconv.ParseFloat(text, bits)
	if errors.Is(err, strconv.ErrRange) || math.IsInf(f, 0) {
		return 0, errOutOfRange
	}
	if err != nil {
		return 0, errNoNumber
	}
	return f, nil
}
