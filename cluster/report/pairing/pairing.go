// Package pairing finds, for two records, the points that answer each other and the settings in
// which their plans differ.
package pairing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/report"
)

// Pairs are the points of two records that answer each other.
type Pairs struct {
	// Of has the indices of two points each, in the order of the first record's points.
	Of [][2]int
	// OnlyA and OnlyB are the indices of the others.
	OnlyA, OnlyB []int
	// Key is the one setting in which paired points differ; empty where they are equal.
	Key string
}

// Match pairs equal points, and where none are equal those that differ in one key alone: the same
// key for all, which each record varies so that no point has two partners.
func Match(a, b []record.Point) Pairs {
	p := match(a, b, "")
	if len(p.Of) > 0 {
		return p
	}
	for _, key := range keysOf(a, b) {
		if with := match(a, b, key); len(with.Of) > len(p.Of) {
			p = with
		}
	}
	return p
}

// keysOf are the keys of points, in the order in which they first occur.
func keysOf(lists ...[]record.Point) (keys []string) {
	for _, points := range lists {
		for _, p := range points {
			for _, s := range p {
				if !slices.Contains(keys, s.Key) {
					keys = append(keys, s.Key)
				}
			}
		}
	}
	return keys
}

// match pairs points that are equal but for a key.
func match(a, b []record.Point, key string) Pairs {
	p := Pairs{Key: key}
	places := map[string][]int{}
	for i, point := range b {
		k := Without(point, key).Key()
		places[k] = append(places[k], i)
	}
	paired, asked := map[int]bool{}, map[string]bool{}
	for i, point := range a {
		k := Without(point, key).Key()
		if len(places[k]) > 1 || asked[k] {
			return Pairs{} // two points would have one partner
		}
		asked[k] = true
		if len(places[k]) == 0 {
			p.OnlyA = append(p.OnlyA, i)
			continue
		}
		paired[places[k][0]] = true
		p.Of = append(p.Of, [2]int{i, places[k][0]})
	}
	for i := range b {
		if !paired[i] {
			p.OnlyB = append(p.OnlyB, i)
		}
	}
	return p
}

// Without returns a point without a key.
func Without(p record.Point, key string) record.Point {
	return slices.DeleteFunc(slices.Clone(p), func(s record.Setting) bool { return s.Key == key })
}

// Note says which key paired points differ in, with the values that each record has; empty where
// they are equal.
func (p *Pairs) Note(a, b []record.Point) string {
	if p.Key == "" || len(p.Of) == 0 {
		return ""
	}
	values := func(points []record.Point) string {
		var all []string
		for _, point := range points {
			v := report.NoValue
			if slices.ContainsFunc(point, func(s record.Setting) bool { return s.Key == p.Key }) {
				v = report.ValueName(point.Value(p.Key))
			}
			if !slices.Contains(all, v) {
				all = append(all, v)
			}
		}
		return report.ListSome(all)
	}
	return fmt.Sprintf("the points differ in %s alone: A has %s, B has %s", p.Key, values(a), values(b))
}

// Change is a setting in which two plans differ, as text; empty where a plan lacks it.
type Change struct {
	Key string `json:"key"`
	A   string `json:"a"`
	B   string `json:"b"`
}

// Changes lists the settings in which two resolved plans differ, but for their names. Plans that
// cannot be read have none.
func Changes(a, b string) []Change {
	one, errA := syntax.Parse("A", []byte(a))
	two, errB := syntax.Parse("B", []byte(b))
	if errA != nil || errB != nil {
		return nil
	}
	return slices.DeleteFunc(changes(nil, "", one, two), func(c Change) bool { return c.Key == "name" })
}

// changes compares what stands under a path. Lists of maps with names, such as nodes, are compared
// by these; other lists as a whole.
func changes(all []Change, path string, a, b *syntax.Node) []Change {
	if a != nil && b != nil && a.Equal(b) {
		return all
	}
	one, two := fields(a), fields(b)
	if one == nil || two == nil {
		return append(all, Change{Key: path, A: text(a), B: text(b)})
	}
	keys := slices.Clone(one)
	for _, f := range two {
		if find(keys, f.Key) == nil {
			keys = append(keys, f)
		}
	}
	for _, f := range keys {
		all = changes(all, strings.TrimPrefix(path+"."+f.Key, "."), find(one, f.Key), find(two, f.Key))
	}
	return all
}

// fields are the fields of a map, or the items of a list by their names; nil of anything else.
func fields(n *syntax.Node) (all []syntax.Field) {
	switch {
	case n == nil:
	case n.Kind == syntax.Map:
		return n.Fields
	case n.Kind == syntax.List:
		for _, item := range n.Items {
			name, ok := item.Get("name")
			if !ok || find(all, name.Text) != nil {
				return nil
			}
			all = append(all, syntax.Entry(name.Text, item))
		}
	}
	return all
}

func find(fields []syntax.Field, key string) *syntax.Node {
	for _, f := range fields {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// text writes a value on one line.
func text(n *syntax.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind == syntax.Scalar {
		return n.Text
	}
	written, err := n.JSON()
	if err != nil {
		return n.Kind.String()
	}
	return string(written)
}
