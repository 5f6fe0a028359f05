package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Duration is a length of time of 0 or more, written with its unit: 5ms, 1.5s, 10m, 2h, 100us,
// 1m30s. Units are ns, us (or µs), ms, s, m and h. Only 0s, 0ms and so on stand for none; a bare 0
// lacks its unit.
type Duration time.Duration

const durationExamples = "write a duration with its unit, such as 5ms, 1.5s, 10m or 1m30s"

// ParseDuration reads a [Duration].
func ParseDuration(s string) (Duration, error) {
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%s is negative; a duration is 0s or more", syntax.Quote(s))
	}
	if s != "" && len(s) <= syntax.QuoteWidth && strings.Trim(s, "0123456789.") == "" {
		return 0, fmt.Errorf("%s has no unit; %s", syntax.Quote(s), durationExamples)
	}
	joined := s
	if number, unit, ok := strings.Cut(s, " "); ok && strings.Trim(number, "0123456789.") == "" && isWord(unit) {
		joined = number + unit
	}
	if len(s) > syntax.QuoteWidth || joined == "" || joined[0] < '0' || joined[0] > '9' {
		return 0, fmt.Errorf("%s is no duration; %s", syntax.Quote(s), durationExamples)
	}
	d, err := time.ParseDuration(joined)
	if err != nil {
		return 0, durationError(s, err)
	}
	if d == 0 && strings.ContainsAny(joined, "123456789") {
		return 0, fmt.Errorf("%s is shorter than 1ns, the finest that is told apart", syntax.Quote(s))
	}
	return Duration(d), nil
}

func durationError(s string, err error) error {
	if strings.Contains(err.Error(), "unit") {
		return fmt.Errorf("%s has a unit that is not known, or none; units are ns, us, ms, s, m and h, as in 5ms or "+
			"1m30s", syntax.Quote(s))
	}
	return fmt.Errorf("%s is no duration, or longer than 292 years; %s", syntax.Quote(s), durationExamples)
}

func isWord(s string) bool {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != 'µ' {
			return false
		}
	}
	return s != ""
}

// String writes d so that [ParseDuration] gives it back exactly: 100us, 5ms, 1m30s, 2h.
func (d Duration) String() string {
	s := strings.Replace(time.Duration(d).String(), "µ", "u", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// UnmarshalPlan reads a duration from a scalar.
func (d *Duration) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, d, ParseDuration, durationExamples)
}

// MarshalPlan writes [Duration.String]; a negative duration is an error.
func (d Duration) MarshalPlan() (*syntax.Node, error) {
	if d < 0 {
		return nil, fmt.Errorf("plan: the duration %s is negative", d)
	}
	return syntax.NewScalar(d.String()), nil
}

// unmarshalUnit reads a scalar by parse and puts its complaint, or that there is no scalar, at n.
func unmarshalUnit[T any](n *syntax.Node, into *T, parse func(string) (T, error), examples string) error {
	if n.Kind != syntax.Scalar {
		return syntax.Errorf(n, "found %s; %s", syntax.Found(n), examples)
	}
	v, err := parse(n.Text)
	if err != nil {
		return syntax.Errorf(n, "%w", err)
	}
	*into = v
	return nil
}

// DurationRange is two durations with Min <= Max, written 1s..5s; a single one, 2s, is both.
type DurationRange struct{ Min, Max Duration }

const rangeExamples = "write a range such as 1s..5s, or one duration such as 2s"

// ParseDurationRange reads a [DurationRange].
func ParseDurationRange(s string) (DurationRange, error) {
	first, last, two := strings.Cut(s, "..")
	lo, err := ParseDuration(strings.TrimSpace(first))
	if err != nil || !two {
		return DurationRange{lo, lo}, err
	}
	hi, err := ParseDuration(strings.TrimSpace(last))
	if err != nil {
		return DurationRange{}, err
	}
	if hi < lo {
		return DurationRange{}, fmt.Errorf("%s ends before it begins; %s", syntax.Quote(s), rangeExamples)
	}
	return DurationRange{lo, hi}, nil
}

// String writes r so that [ParseDurationRange] gives it back.
func (r DurationRange) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return r.Min.String() + ".." + r.Max.String()
}

// UnmarshalPlan reads a range from a scalar.
func (r *DurationRange) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, r, ParseDurationRange, rangeExamples)
}

// MarshalPlan writes [DurationRange.String]; negative durations are errors.
func (r DurationRange) MarshalPlan() (*syntax.Node, error) {
	if r.Min < 0 || r.Max < r.Min {
		return nil, fmt.Errorf("plan: %s is no range of durations", r)
	}
	return syntax.NewScalar(r.String()), nil
}

