package settings

import (
	"errors"
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
	unit.Fraction(0).Unit():   reflect.TypeFor[unit.Fraction](),
	unit.ByteRate(0).Unit():   reflect.TypeFor[unit.ByteRate](),
	unit.Throughput(0).Unit(): reflect.TypeFor[unit.Throughput](),
	unit.Speed(0).Unit():      reflect.TypeFor[unit.Speed](),
	unit.Size(0).Unit():       reflect.TypeFor[unit.Size](),
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

// field reads the value of a key, which the field's tags accept.
func (d *decoder) field(f *field.Tag, n *syntax.Node, v reflect.Value) {
	if listOrWord(f, v.Type()) && n.Kind == syntax.Scalar {
		if n.Text != f.Words[0] {
			d.errorf(n, "found %s where %s is expected, or a list such as [a, b]", syntax.Found(n), f.Words[0])
		}
		v.SetZero()
		return
	}
	before, read := len(d.errs), v
	switch {
	case f.Choice(v.Type()):
		read = reflect.New(reflect.TypeFor[string]()).Elem()
		defer func() { v.SetBool(read.String() == f.Words[1]) }()
	case f.Unit != "" && v.Kind() != reflect.Pointer:
		read = as(v, quantity(v.Type(), f.Unit))
	}
	d.value(n, read)
	for read.Kind() == reflect.Pointer && !read.IsNil() && read.Type() != nodeType {
		read = read.Elem()
	}
	if len(d.errs) > before || n.Kind != syntax.Scalar {
		return
	}
	accepted := f.Refuses(read)
	if f.Words != nil && read.CanInt() && !slices.Contains(f.Words, strings.TrimPrefix(n.Text, "+")) {
		accepted = field.List(f.Words) // such as 093 for 93
	}
	switch {
	case accepted == "":
	case f.Words == nil:
		d.errorf(n, "%s is out of range; accepted is %s", syntax.Printable(n.Text, syntax.QuoteWidth), accepted)
	case read.Kind() != reflect.String:
		d.errorf(n, "%s is not accepted; accepted are %s", syntax.Printable(n.Text, syntax.QuoteWidth),
			strings.Join(f.Words, ", "))
	case len(d.errs) < syntax.MaxErrors:
		d.errs = append(d.errs, syntax.UnknownWord(n, f.Key, f.Words))
	}
}

// listOrWord reports whether a field holds a list, or nil for the one word of its tag.
func listOrWord(f *field.Tag, t reflect.Type) bool {
	return t.Kind() == reflect.Slice && len(f.Words) == 1
}

// others sees to it that keys do not stand beside what they exclude, nor without what they go with:
// a default gives way, a key that is given is an error.
func (d *decoder) others(n *syntax.Node, v reflect.Value, fields []field.Tag) {
	given := func(key string) bool { _, ok := n.Get(key); return ok }
	for _, f := range fields {
		if f.Either != nil && !given(f.Key) && slices.ContainsFunc(f.Either, given) {
			v.FieldByIndex(f.Index).SetZero()
		}
	}
	for _, f := range fields {
		switch key, lone := f.Conflict(v, fields); {
		case lone && !given(f.Key):
			v.FieldByIndex(f.Index).SetZero()
		case lone:
			d.errorf(n.At(f.Key), "%s goes with %s only", f.Key, f.With)
		case slices.Contains(f.Either[:max(0, slices.Index(f.Either, f.Key))], key):
			rival, _ := field.Find(fields, key)
			d.errorf(n.At(f.Key), "%s and %s, which stands in line %d, exclude each other; give either %s (%s) or "+
				"%s (%s)", f.Key, key, n.At(key).Pos.Line, key, rival.Doc, f.Key, f.Doc)
		}
	}
}

// AtField places a [*field.Error] about what was read from n: it adds the place of the key, with
// its path, and the value as the plan has it. Other errors, and nil, stay as they are.
func AtField(n *syntax.Node, err error) error {
	var wrong *field.Error
	if !errors.As(err, &wrong) {
		return err
	}
	value := wrong.Value
	for _, key := range wrong.Keys {
		n = n.At(key)
	}
	if n != nil && n.Kind == syntax.Scalar && n.Text != "" {
		value = n.Text
	}
	return syntax.Errorf(n, "%s is %s: must be %s", strings.Join(wrong.Keys, "."), value, wrong.Accepted)
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
