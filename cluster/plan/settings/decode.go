package settings

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Unmarshaler is implemented by types that read themselves from a node: units, and values of
// several forms. Errors made with [Errorf] keep their place; others are given n's.
type Unmarshaler interface{ UnmarshalPlan(n *syntax.Node) error }

// Marshaler is the inverse of [Unmarshaler].
type Marshaler interface{ MarshalPlan() (*syntax.Node, error) }

// Defaulter is implemented, on the pointer, by structs that [Decode] creates: items of lists,
// values of maps, and what a nil pointer is to point to. SetDefaults fills in what a plan may leave
// out.
type Defaulter interface{ SetDefaults() }

var (
	nodeType        = reflect.TypeFor[*syntax.Node]()
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
)

const (
	intoMessage = "settings: Decode needs a pointer that is not nil"
	typeMessage = "settings: Decode and Encode know structs, pointers, slices, map[string]T, string, bool, numbers " +
		"and *Node, not "
)

// Decode reads n into what `into` points to: a struct whose fields have tags `plan:"key"`, or any
// of the types below.
//
// A key that is absent leaves its field as it is, so defaults are what stands in `into` beforehand;
// `plan:"key,required"` makes absence an error. Structs embedded without a tag count as part of the
// outer one. Fields may be structs, pointers (nil if the plan says null), slices, map[string]T,
// string, bool, integers, floats, *Node (which gets the raw syntax), and types that implement
// [Unmarshaler]. A *Node field tagged `plan:",node"` gets the very node that the struct is read
// from, for later errors about it. Lists and maps replace what was there.
//
// All errors are collected, each with its place: unknown keys with the nearest known one,
// mismatched types, numbers out of range, infinite or fractional. Decode panics if into is no
// pointer or holds a type that it does not know.
//
// Further tags of a field say more of what is accepted, to Decode and to [SchemaOf] alike:
// `words:"sum|mean"` are the only words or numbers, `range:"1..1000"`, "0.." and ">0" bound a
// number, `names:"model"` says that a *Node names something of that sort, and `doc:"…"` is what the
// key means, in a few words. besides are keys that somebody else has taken out of n: errors about
// unknown keys name them as well.
func Decode(n *syntax.Node, into any, besides ...string) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(intoMessage)
	}
	if n == nil {
		return syntax.Errorf(nil, "there is nothing to read")
	}
	d := decoder{top: n, besides: besides}
	d.value(n, v.Elem())
	return syntax.Join(d.errs)
}

type decoder struct {
	errs    syntax.Errors
	top     *syntax.Node
	besides []string // keys that top may have had
}

func (d *decoder) errorf(n *syntax.Node, format string, args ...any) {
	if len(d.errs) < syntax.MaxErrors {
		d.errs = append(d.errs, syntax.Errorf(n, format, args...))
	}
}

func (d *decoder) value(n *syntax.Node, v reflect.Value) {
	v = as(v, quantity(v.Type(), ""))
	if v.Type() == nodeType {
		v.Set(reflect.ValueOf(n))
		return
	}
	if v.Kind() == reflect.Pointer {
		d.pointer(n, v)
		return
	}
	if reflect.PointerTo(v.Type()).Implements(unmarshalerType) {
		u := v.Addr().Interface().(Unmarshaler)
		if err := u.UnmarshalPlan(n); err != nil && len(d.errs) < syntax.MaxErrors {
			d.errs = append(d.errs, syntax.Flatten(n, err)...)
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v)
	case reflect.Slice:
		d.slice(n, v)
	case reflect.Map:
		d.mapping(n, v)
	default:
		d.scalar(n, v)
	}
}

func (d *decoder) pointer(n *syntax.Node, v reflect.Value) {
	if n.Kind == syntax.Null {
		v.SetZero()
		return
	}
	p := reflect.New(v.Type().Elem())
	if v.IsNil() {
		setDefaults(p)
	} else {
		p.Elem().Set(v.Elem())
	}
	d.value(n, p.Elem())
	v.Set(p)
}

func setDefaults(p reflect.Value) {
	if f, ok := p.Interface().(Defaulter); ok {
		f.SetDefaults()
	}
}

