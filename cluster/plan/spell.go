package plan

import (
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Spell writes a plan with a sweep so that every default is spelled out that its points have in
// common. written is the plan as it stands, without its sweep; resolved are its points with every
// default, in order. What the sweep varies, and what has other defaults at other points, stays as
// it was written.
func Spell(written *syntax.Node, axes Sweep, resolved []*syntax.Node) *syntax.Node {
	var varied branch
	for _, a := range axes {
		varied.add(a.steps)
	}
	return spell(written, resolved, &varied)
}

// SpellValue is Spell for a value of an axis: resolved are the points at which it is used. Later
// axes may vary what is in it. It returns the value as it was written where it is no map, and where
// the points have nothing at the axis's path.
func SpellValue(axes Sweep, axis int, value *syntax.Node, resolved []*syntax.Node) *syntax.Node {
	varied := &branch{}
	for _, a := range axes[axis+1:] {
		varied.add(a.steps)
	}
	if len(varied.next) == 0 {
		varied = nil
	}
	there := make([]*syntax.Node, len(resolved))
	for i, root := range resolved {
		node, found := root.Lookup(axes[axis].Path)
		if !found || node.Kind != syntax.Map {
			return value
		}
		there[i] = node
	}
	for _, s := range axes[axis].steps {
		varied = varied.under(s)
	}
	return spell(value, there, varied)
}

// branch is what a sweep varies below a place: the pieces of the axes' paths as a tree.
type branch struct {
	ends bool // the place itself is varied
	next []twig
}

type twig struct {
	syntax.Step
	*branch
}

func (b *branch) add(steps []syntax.Step) {
	if len(steps) == 0 {
		b.ends = true
		return
	}
	next := b.under(steps[0])
	if next == nil {
		next = &branch{}
		b.next = append(b.next, twig{steps[0], next})
	}
	next.add(steps[1:])
}

// under is what is varied at and below a piece of a path; nil if nothing is.
func (b *branch) under(s syntax.Step) *branch {
	if b == nil {
		return nil
	}
	for _, t := range b.next {
		if t.Step == s {
			return t.branch
		}
	}
	return nil
}

// at is under for an item of a list, which pieces of paths may name in several ways.
func (b *branch) at(list *syntax.Node, item int) *branch {
	if b == nil {
		return nil
	}
	var found branch
	for _, t := range b.next {
		if child, err := list.Child(t.Step); err == nil && child == list.Items[item] {
			found.ends = found.ends || t.ends
			found.next = append(found.next, t.next...)
		}
	}
	if !found.ends && found.next == nil {
		return nil
	}
	return &found
}

// spell spells one place out; written is nil where nothing stands. It returns nil for nothing.
func spell(written *syntax.Node, resolved []*syntax.Node, varied *branch) *syntax.Node {
	first := resolved[0]
	switch {
	case varied != nil && varied.ends, first == nil && written == nil:
		return written
	case varied == nil && allEqual(resolved):
		return first
	case all(resolved, syntax.Map) && (written == nil || written.Kind == syntax.Map):
		return spellMap(written, resolved, varied)
	case all(resolved, syntax.List) && written != nil && written.Kind == syntax.List:
		return spellList(written, resolved, varied)
	}
	return written
}

func allEqual(nodes []*syntax.Node) bool {
	return nodes[0] != nil && !slices.ContainsFunc(nodes, func(n *syntax.Node) bool { return !nodes[0].Equal(n) })
}

func all(nodes []*syntax.Node, kind syntax.Kind) bool {
	return !slices.ContainsFunc(nodes, func(n *syntax.Node) bool { return n == nil || n.Kind != kind })
}

// spellMap spells the keys out in the order of the resolved plan; those that are written and not in
// it follow.
func spellMap(written *syntax.Node, resolved []*syntax.Node, varied *branch) *syntax.Node {
	var fields []syntax.Field
	keys := slices.Clone(resolved[0].Fields)
	if written != nil {
		for _, f := range written.Fields {
			if _, known := resolved[0].Get(f.Key); !known {
				keys = append(keys, f)
			}
		}
	}
	for _, f := range keys {
		there, _ := written.Get(f.Key)
		values := make([]*syntax.Node, len(resolved))
		missing := false
		for i, r := range resolved {
			values[i], _ = r.Get(f.Key)
			missing = missing || values[i] == nil
		}
		value := there
		if !missing {
			value = spell(there, values, varied.under(syntax.Step{Text: f.Key}))
		}
		if value != nil {
			fields = append(fields, syntax.Entry(f.Key, value.Clone()))
		}
	}
	if written == nil && fields == nil {
		return nil
	}
	return syntax.NewMap(fields...)
}

// spellList spells items out that the points have as well, by their names, or else by their places.
func spellList(written *syntax.Node, resolved []*syntax.Node, varied *branch) *syntax.Node {
	var items []*syntax.Node
	for i, item := range written.Items {
		values := make([]*syntax.Node, len(resolved))
		for k, r := range resolved {
			values[k] = counterpart(written, r, i)
		}
		if !slices.Contains(values, nil) {
			item = spell(item, values, varied.at(written, i))
		}
		items = append(items, item.Clone())
	}
	return syntax.NewList(items...)
}

// counterpart is the item of another list that is the i-th of this one: of the same name, or at the
// same place in a list of as many. It is nil if there is none.
func counterpart(list, other *syntax.Node, i int) *syntax.Node {
	name, named := list.Items[i].Get("name")
	if !named {
		if len(other.Items) == len(list.Items) {
			return other.Items[i]
		}
		return nil
	}
	for _, item := range other.Items {
		if has, ok := item.Get("name"); ok && has.Text == name.Text {
			return item
		}
	}
	return nil
}
