package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gradwire/gradwire/cluster/record"
)

// Factor is a key of a sweep that takes several values.
type Factor struct {
	// Key is the path in the plan, Name its shortest unambiguous end.
	Key, Name string
	// Values are in the order of the sweep. Points without the key have the value NoValue.
	Values []string
}

// Level returns the index of a point's value.
func (f *Factor) Level(p record.Point) int { return slices.Index(f.Values, valueAt(p, f.Key)) }

// valueAt is a point's value of a key, NoValue where the point lacks the key.
func valueAt(p record.Point, key string) string {
	if slices.ContainsFunc(p, func(s record.Setting) bool { return s.Key == key }) {
		return p.Value(key)
	}
	return NoValue
}

// Factors returns the keys of a sweep that take several values, in the order of the sweep.
func Factors(s record.Summary) (all []Factor) {
	keys := SweptKeys(s)
	for i, name := range ShortKeys(keys) {
		f := Factor{Key: keys[i], Name: name}
		for _, g := range s.Groups {
			if v := valueAt(g.Point, keys[i]); !slices.Contains(f.Values, v) {
				f.Values = append(f.Values, v)
			}
		}
		if len(f.Values) > 1 {
			all = append(all, f)
		}
	}
	return all
}

// RecordKey is the key that tells the points of several records apart.
const RecordKey = "record"

const (
	// maxDashes is how many values a factor may have that is drawn as dashes or shapes.
	maxDashes = 4
	// MaxHues is how many colours are told apart without the help of dashes.
	MaxHues = 7
)

// View says which factors a reader asked for; empty keys leave the choice to Arrange.
type View struct{ By, Facet string }

// Layout gives each factor of a sweep one meaning: By chooses the colour and the rows of tables,
// Dash the dashes and shapes, Facets the panels and the columns of tables.
type Layout struct {
	By, Dash *Factor // nil where there is none
	Facets   []Factor
}

// Arrange chooses the meaning of each factor. By defaults to the factor of the most values among
// those that are compared, the facet to the first that says under which circumstances.
func (v View) Arrange(s record.Summary) (Layout, error) {
	rest := Factors(s)
	var l Layout
	for _, asked := range []struct{ flag, key string }{{"--by", v.By}, {"--facet", v.Facet}} {
		if asked.key == "" {
			continue
		}
		i, err := findFactor(rest, asked.key)
		if err != nil {
			return Layout{}, fmt.Errorf("%s %q: %w", asked.flag, asked.key, err)
		}
		if asked.flag == "--by" {
			l.By = &rest[i]
		} else {
			l.Facets = []Factor{rest[i]}
		}
		chosen := rest[i]
		rest = slices.Concat(rest[:i:i], rest[i+1:])
		rest = slices.DeleteFunc(rest, func(f Factor) bool { return determines(s, chosen, f) })
	}
	rest = independent(s, rest)
	if l.By == nil && len(rest) > 0 {
		i := compared(s, rest)
		l.By = &rest[i]
		rest = slices.Concat(rest[:i:i], rest[i+1:])
	}
	l.place(s, rest)
	return l, nil
}

// independent drops the factors that another factor determines. Keys with paired values (zip) determine
// each other: it keeps the first key.
func independent(s record.Summary, all []Factor) (kept []Factor) {
	for i, f := range all {
		determined := false
		for j, other := range all {
			determined = determined || i != j && determines(s, other, f) && (j < i || !determines(s, f, other))
		}
		if !determined {
			kept = append(kept, f)
		}
	}
	return kept
}

// determines reports whether points with the same value of one factor always have the same value of the
// other factor. The record that a point is from counts as independent of all settings.
func determines(s record.Summary, one, other Factor) bool {
	if one.Key == RecordKey || other.Key == RecordKey {
		return false
	}
	levels := map[int]int{}
	for _, g := range s.Groups {
		level := other.Level(g.Point)
		if known, seen := levels[one.Level(g.Point)]; seen && known != level {
			return false
		}
		levels[one.Level(g.Point)] = level
	}
	return true
}

