package plan

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshaler is implemented by types that read themselves from a node: units, and values of several forms.
// Errors made with [Errorf] keep their place; others are given n's.
type Unmarshaler interface{ UnmarshalPlan(n *Node) error }

// Marshaler is the inverse of [Unmarshaler].
type Marshaler interface{ MarshalPlan() (*Node, error) }

// Defaulter is implemented, on the pointer, by structs that [Decode] makes anew: items of lists, values of maps, and what
// a nil pointer is to point to. SetDefaults fills in what a plan may leave out.
type Defaulter interface{ SetDefaults() }

var (
	nodeType        = reflect.TypeFor[*Node]()
	unmarshalerType = reflect.TypeFor[Unmarshaler]()
)

const (
	intoMessage = "plan: Decode needs a pointer that is not nil"
	typeMessage = "plan: Decode and Encode know structs, pointers, slices, map[string]T, string, bool, numbers and *Node, not "
)

// Decode reads n into what `into` points to: a struct whose fields have tags `plan:"key"`, or any of the types below.
//
// A key that is absent leaves its field as it is, so defaults are what stands in `into` beforehand; `plan:"key,required"`
// makes absence an error. Structs embedded without a tag count as part of the outer one. Fields may be structs, pointers (nil
// if the plan says null), slices, map[string]T, string, bool, integers, floats, *Node (which gets the raw syntax), and types
// that implement [Unmarshaler]. A *Node field tagged `plan:",node"` gets the very node that the struct is read from, for
// later errors about it. Lists and maps replace what was there.
//
// All errors are collected, each with its place: unknown keys with the nearest known one, mismatched types, numbers out of
// range, infinite or fractional. Decode panics if into is no pointer or holds a type that it does not know.
//
// Further tags of a field say more of what is accepted, to Decode and to [SchemaOf] alike: `words:"sum|mean"` are the only
// words or numbers, `range:"1..1000"`, "0.." and ">0" bound a number, `names:"model"` says that a *Node names something of that sort, and
// `doc:"…"` is what the key means, in a few words.
func Decode(n *Node, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(intoMessage)
	}
	if n == nil {
		return Errorf(nil, "there is nothing to read")
	}
	d := decoder{}
	d.value(n, v.Elem())
	return join(d.errs)
}

type decoder struct{ errs Errors }

func (d *decoder) errorf(n *Node, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, Errorf(n, format, args...))
	}
}

func (d *decoder) value(n *Node, v reflect.Value) {
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
		if err := u.UnmarshalPlan(n); err != nil && len(d.errs) < maxErrors {
			d.errs = append(d.errs, flatten(n, err)...)
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

func (d *decoder) pointer(n *Node, v reflect.Value) {
	if n.Kind == Null {
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

func (d *decoder) slice(n *Node, v reflect.Value) {
	if n.Kind != List {
		d.errorf(n, "found %s where a list is expected, such as [a, b]", found(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		setDefaults(out.Index(i).Addr())
		d.value(item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(n *Node, v reflect.Value) {
	if v.Type().Key().Kind() != reflect.String {
		panic(typeMessage + v.Type().String())
	}
	if n.Kind != Map {
		d.errorf(n, "found %s where a map is expected, such as {key: value}", found(n))
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

func (d *decoder) structure(n *Node, v reflect.Value) {
	fields := taggedFields(v.Type())
	for _, f := range fields {
		if f.node {
			v.FieldByIndex(f.index).Set(reflect.ValueOf(n))
		}
	}
	if n.Kind != Map {
		d.errorf(n, "found %s where a map with the keys %s is expected", found(n), strings.Join(keysOf(fields), ", "))
		return
	}
	for _, f := range n.Fields {
		field, ok := fieldFor(fields, f.Key)
		if !ok {
			if len(d.errs) < maxErrors {
				d.errs = append(d.errs, UnknownKey(n, f, keysOf(fields)))
			}
			continue
		}
		d.field(field, f.Value, v.FieldByIndex(field.index))
	}
	var missing []string
	for _, f := range fields {
		if _, given := n.Get(f.key); f.required && !given {
			missing = append(missing, f.key)
		}
	}
	if len(missing) > 0 {
		d.errorf(n, "missing: %s", strings.Join(missing, ", "))
	}
}

// UnknownKey makes the error about a field f of the map n that is not among the known keys.
func UnknownKey(n *Node, f Field, known []string) *Error {
	return KeyErrorf(n, f, "unknown key %s%s", quote(f.Key), suggest(f.Key, "accepted", known))
}

// UnknownWord makes the error about a scalar n that is none of the known words, for a what such as "model" or "kind".
func UnknownWord(n *Node, what string, known []string) *Error {
	if n.Kind != Scalar {
		return Errorf(n, "found %s where a %s is expected (accepted: %s)", found(n), what, strings.Join(known, ", "))
	}
	return Errorf(n, "unknown %s %s%s", what, quote(n.Text), suggest(n.Text, "accepted", known))
}

// found says what stands at n, for messages about a wrong type.
func found(n *Node) string {
	switch {
	case n.Kind == Scalar && n.Quoted:
		return "the text " + quote(n.Text)
	case n.Kind == Scalar:
		return quote(n.Text)
	default:
		return n.Kind.String()
	}
}

// scalar reads strings, truth values and numbers.
func (d *decoder) scalar(n *Node, v reflect.Value) {
	wanted := scalarNames(v.Type())
	if n.Kind != Scalar || n.Quoted && v.Kind() != reflect.String {
		d.errorf(n, "found %s where %s is expected", found(n), wanted)
		return
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(n.Text)
	case v.Kind() == reflect.Bool:
		if n.Text != "true" && n.Text != "false" {
			d.errorf(n, "found %s where %s is expected", found(n), wanted)
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

func (d *decoder) integer(n *Node, v reflect.Value, wanted string) {
	var err error
	digits := strings.TrimLeft(n.Text, "+-")
	switch {
	case digits == "" || strings.Trim(digits, "0123456789") != "" || len(n.Text)-len(digits) > 1:
		d.errorf(n, "found %s where %s is expected", found(n), wanted)
		return
	case v.CanInt():
		var i int64
		i, err = strconv.ParseInt(n.Text, 10, v.Type().Bits())
		v.SetInt(i)
	case n.Text[0] == '-':
		d.errorf(n, "found %s where %s is expected", found(n), wanted)
		return
	default:
		var u uint64
		u, err = strconv.ParseUint(strings.TrimPrefix(n.Text, "+"), 10, v.Type().Bits())
		v.SetUint(u)
	}
	if err != nil {
		d.errorf(n, "%s does not fit %d bits", quote(n.Text), v.Type().Bits())
	}
}

func (d *decoder) float(n *Node, v reflect.Value, wanted string) {
	f, err := parseFloat(n.Text, v.Type().Bits())
	if err != nil {
		d.errorf(n, "%s %w; %s is expected", quote(n.Text), err, wanted)
		return
	}
	v.SetFloat(f)
}

var (
	errNoNumber   = errors.New("is no number")
	errOutOfRange = errors.New("is out of the range of numbers")
)

// parseFloat reads a finite decimal number; hexadecimal, underscores, inf and nan are refused.
func parseFloat(text string, bits int) (float64, error) {
	if strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, errNoNumber
	}
	f, err := strconv.ParseFloat(text, bits)
	if errors.Is(err, strconv.ErrRange) || math.IsInf(f, 0) {
		return 0, errOutOfRange
	}
	if err != nil {
		return 0, errNoNumber
	}
	return f, nil
}

var _ fmt.Stringer = (*Node)(nil)
