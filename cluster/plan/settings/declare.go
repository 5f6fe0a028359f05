package settings

import (
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// quantities are the types that read and write numbers of plain Go types, by what a tag unit calls
// them.
var quantities = map[string]reflect.Type{
	unit.Fraction(0).Unit(): reflect.TypeFor[unit.Fraction](),
	unit.ByteRate(0).Unit(): reflect.TypeFor[unit.ByteRate](),
	unit.Speed(0).Unit():    reflect.TypeFor[unit.Speed](),
	unit.Size(0).Unit():     reflect.TypeFor[unit.Size](),
}

var (
	goDuration = reflect.TypeFor[time.Duration]()
	duration   = reflect.TypeFor[unit.Duration]()
)

// quantity is the type that reads and writes values of type t, tagged with a unit or not: t itself
// where it needs no help.
func quantity(t reflect.Type, unitTag string) reflect.Type {
	if t == goDuration {
		return duration
	}
	if unitTag == "" {
		return t
	}
	q, known := quantities[unitTag]
	if !known || t.Kind() != q.Kind() {
		panic("settings: a " + t.String() + " has no unit " + unitTag)
	}
	return q
}

// as is an addressable value seen as one of another type of the same kind.
func as(v reflect.Value, t reflect.Type) reflect.Value {
	if v.Type() == t {
		return v
	}
	return v.Addr().Convert(reflect.PointerTo(t)).Elem()
}

// field reads the value of a key, and checks it by what the field's tags say.
func (d *decoder) field(f *field.Tag, n *syntax.Node, v reflect.Value) {
	if listOrWord(f, v.Type()) && n.Kind == syntax.Scalar {
		if n.Text != f.Words[0] {
			d.errorf(n, "found %s where %s is expected, or a list such as [a, b]", syntax.Found(n), f.Words[0])
		}
		v.SetZero()
		return
	}
	before := len(d.errs)
	if f.Unit != "" && v.Kind() != reflect.Pointer {
		v = as(v, quantity(v.Type(), f.Unit))
	}
	d.value(n, v)
	for v.Kind() == reflect.Pointer && !v.IsNil() && v.Type() != nodeType {
		v = v.Elem()
	}
	switch {
	case len(d.errs) > before || n.Kind != syntax.Scalar:
	case f.Words != nil && v.Kind() != reflect.String && !slices.Contains(f.Words, strings.TrimPrefix(n.Text, "+")):
		d.errorf(n, "%s is not accepted; accepted are %s", syntax.Printable(n.Text, syntax.QuoteWidth),
			strings.Join(f.Words, ", "))
	case f.Words != nil && !slices.Contains(f.Words, n.Text):
		if len(d.errs) < syntax.MaxErrors {
			d.errs = append(d.errs, syntax.UnknownWord(n, f.Key, f.Words))
		}
	case f.Range != nil && !f.Range.Holds(field.Number(v)):
		d.errorf(n, "%s is out of range; accepted is %s", syntax.Printable(n.Text, syntax.QuoteWidth), f.Range)
	}
}

// listOrWord reports whether a field holds a list, or nil for the one word of its tag.
func listOrWord(f *field.Tag, t reflect.Type) bool {
	return t.Kind() == reflect.Slice && len(f.Words) == 1
}

// either sees to it that one of the keys that exclude each other has a value: where one is given,
// the others have none.
func (d *decoder) either(n *syntax.Node, v reflect.Value, fields []field.Tag, f *field.Tag) {
	value, given := n.Get(f.Key)
	if !given {
		return
	}
	for _, key := range f.Rivals() {
		rival, _ := field.Find(fields, key)
		other, both := n.Get(key)
		switch {
		case !both:
			v.FieldByIndex(rival.Index).SetZero()
		case slices.Index(f.Either, key) < slices.Index(f.Either, f.Key):
			d.errorf(value, "%s and %s, which stands in line %d, exclude each other; give either %s (%s) or %s (%s)",
				f.Key, key, other.Pos.Line, rival.Key, rival.Doc, f.Key, f.Doc)
		}
	}
}

// with sees to it that a key that goes with another has no value without it.
func (d *decoder) with(n *syntax.Node, v reflect.Value, fields []field.Tag, f *field.Tag) {
	value, given := n.Get(f.Key)
	own := v.FieldByIndex(f.Index)
	if f.With == nil || own.IsZero() || field.Met(v, fields, f.With) {
		return
	}
	if !given {
		own.SetZero()
		return
	}
	d.errorf(value, "%s goes with %s only", f.Key, f.With)
}

func keysOf(fields []field.Tag) []string {
	var keys []string
	for _, f := range fields {
		if !f.Node {
			keys = append(keys, f.Key)
		}
	}
	sort.Strings(keys)
	return keys
}