// place gives the factors that nobody asked for dashes or panels.
func (l *Layout) place(s record.Summary, rest []Factor) {
	if l.By == nil {
		return
	}
	dash := -1
	for i := range rest {
		fits := len(rest[i].Values) <= maxDashes && len(l.By.Values) <= MaxHues
		panels := len(l.Facets) + len(rest) - 1
		switch {
		case !fits:
		case rest[i].Key == RecordKey, !circumstance(s, rest[i].Key):
			dash = i
		case dash < 0 && panels > 0 && (i > 0 || len(l.Facets) > 0):
			dash = i // the first circumstance is better seen in panels
		}
	}
	for i := range rest {
		if i == dash {
			l.Dash = &rest[i]
		} else {
			l.Facets = append(l.Facets, rest[i])
		}
	}
}

// circumstance reports whether points are compared only where they share the value of a key.
func circumstance(s record.Summary, key string) bool {
	return slices.ContainsFunc(s.Groups, func(g record.Group) bool {
		return slices.ContainsFunc(g.Circumstances, func(c record.Setting) bool { return c.Key == key })
	})
}

// compared is the index of the factor with the most values, of those that are no circumstance where
// there is one.
func compared(s record.Summary, all []Factor) int {
	rank := func(f Factor) int {
		n := len(f.Values)
		if f.Key == RecordKey {
			n = 0
		}
		if !circumstance(s, f.Key) {
			n += 1 << 30
		}
		return n
	}
	best := 0
	for i := range all {
		if rank(all[i]) > rank(all[best]) {
			best = i
		}
	}
	return best
}

// errNoFactor says that no factor is left to choose.
var errNoFactor = errors.New("no key of these runs is left that takes several values; " +
	"keys of a plan's sweep are accepted")

// findFactor finds a factor by its key or by an unambiguous end of it.
func findFactor(all []Factor, key string) (int, error) {
	found := -1
	var names []string
	for i, f := range all {
		names = append(names, f.Key)
		switch {
		case f.Key == key:
			return i, nil
		case !strings.HasSuffix(f.Key, "."+key):
		case found >= 0:
			return 0, fmt.Errorf("%s and %s both end so; write the whole key", all[found].Key, f.Key)
		default:
			found = i
		}
	}
	switch {
	case found >= 0:
		return found, nil
	case len(names) == 0:
		return 0, errNoFactor
	}
	return 0, fmt.Errorf("no such key takes several values; accepted: %s", strings.Join(names, ", "))
}

// Panel names the facet of a point by its values, with their keys where a value is no word; empty
// without facets.
func (l *Layout) Panel(p record.Point) string {
	values := make([]string, len(l.Facets))
	for i := range l.Facets {
		values[i] = l.Facets[i].NameOf(p)
		if strings.IndexFunc(values[i], unicode.IsLetter) != 0 {
			values[i] = l.Facets[i].Name + " " + values[i]
		}
	}
	return strings.Join(values, ", ")
}

// Panels names the facets of a summary, in the order of the sweep: at least one, empty without
// facets.
func (l *Layout) Panels(s record.Summary) (names []string) {
	type placed struct {
		name   string
		levels []int
	}
	var all []placed
	for _, g := range s.Groups {
		one := placed{name: l.Panel(g.Point)}
		for i := range l.Facets {
			one.levels = append(one.levels, l.Facets[i].Level(g.Point))
		}
		if !slices.ContainsFunc(all, func(o placed) bool { return o.name == one.name }) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return slices.Compare(a.levels, b.levels) })
	for _, one := range all {
		names = append(names, one.name)
	}
	return names
}

// Row names what a point is called within its facet: its values of By and Dash.
func (l *Layout) Row(p record.Point) string {
	var values []string
	for _, f := range []*Factor{l.By, l.Dash} {
		if f != nil {
			values = append(values, f.NameOf(p))
		}
	}
	return strings.Join(values, ", ")
}

// RowHeading names the keys of Row.
func (l *Layout) RowHeading() string {
	var names []string
	for _, f := range []*Factor{l.By, l.Dash} {
		if f != nil {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}