// Interval is a distance between two events of a run: exactly one of its fields is above 0. It is
// written 0.05 epochs, 1 epoch, 10 steps, 1 step, 20 rounds, 1 round, or as a duration, 2s.
type Interval struct {
	Epochs float64
	Steps  int
	Rounds int
	Time   Duration
}

const intervalExamples = "write an interval such as 0.05 epochs, 10 steps, 20 rounds or 2s"

const (
	minEpochs, maxEpochs = 1e-9, 1e9
	maxStepCount         = 1 << 48
)

// ParseInterval reads an [Interval].
func ParseInterval(s string) (Interval, error) {
	number, unit, _ := strings.Cut(s, " ")
	unit = strings.TrimSpace(unit)
	var i Interval
	var err error
	switch unit {
	case "epochs", "epoch":
		i.Epochs, err = ParseFloat(number, 64)
		if err == nil && (i.Epochs < minEpochs || i.Epochs > maxEpochs) {
			err = fmt.Errorf("is not between %g and %g epochs", minEpochs, maxEpochs)
		}
	case "steps", "step":
		i.Steps, err = parseCount(number, "steps")
	case "rounds", "round":
		i.Rounds, err = parseCount(number, "rounds")
	default:
		if s != "" && len(s) <= syntax.QuoteWidth && strings.Trim(s, "0123456789.") == "" {
			return i, fmt.Errorf("%s has no unit; %s", syntax.Quote(s), intervalExamples)
		}
		i.Time, err = ParseDuration(s)
		switch {
		case err == nil && i.Time == 0:
			err = errors.New("is no interval, which is above 0")
		case err != nil && strings.HasPrefix(s, "-"):
			return i, err
		case err != nil:
			err = errors.New("is no interval")
		}
	}
	if err != nil {
		return Interval{}, fmt.Errorf("%s %w; %s", syntax.Quote(s), err, intervalExamples)
	}
	return i, nil
}

// parseCount reads a whole number from 1 to maxStepCount, or to what an int holds where that is
// less.
func parseCount(s, of string) (int, error) {
	if s == "" || len(s) > 15 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("is not a whole number of %s", of)
	}
	const most = min(maxStepCount, math.MaxInt)
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("is not between 1 and %d %s", most, of)
	}
	return n, nil
}

// Span is an interval of training in steps (100 or 100 steps), epochs (0.1 epochs) or samples (512
// samples). Exactly one of its fields is above 0.
type Span struct {
	Steps   int
	Epochs  float64
	Samples int
}

// SpanPattern is the pattern of a [Span] with a unit, as JSON Schema has it.
const SpanPattern = `^[0-9.]+([eE][+-]?[0-9]+)? +(steps?|epochs?|samples?)$`

const spanExamples = "write 100, 100 steps, 0.1 epochs or 4000 samples"

// ParseSpan reads a [Span] that has a unit.
func ParseSpan(s string) (Span, error) {
	number, of, _ := strings.Cut(s, " ")
	switch strings.TrimSpace(of) {
	case "steps", "step", "epochs", "epoch":
		i, err := ParseInterval(s)
		return Span{Steps: i.Steps, Epochs: i.Epochs}, err
	case "samples", "sample":
		n, err := parseCount(number, "samples")
		if err != nil {
			return Span{}, fmt.Errorf("%s %w; %s", syntax.Quote(s), err, spanExamples)
		}
		return Span{Samples: n}, nil
	}
	return Span{}, fmt.Errorf("%s is no interval of training; %s", syntax.Quote(s), spanExamples)
}

// String writes i so that [ParseInterval] gives it back.
func (i Interval) String() string {
	switch {
	case i.Epochs == 1:
		return "1 epoch"
	case i.Epochs != 0:
		return formatFloat(i.Epochs) + " epochs"
	case i.Steps == 1:
		return "1 step"
	case i.Steps != 0:
		return fmt.Sprintf("%d steps", i.Steps)
	case i.Rounds == 1:
		return "1 round"
	case i.Rounds != 0:
		return fmt.Sprintf("%d rounds", i.Rounds)
	}
	return i.Time.String()
}

// UnmarshalPlan reads an interval from a scalar.
func (i *Interval) UnmarshalPlan(n *syntax.Node) error {
	return unmarshalUnit(n, i, ParseInterval, intervalExamples)
}

// MarshalPlan writes [Interval.String]; an interval of nothing is an error.
func (i Interval) MarshalPlan() (*syntax.Node, error) {
	if _, err := ParseInterval(i.String()); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return syntax.NewScalar(i.String()), nil
}
