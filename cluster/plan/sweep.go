package plan

import (
	"slices"
	"strings"
)

// Limits of a sweep.
const (
	MaxPoints     = 10_000
	MaxPointNodes = 2_000_000 // values, lists and maps of all points together
	MaxLabel      = 200       // bytes, of a label that is given
)

// Sweep is the axes that a plan is multiplied out over, in the order of the file.
type Sweep []Axis

// Axis is a key path and the values that stand there, one after the other.
type Axis struct {
	Path   string
	Values []AxisValue
	steps  []step
	at     *Node // where the path is written
}

// Section is the key of the plan that the path begins with.
func (a *Axis) Section() string { return a.steps[0].text }

// AxisValue is one value of an axis. Its label is the value in flow style unless it has one: {label: L, ...} is a map with a
// label, {label: L, value: V} any other value with one, or a map that has a label: of its own.
type AxisValue struct {
	Label string
	Value *Node
}

// UnmarshalPlan reads a map of paths to lists of values.
func (s *Sweep) UnmarshalPlan(n *Node) error {
	*s = nil
	if n.Kind == Null {
		return nil
	}
	if n.Kind != Map {
		return Errorf(n, "found %s; a sweep is a map of key paths to lists, such as nodes.fast.compute.step: [2ms, 5ms]", found(n))
	}
	var errs Errors
	for _, f := range n.Fields {
		axis, err := readAxis(n, f)
		errs = append(errs, flatten(f.Value, err)...)
		*s = append(*s, axis)
	}
	return join(errs)
}

func readAxis(n *Node, f Field) (Axis, error) {
	a := Axis{Path: f.Key, at: &Node{Kind: Scalar, Text: f.Key, Pos: f.Pos, source: f.Value.source, parent: n, key: f.Key}}
	var err error
	if a.steps, err = splitPath(f.Key); err != nil {
		return a, Errorf(a.at, "%w", err)
	}
	if a.steps[0].text == "sweep" {
		return a, Errorf(a.at, "a sweep cannot sweep over itself")
	}
	if slices.Contains([]string{"version", "name", "repeats", "record"}, a.steps[0].text) {
		return a, Errorf(a.at, "%s holds for the whole plan; a sweep cannot vary it", quote(a.steps[0].text))
	}
	if f.Value.Kind != List || len(f.Value.Items) == 0 {
		return a, Errorf(f.Value, "found %s; give the values to sweep over as a list, such as [2ms, 5ms]", foundList(f.Value))
	}
	var errs Errors
	seen := map[string]int{}
	for i, item := range f.Value.Items {
		v, err := readAxisValue(item)
		errs = append(errs, flatten(item, err)...)
		if before, twice := seen[v.Label]; twice && err == nil {
			errs = append(errs, Errorf(item, "the label %s is given twice, to values %d and %d; give one a label: of its own",
				quote(v.Label), before+1, i+1))
		}
		seen[v.Label] = i
		a.Values = append(a.Values, v)
	}
	return a, join(errs)
}

func foundList(n *Node) string {
	if n.Kind == List {
		return "an empty list"
	}
	return found(n)
}

func readAxisValue(item *Node) (AxisValue, error) {
	label, ok := item.Get("label")
	if !ok {
		return AxisValue{Label: item.Flow(), Value: item}, nil
	}
	if label.Kind != Scalar || strings.TrimSpace(label.Text) == "" || len(label.Text) > MaxLabel {
		return AxisValue{}, Errorf(label, "found %s; a label is a text of 1 to %d bytes", found(label), MaxLabel)
	}
	value := item.Without("label")
	if isWrapped(value) {
		value = value.At("value")
	}
	return AxisValue{Label: label.Text, Value: value}, nil
}

// isWrapped reports whether a map has the one key value.
func isWrapped(n *Node) bool {
	return n.Kind == Map && len(n.Fields) == 1 && n.Fields[0].Key == "value"
}

// MarshalPlan writes the axes; a label is written where it is not the value itself.
func (s Sweep) MarshalPlan() (*Node, error) {
	var fields []Field
	for _, a := range s {
		var items []*Node
		for _, v := range a.Values {
			item := v.Value.Clone()
			if v.Label != v.Value.Flow() {
				if _, labelled := item.Get("label"); item.Kind != Map || labelled || isWrapped(item) {
					item = item.As("value")
				}
				item = NewMap(append([]Field{{Key: "label", Value: NewText(v.Label)}}, item.Fields...)...)
			}
			items = append(items, item)
		}
		fields = append(fields, Field{Key: a.Path, Value: NewList(items...)})
	}
	return NewMap(fields...), nil
}

// Point is one combination of a sweep's values.
type Point struct {
	Labels []Label // one for each axis, in the order of the file
	Values []*Node // what each axis has put into Root
	Root   *Node   // the plan with the values in place, without its sweep
}

// Label says which value an axis has at a point.
type Label struct {
	Key   string // the axis's path
	Value string // the value's label
}

// Axes reads the sweep of a plan; none is no error.
func Axes(root *Node) (Sweep, error) {
	var s Sweep
	n, ok := root.Get("sweep")
	if !ok {
		return nil, nil
	}
	return s, s.UnmarshalPlan(n)
}

// Points multiplies a plan out over its sweep: every combination of values, in the order of the file, the last axis
// fastest. A plan without a sweep is one point without labels. Points share nothing with each other or with root.
//
// Errors are about the sweep: paths that lead nowhere, labels given twice, axes that undo each other, more than
// [MaxPoints] points. Whether the plans that result are right is for [ReadPlan] to say.
func Points(root *Node) ([]Point, error) {
	axes, err := Axes(root)
	if err != nil {
		return nil, err
	}
	count := 1
	for _, a := range axes {
		if count *= len(a.Values); count > MaxPoints {
			return nil, Errorf(a.at, "the sweep has more than %d points up to this key", MaxPoints)
		}
	}
	base := root.Without("sweep")
	if total := count * root.size(); total > MaxPointNodes && count > 1 {
		return nil, Errorf(root.At("sweep"), "%d points of a plan of %d values are more than the %d that are accepted in all",
			count, root.size(), MaxPointNodes)
	}
	points := make([]Point, count)
	for i := range points {
		if points[i], err = point(base, axes, i); err != nil {
			return nil, err
		}
	}
	return points, nil
}

// point makes the i-th combination.
func point(base *Node, axes Sweep, i int) (Point, error) {
	p := Point{Root: base.Clone()}
	choice := make([]int, len(axes))
	for k := len(axes) - 1; k >= 0; k-- {
		choice[k] = i % len(axes[k].Values)
		i /= len(axes[k].Values)
	}
	var errs Errors
	var paths []string
	for k, a := range axes {
		v := a.Values[choice[k]]
		value := v.Value.Clone()
		if err := p.Root.set(a.steps, value, a.at); err != nil {
			errs = append(errs, flatten(a.at, err)...)
			continue
		}
		path := value.Path()
		for _, before := range paths {
			if rest, under := strings.CutPrefix(before, path); under && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				errs = append(errs, Errorf(a.at, "this replaces what the sweep puts at %s before; give this key first, or only one", before))
			}
		}
		paths = append(paths, path)
		p.Labels, p.Values = append(p.Labels, Label{a.Path, v.Label}), append(p.Values, value)
	}
	return p, join(errs)
}
