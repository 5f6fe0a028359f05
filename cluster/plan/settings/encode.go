package settings

import (
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Encode is the inverse of [Decode]: every tagged field is written, so that defaults are spelled
// out. Left out are nil pointers and nil nodes, and zero values of fields tagged `omitzero`.
// Entries of Go maps are sorted by key. Nodes are copied.
//
// It fails on numbers that are not finite and where a [Marshaler] fails, and panics on types that
// Decode does not know.
func Encode(v any) (*syntax.Node, error) {
	if v == nil {
		return &syntax.Node{}, nil
	}
	return encode(reflect.ValueOf(v))
}

func encode(v reflect.Value) (*syntax.Node, error) {
	if v.Type() == nodeType {
		if v.IsNil() {
			return &syntax.Node{}, nil
		}
		return v.Interface().(*syntax.Node).Clone(), nil
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return &syntax.Node{}, nil
	}
	if v.Type() == goDuration {
		v = v.Convert(duration)
	}
	if m, ok := v.Interface().(Marshaler); ok {
		return m.MarshalPlan()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Struct:
		return encodeStruct(v)
	case reflect.Slice:
		return encodeSlice(v)
	case reflect.Map:
		return encodeMap(v)
	}
	return encodeScalar(v)
}

func encodeScalar(v reflect.Value) (*syntax.Node, error) {
	switch {
	case v.Kind() == reflect.String:
		return syntax.NewText(v.String()), nil
	case v.Kind() == reflect.Bool:
		return syntax.NewScalar(strconv.FormatBool(v.Bool())), nil
	case v.CanInt():
		return syntax.NewScalar(strconv.FormatInt(v.Int(), 10)), nil
	case v.CanUint():
		return syntax.NewScalar(strconv.FormatUint(v.Uint(), 10)), nil
	case v.CanFloat():
		f := v.Float()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("plan: %v is not finite and cannot be written", f)
		}
		return syntax.NewScalar(strconv.FormatFloat(f, 'g', -1, v.Type().Bits())), nil
	}
	panic(typeMessage + v.Type().String())
}

func encodeStruct(v reflect.Value) (*syntax.Node, error) {
	var fields []syntax.Field
	for _, f := range field.Tags(v.Type()) {
		value := v.FieldByIndex(f.Index)
		isNil := value.Kind() == reflect.Pointer && value.IsNil()
		if f.Node || isNil || f.Absent(value) {
			continue
		}
		node, err := encodeField(&f, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Key, err)
		}
		fields = append(fields, syntax.Entry(f.Key, node))
	}
	return syntax.NewMap(fields...), nil
}

// encodeField writes the value of a field as its tags say.
func encodeField(f *field.Tag, v reflect.Value) (*syntax.Node, error) {
	switch {
	case listOrWord(f, v.Type()) && v.IsNil():
		return syntax.NewText(f.Words[0]), nil
	case f.Choice(v.Type()):
		return syntax.NewText(f.Text(v)), nil
	case f.Unit != "" && v.Kind() != reflect.Pointer:
		v = v.Convert(quantity(v.Type(), f.Unit))
	}
	return encode(v)
}

func encodeSlice(v reflect.Value) (*syntax.Node, error) {
	items := make([]*syntax.Node, v.Len())
	for i := range items {
		item, err := encode(v.Index(i))
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		items[i] = item
	}
	return syntax.NewList(items...), nil
}

func encodeMap(v reflect.Value) (*syntax.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		panic(typeMessage + v.Type().String())
	}
	keys := v.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	var fields []syntax.Field
	for _, key := range keys {
		value, err := encode(v.MapIndex(key))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		fields = append(fields, syntax.Entry(key.String(), value))
	}
	return syntax.NewMap(fields...), nil
}