func (d *decoder) slice(n *syntax.Node, v reflect.Value) {
	if n.Kind != syntax.List {
		example := "[a, b]"
		if n.Kind == syntax.Map {
			example = "[{…}, {…}]"
		}
		d.errorf(n, "found %s where a list is expected, such as %s", syntax.Found(n), example)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		setDefaults(out.Index(i).Addr())
		d.value(item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(n *syntax.Node, v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		panic(typeMessage + v.Type().String())
	}
	if n.Kind != syntax.Map {
		d.errorf(n, "found %s where a map is expected, such as {key: value}", syntax.Found(n))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.Fields))
	for _, f := range n.Fields {
		item := reflect.New(v.Type().Elem())
		setDefaults(item)
		d.value(f.Value, item.Elem())
		out.SetMapIndex(reflect.ValueOf(f.Key).Convert(v.Type().Key()), item.Elem())
	}
	v.Set(out)
}

// unknownKey makes the error about a key that a map does not accept. It suggests the sections of the map that
// accept the key, unless a key of the map is similar.
func unknownKey(n *syntax.Node, f syntax.Field, fields []field.Tag, accepted []string) *syntax.Error {
	err := syntax.UnknownKey(n, f, accepted)
	var within []string
	for _, section := range fields {
		t := section.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if section.Node || t == nodeType.Elem() || t.Kind() != reflect.Struct {
			continue
		}
		if _, known := field.Find(field.Tags(t), f.Key); known {
			within = append(within, strings.TrimPrefix(n.Path()+"."+section.Key+"."+f.Key, "."))
		}
	}
	if len(within) > 0 && err.Lacks(f) {
		return err.Hint("; did you mean " + strings.Join(within, " or ") + "?")
	}
	return err
}

// share says how a fraction is written that stands in the place of a map with one.
func share(n *syntax.Node, fields []field.Tag) string {
	if n.Kind == syntax.Scalar && strings.HasSuffix(n.Text, "%") {
		for _, f := range fields {
			if f.Unit == "fraction" {
				return "; did you mean {" + f.Key + ": " + n.Text + "}?"
			}
		}
	}
	return ""
}

func (d *decoder) structure(n *syntax.Node, v reflect.Value) {
	fields := field.Tags(v.Type())
	for _, f := range fields {
		if f.Node {
			v.FieldByIndex(f.Index).Set(reflect.ValueOf(n))
		}
	}
	if n.Kind != syntax.Map {
		d.errorf(n, "found %s where a map with the keys %s is expected%s", syntax.Found(n),
			strings.Join(keysOf(fields), ", "), share(n, fields))
		return
	}
	for _, f := range n.Fields {
		known, ok := field.Find(fields, f.Key)
		if !ok {
			if accepted := keysOf(fields); len(d.errs) < syntax.MaxErrors {
				if n == d.top {
					accepted = append(accepted, d.besides...)
				}
				slices.Sort(accepted)
				d.errs = append(d.errs, unknownKey(n, f, fields, accepted))
			}
			continue
		}
		d.field(&known, f.Value, v.FieldByIndex(known.Index))
	}
	var missing, examples []string
	for _, f := range fields {
		if _, given := n.Get(f.Key); f.Required && !given {
			missing = append(missing, f.Key)
			if e := example(&f, v.FieldByIndex(f.Index).Type()); e != "" {
				examples = append(examples, f.Key+": "+e)
			}
		}
	}
	if len(examples) > 0 {
		d.errorf(n, "missing: %s; such as %s", strings.Join(missing, ", "), strings.Join(examples, ", "))
	} else if len(missing) > 0 {
		d.errorf(n, "missing: %s", strings.Join(missing, ", "))
	}
	d.others(n, v, fields)
}

// scalar reads strings, truth values and numbers.
func (d *decoder) scalar(n *syntax.Node, v reflect.Value) {
	wanted := scalarNames(v.Type())
	if n.Kind != syntax.Scalar || n.Quoted && v.Kind() != reflect.String {
		d.errorf(n, "found %s where %s is expected", syntax.Found(n), wanted)
		return
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(n.Text)
	case v.Kind() == reflect.Bool:
		if n.Text != "true" && n.Text != "false" {
			d.errorf(n, "found %s where %s is expected", syntax.Found(n), wanted)
			return
		}
		v.SetBool(n.Text == "true")
	case v.CanInt(), v.CanUint():
		d.integer(n, v, wanted)
	case v.CanFloat():
		d.float(n, v, wanted)
	}
}

func scalarNames(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "a whole number"
	case t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return "a whole number of 0 or more"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "a number"
	}
	panic(typeMessage + t.String())
}

func (d *decoder) integer(n *syntax.Node, v reflect.Value, wanted string) {
	var err error
	digits := strings.TrimLeft(n.Text, "+-")
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "" || len(n.Text)-len(digits) > 1:
		d.errorf(n, "found %s where %s is expected", syntax.Found(n), wanted)
		return
	case v.CanInt():
		var i int64
		i, err = strconv.ParseInt(n.Text, 10, v.Type().Bits())
		v.SetInt(i)
	case n.Text[0] == '-':
		d.errorf(n, "found %s where %s is expected", syntax.Found(n), wanted)
		return
	default:
		var u uint64
		u, err = strconv.ParseUint(strings.TrimPrefix(n.Text, "+"), 10, v.Type().Bits())
		v.SetUint(u)
	}
	if err != nil {
		d.errorf(n, "%s does not fit %d bits", syntax.Quote(n.Text), v.Type().Bits())
	}
}

func (d *decoder) float(n *syntax.Node, v reflect.Value, wanted string) {
	f, err := unit.ParseFloat(n.Text, v.Type().Bits())
	if err != nil {
		d.errorf(n, "%s %w; %s is expected", syntax.Quote(n.Text), err, wanted)
		return
	}
	v.SetFloat(f)
}

// Overlay copies from one struct to another of the same type, both given as pointers, the fields
// that a plan sets as they are (those with a doc in their tags) and whose keys stand in the map n.
func Overlay(to, from any, n *syntax.Node) {
	target, source := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for _, f := range field.Tags(target.Type()) {
		if _, given := n.Get(f.Key); given && f.Doc != "" {
			target.FieldByIndex(f.Index).Set(source.FieldByIndex(f.Index))
		}
	}
}
