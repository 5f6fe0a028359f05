package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/record"
)

// condition keeps the points whose key has one of some values, or none of them.
type condition struct {
	key    string
	not    bool
	values []string
}

func (c *condition) keeps(p record.Point) bool {
	return slices.Contains(c.values, valueAt(p, c.key)) != c.not
}

// Where keeps the runs of a summary whose points meet every condition, and returns their places.
// A condition is KEY=VALUE, or KEY!=VALUE to leave points out; commas separate further values of
// the same key and further conditions. Keys may be cut to their last parts. Errors name the keys
// and values that are accepted.
func Where(s record.Summary, conditions []string) (kept []int, err error) {
	var all []condition
	for _, text := range conditions {
		more, err := parseWhere(Factors(s), text)
		if err != nil {
			return nil, fmt.Errorf("--where %q: %w", text, err)
		}
		all = append(all, more...)
	}
	for i, r := range s.Runs {
		if !slices.ContainsFunc(all, func(c condition) bool { return !c.keeps(r.Point) }) {
			kept = append(kept, i)
		}
	}
	if len(kept) == 0 && len(s.Runs) > 0 {
		return nil, fmt.Errorf("--where %q: no point meets all of these conditions", strings.Join(conditions, ","))
	}
	return kept, nil
}

// parseWhere reads conditions. Values may contain commas themselves: the longest run of parts that
// makes a value counts as one.
func parseWhere(factors []Factor, text string) (all []condition, err error) {
	parts := strings.Split(text, ",")
	for i := 0; i < len(parts); {
		key, rest, isCondition := strings.Cut(parts[i], "=")
		if isCondition {
			key, not := strings.CutSuffix(strings.TrimSpace(key), "!")
			f, err := findFactor(factors, strings.TrimSpace(key))
			switch {
			case err == nil:
				all = append(all, condition{key: factors[f].Key, not: not})
				parts[i] = rest
			case len(all) == 0:
				return nil, fmt.Errorf("%q: %w", strings.TrimSpace(key), err)
			default:
				isCondition = false // a value may contain an equals sign
			}
		}
		if len(all) == 0 && len(factors) == 0 {
			return nil, fmt.Errorf("%q is no condition; KEY=VALUE or KEY!=VALUE is accepted, but %w", parts[i],
				errNoFactor)
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%q is no condition; KEY=VALUE or KEY!=VALUE is accepted, with KEY one of %s",
				parts[i], strings.Join(keysOf(factors), ", "))
		}
		c := &all[len(all)-1]
		f := factors[slices.Index(keysOf(factors), c.key)]
		value, used := f.longestValue(parts[i:])
		if used == 0 {
			return nil, unknownValue(&f, strings.TrimSpace(parts[i]), !isCondition, factors)
		}
		c.values = append(c.values, value)
		i += used
	}
	return all, nil
}

func keysOf(factors []Factor) (keys []string) {
	for _, f := range factors {
		keys = append(keys, f.Key)
	}
	return keys
}

// longestValue finds the value that the most of the first parts write, and how many parts these
// are; 0 if no value begins so.
func (f *Factor) longestValue(parts []string) (value string, used int) {
	for n := len(parts); n > 0; n-- {
		written := strings.TrimSpace(strings.Join(parts[:n], ","))
		for _, v := range f.Values {
			if sameValue(v, written) {
				return v, n
			}
		}
	}
	return "", 0
}

// sameValue reports whether a reader's text means a value: as the plan writes it, as tables name
// it, or as an equal number.
func sameValue(value, written string) bool {
	if strings.EqualFold(value, written) || strings.EqualFold(ValueName(value), written) {
		return true
	}
	a, errA := strconv.ParseFloat(value, 64)
	b, errB := strconv.ParseFloat(written, 64)
	return errA == nil && errB == nil && a == b
}

// unknownValue says which values a key has, and if the text may have meant a key which keys exist.
func unknownValue(f *Factor, text string, continued bool, factors []Factor) error {
	err := fmt.Errorf("%s is never %q; accepted: %s", f.Key, text, strings.Join(f.Names(), "; "))
	if continued && strings.Contains(text, "=") {
		err = fmt.Errorf("%w; or another condition on %s", err, strings.Join(keysOf(factors), ", "))
	}
	return err
}

// Names returns the values as tables name them, and as the plan writes them where two would have
// one name.
func (f *Factor) Names() []string {
	names := make([]string, len(f.Values))
	for i, v := range f.Values {
		names[i] = ValueName(v)
		if slices.Contains(names[:i], names[i]) {
			return f.Values
		}
	}
	return names
}

// NameOf names a point's value.
func (f *Factor) NameOf(p record.Point) string { return f.Names()[f.Level(p)] }

// ValueName is how tables and figures write the value of a key.
func ValueName(value string) string { return PointName(record.Point{{Value: value}}) }
