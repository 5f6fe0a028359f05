package plan

import (
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Limits of a sweep.
const (
	MaxPoints     = 10_000
	MaxPointNodes = 8_000_000 // values, lists and maps of all points together
	MaxLabel      = 200       // bytes, of a label that is given
)

// Sweep is the axes that a plan is multiplied out over, in the order of the file.
type Sweep []Axis

// Axis is a key path and the values that stand there, one after the other.
type Axis struct {
	Path   string
	Values []AxisValue
	// Zip numbers the group of axes, from 1, whose values are paired: the first of each with the
	// first of the others, and so on. 0 is an axis whose values meet all of the others.
	Zip   int
	steps []syntax.Step
	at    *syntax.Node // where the path is written
}

// Section is the key of the plan that the path begins with.
func (a *Axis) Section() string { return a.steps[0].Text }

// AxisValue is one value of an axis. Its label is the value in flow style unless it has one:
// {label: L, ...} is a map with a label, {label: L, value: V} any other value with one, or a map
// that has a key label itself.
type AxisValue struct {
	Label string
	Value *syntax.Node
}

// UnmarshalPlan reads a map of paths to lists of values.
func (s *Sweep) UnmarshalPlan(n *syntax.Node) error {
	*s = nil
	if n.Kind == syntax.Null {
		return nil
	}
	if n.Kind != syntax.Map {
		return syntax.Errorf(n,
			"found %s; a sweep is a map of key paths to lists, such as nodes.fast.compute.step: [2ms, 5ms]",
			syntax.Found(n))
	}
	var errs syntax.Errors
	for _, f := range n.Fields {
		if f.Key == zip {
			groups, err := readZip(f.Value)
			errs = append(errs, syntax.Flatten(f.Value, err)...)
			*s = append(*s, groups...)
			continue
		}
		axis, err := readAxis(n, f, true)
		errs = append(errs, syntax.Flatten(f.Value, err)...)
		*s = append(*s, axis)
	}
	return syntax.Join(errs)
}

// zip is the key of values that are paired. No key of a plan is called so.
const zip = "zip"

// readZip reads one group of paths whose values are paired, or a list of such groups.
func readZip(n *syntax.Node) (Sweep, error) {
	groups := []*syntax.Node{n}
	if n.Kind == syntax.List {
		groups = n.Items
	}
	var all Sweep
	var errs syntax.Errors
	for i, group := range groups {
		if group.Kind != syntax.Map || len(group.Fields) == 0 {
			errs = append(errs,
				syntax.Errorf(group,
					"found %s; paired are lists of as many values each, such as {train.batch: [8, 64], "+
						"train.optimizer.rate: [0.1, 0.2]}", syntax.Found(group)))
			continue
		}
		axes, err := readGroup(group)
		errs = append(errs, syntax.Flatten(group, err)...)
		for k := range axes {
			axes[k].Zip = i + 1
		}
		all = append(all, axes...)
	}
	return all, syntax.Join(errs)
}

func readGroup(group *syntax.Node) (Sweep, error) {
	var axes Sweep
	var errs syntax.Errors
	for _, f := range group.Fields {
		axis, err := readAxis(group, f, false)
		errs = append(errs, syntax.Flatten(f.Value, err)...)
		if first := len(axes) > 0; first && err == nil && axes[0].Values != nil &&
			len(axis.Values) != len(axes[0].Values) {
			errs = append(errs,
				syntax.Errorf(f.Value,
					"this list has %d values, and %s, with which it is paired, has %d; give both as many",
					len(axis.Values), axes[0].Path, len(axes[0].Values)))
		}
		axes = append(axes, axis)
	}
	if len(errs) > 0 {
		return axes, syntax.Join(errs)
	}
	return axes, pairedTwice(group, axes)
}

// pairedTwice returns an error about labels by which two points could not be told apart.
func pairedTwice(group *syntax.Node, axes Sweep) error {
	seen := map[string]int{}
	for i := range axes[0].Values {
		var labels []string
		for _, a := range axes {
			labels = append(labels, syntax.Quote(a.Values[i].Label))
		}
		text := strings.Join(labels, ", ")
		if before, twice := seen[text]; twice {
			return syntax.Errorf(group,
				"the labels %s are given twice, to the values %d and %d of each list; give one its own label",
				text, before+1, i+1)
		}
		seen[text] = i
	}
	return nil
}

// readAxis reads a path and its values; distinct are values of which no two may have one label.
func readAxis(n *syntax.Node, f syntax.Field, distinct bool) (Axis, error) {
	a := Axis{Path: f.Key, at: n.KeyNode(f)}
	var err error
	if a.steps, err = syntax.SplitPath(f.Key); err != nil {
		return a, syntax.Errorf(a.at, "%w", err)
	}
	if a.steps[0].Text == "sweep" {
		return a, syntax.Errorf(a.at, "a sweep cannot sweep over itself")
	}
	if slices.Contains([]string{"version", "name", "repeats", "record"}, a.steps[0].Text) {
		return a, syntax.Errorf(a.at, "%s holds for the whole plan; a sweep cannot vary it",
			syntax.Quote(a.steps[0].Text))
	}
	if f.Value.Kind != syntax.List || len(f.Value.Items) == 0 {
		return a, syntax.Errorf(f.Value, "found %s; give the values to sweep over as a list, such as [2ms, 5ms]",
			foundList(f.Value))
	}
	var errs syntax.Errors
	seen := map[string]int{}
	for i, item := range f.Value.Items {
		v, err := readAxisValue(item)
		errs = append(errs, syntax.Flatten(item, err)...)
		before, twice := seen[v.Label]
		if twice && err == nil && (distinct || !a.Values[before].Value.Equal(v.Value)) {
			errs = append(errs,
				syntax.Errorf(item, "the label %s is given twice, to values %d and %d; give one its own label",
					syntax.Quote(v.Label), before+1, i+1))
		}
		if !twice {
			seen[v.Label] = i
		}
		a.Values = append(a.Values, v)
	}
	return a, syntax.Join(errs)
}

func foundList(n *syntax.Node) string {
	if n.Kind == syntax.List {
		return "an empty list"
	}
	return syntax.Found(n)
}

func readAxisValue(item *syntax.Node) (AxisValue, error) {
	label, ok := item.Get("label")
	if !ok {
		return AxisValue{Label: item.Flow(), Value: item}, nil
	}
	if label.Kind != syntax.Scalar || strings.TrimSpace(label.Text) == "" || len(label.Text) > MaxLabel {
		return AxisValue{}, syntax.Errorf(label, "found %s; a label is a text of 1 to %d bytes", syntax.Found(label),
			MaxLabel)
	}
	value := item.Without("label")
	if isWrapped(value) {
		value = value.At("value")
	}
	return AxisValue{Label: label.Text, Value: value}, nil
}

// isWrapped reports whether a map has the one key value.
func isWrapped(n *syntax.Node) bool {
	return n.Kind == syntax.Map && len(n.Fields) == 1 && n.Fields[0].Key == "value"
}

// MarshalPlan writes the axes; a label is written where it is not the value itself.
func (s Sweep) MarshalPlan() (*syntax.Node, error) {
	var fields []syntax.Field
	var paired [][]syntax.Field
	at := 0
	for _, a := range s {
		var items []*syntax.Node
		for _, v := range a.Values {
			item := v.Value.Clone()
			if v.Label != v.Value.Flow() {
				if _, labelled := item.Get("label"); item.Kind != syntax.Map || labelled || isWrapped(item) {
					item = item.As("value")
				}
				item = syntax.NewMap(append([]syntax.Field{{Key: "label", Value: syntax.NewText(v.Label)}},
					item.Fields...)...)
			}
			items = append(items, item)
		}
		field := syntax.Entry(a.Path, syntax.NewList(items...))
		switch {
		case a.Zip == 0:
			fields = append(fields, field)
		case a.Zip > len(paired):
			if paired = append(paired, []syntax.Field{field}); len(paired) == 1 {
				at = len(fields)
			}
		default:
			paired[a.Zip-1] = append(paired[a.Zip-1], field)
		}
	}
	if len(paired) > 0 {
		fields = slices.Insert(fields, at, syntax.Entry(zip, groupsNode(paired)))
	}
	return syntax.NewMap(fields...), nil
}

// groupsNode is one group of paired lists, or a list of several.
func groupsNode(groups [][]syntax.Field) *syntax.Node {
	var maps []*syntax.Node
	for _, g := range groups {
		maps = append(maps, syntax.NewMap(g...))
	}
	if len(maps) == 1 {
		return maps[0]
	}
	return syntax.NewList(maps...)
}

// Point is one combination of a sweep's values.
type Point struct {
	Labels []Label        // one for each axis, in the order of the file
	Values []*syntax.Node // what each axis has put into Root
	Choice []int          // which of its values each axis has, counted from 0
	Root   *syntax.Node   // the plan with the values in place, without its sweep
}

// Label says which value an axis has at a point.
type Label struct {
	Key   string // the axis's path
	Value string // the value's label
}

// Axes reads the sweep of a plan; none is no error.
func Axes(root *syntax.Node) (Sweep, error) {
	var s Sweep
	n, ok := root.Get("sweep")
	if !ok {
		return nil, nil
	}
	return s, s.UnmarshalPlan(n)
}

// Points multiplies a plan out over its sweep: every combination of values, in the order of the
// file, the last axis fastest; axes that are paired go on together. A plan without a sweep is one
// point without labels. Points share nothing with each other or with root.
//
// Errors are about the sweep: paths that lead nowhere, labels given twice, axes that undo each
// other, more than [MaxPoints] points. Whether the plans that result are right is for [ReadPlan] to
// say.
func Points(root *syntax.Node) ([]Point, error) {
	axes, err := Axes(root)
	if err != nil {
		return nil, err
	}
	return multiply(root, root.Without("sweep"), axes)
}

// multiply puts every combination of the axes' values into base, which is what root is without
// them.
func multiply(root, base *syntax.Node, axes Sweep) ([]Point, error) {
	count := 1
	for k, a := range axes {
		if axes.follows(k) {
			continue
		}
		if count *= len(a.Values); count > MaxPoints {
			return nil, syntax.Errorf(a.at, "the sweep has more than %d points up to this key", MaxPoints)
		}
	}
	if size := base.Size(); count > 1 && size > MaxPointNodes/count {
		return nil, syntax.Errorf(root.At("sweep"), "%d points of a plan of %d values are more than the %d that are "+
			"accepted in all",
			count, size, MaxPointNodes)
	}
	points := make([]Point, count)
	for i := range points {
		var err error
		if points[i], err = point(base, axes, i); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// follows reports whether an axis goes on together with the one before it.
func (s Sweep) follows(k int) bool { return k > 0 && s[k].Zip > 0 && s[k].Zip == s[k-1].Zip }

// point makes the i-th combination.
func point(base *syntax.Node, axes Sweep, i int) (Point, error) {
	p := Point{Root: base.Clone()}
	choice := make([]int, len(axes))
	for k := len(axes) - 1; k >= 0; k-- {
		choice[k] = i % len(axes[k].Values)
		if !axes.follows(k) {
			i /= len(axes[k].Values)
		}
	}
	p.Choice = choice
	var errs syntax.Errors
	var paths []string
	for k, a := range axes {
		v := a.Values[choice[k]]
		value := v.Value.Clone()
		if err := p.Root.SetAt(a.steps, value, a.at); err != nil {
			errs = append(errs, syntax.Flatten(a.at, err)...)
			continue
		}
		path := value.Path()
		for _, before := range paths {
			if within(before, path) {
				errs = append(errs, syntax.Errorf(a.at,
					"this replaces what the sweep puts at %s before; give this key first, or only one", before))
			}
		}
		paths = append(paths, path)
		p.Labels, p.Values = append(p.Labels, Label{a.Path, v.Label}), append(p.Values, value)
	}
	nameRings(p.Root)
	return p, syntax.Join(errs)
}
