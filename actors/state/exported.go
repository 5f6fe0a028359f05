package state

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/protos"
)

// ErrUndeclared reports an actor that declares no state.
var ErrUndeclared = errors.New("it declares no state: it has fields, none of which is exported, and no method " +
	"State(*state.State)")

// Of returns the declared state of an actor: its method State, or else its exported fields. Fields
// can be numbers, truth values, texts, lists, maps and structs, pointers to any of them, tensors, and
// protobuf messages. An empty list or map is restored as nil. A field with the tag state:"-" keeps
// the value that the actor was made with. The error names a field of another type. It is
// ErrUndeclared if the actor has fields and exports none.
func Of(actor any) (Declared, error) {
	if d, ok := actor.(Declared); ok {
		return d, nil
	}
	v := reflect.ValueOf(actor)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("a %T is no pointer to a struct: %w", actor, ErrUndeclared)
	}
	fields := exported(v.Elem().Type())
	if len(fields) == 0 && v.Elem().NumField() > 0 {
		return nil, fmt.Errorf("a %T: %w", actor, ErrUndeclared)
	}
	for _, f := range fields {
		if err := check(f.Type, nil); err != nil {
			return nil, fmt.Errorf("%T.%s: %w", actor, f.Name, err)
		}
	}
	return structure{v.Elem()}, nil
}

var (
	tensorType   = reflect.TypeFor[*protos.Tensor]()
	messageType  = reflect.TypeFor[proto.Message]()
	declaredType = reflect.TypeFor[Declared]()
)

// exported returns the exported fields of a struct, without those tagged state:"-".
func exported(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return !f.IsExported() || len(f.Index) > 1 || f.Tag.Get("state") == "-"
	})
}

// check returns an error if a type cannot be saved. of lists the types that contain it.
func check(t reflect.Type, of []reflect.Type) error {
	if t == tensorType || t.Implements(messageType) || reflect.PointerTo(t).Implements(declaredType) ||
		slices.Contains(of, t) {
		return nil
	}
	of = append(of, t)
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.String:
		return nil
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return check(t.Elem(), of)
	case reflect.Map:
		if k := t.Key().Kind(); k != reflect.String && (k < reflect.Int || k > reflect.Uint64) {
			return fmt.Errorf("keys of a map can be texts and whole numbers; these are %s", t.Key())
		}
		return check(t.Elem(), of)
	case reflect.Struct:
		for _, f := range exported(t) {
			if err := check(f.Type, of); err != nil {
				return fmt.Errorf("%s: %w", f.Name, err)
			}
		}
		return nil
	}
	return fmt.Errorf(`a %s cannot be saved; the tag state:"-" leaves the field as it is made`, t)
}

// structure declares the exported fields of a struct.
type structure struct{ reflect.Value }

// State implements [Declared].
func (v structure) State(s *State) {
	for _, f := range exported(v.Type()) {
		value(s, f.Name, v.FieldByIndex(f.Index))
	}
}

// value declares a value of a type that check accepts.
func value(s *State, name string, v reflect.Value) {
	if d, ok := v.Addr().Interface().(Declared); ok {
		s.Part(name, d)
		return
	}
	switch p := v.Addr().Interface().(type) {
	case **protos.Tensor:
		s.Tensor(name, p)
		return
	case *[]float32:
		s.Vector(name, p)
		return
	case *[]byte:
		s.Bytes(name, p)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		b := v.Bool()
		s.Bool(name, &b)
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := v.Int()
		if Int(s, name, &n); v.OverflowInt(n) {
			s.kind(name, v.Type().String())
			return
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := v.Uint()
		if Int(s, name, &n); v.OverflowUint(n) {
			s.kind(name, v.Type().String())
			return
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		x := v.Float()
		Float(s, name, &x)
		v.SetFloat(x)
	case reflect.String:
		text := v.String()
		Text(s, name, &text)
		v.SetString(text)
	case reflect.Struct:
		s.Part(name, structure{v})
	case reflect.Pointer:
		pointer(s, name, v)
	case reflect.Map:
		mapping(s, name, v)
	default: // a slice or an array
		sequence(s, name, v)
	}
}

// pointer declares a pointer with its target, or nil.
func pointer(s *State, name string, v reflect.Value) {
	if v.Type().Implements(messageType) {
		var b []byte
		there := !v.IsNil()
		if there && s.out != nil {
			var err error
			b, err = proto.MarshalOptions{Deterministic: true}.Marshal(v.Interface().(proto.Message))
			s.Fail(err)
		}
		s.Group(name, func(s *State) {
			if s.Bool("there", &there); there {
				s.Bytes("message", &b)
			}
		})
		if s.out == nil && there {
			v.Set(reflect.New(v.Type().Elem()))
			s.Fail(proto.Unmarshal(b, v.Interface().(proto.Message)))
		}
		return
	}
	if s.lacks(name) {
		v.SetZero()
		return
	}
	if v.IsNil() {
		if s.out != nil {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
	}
	s.Group(name, func(s *State) { value(s, "value", v.Elem()) })
}

// sequence declares a list or an array. Numbers name the items.
func sequence(s *State, name string, v reflect.Value) {
	if s.lacks(name) {
		return
	}
	s.Group(name, func(s *State) {
		n := v.Len()
		if Int(s, "length", &n); s.out == nil && v.Kind() == reflect.Slice {
			v.SetZero()
			if n > 0 && n <= len(s.in) {
				v.Set(reflect.MakeSlice(v.Type(), n, n))
			}
		}
		for i := range min(n, v.Len()) {
			value(s, strconv.Itoa(i), v.Index(i))
		}
	})
}

// keyMark is the prefix of a map's keys in a state: a key may be empty, a name may not.
const keyMark = "="

func keyName(key reflect.Value) string { return keyMark + fmt.Sprint(key.Interface()) }

// mapping declares a map, sorted by key.
func mapping(s *State, name string, v reflect.Value) {
	if s.lacks(name) {
		return
	}
	if s.out != nil {
		s.Group(name, func(s *State) {
			byName := func(a, b reflect.Value) int { return strings.Compare(keyName(a), keyName(b)) }
			for _, key := range slices.SortedFunc(v.Seq(), byName) {
				item := reflect.New(v.Type().Elem()).Elem()
				item.Set(v.MapIndex(key))
				value(s, keyName(key), item)
			}
		})
		return
	}
	v.SetZero()
	s.Group(name, func(s *State) {
		if len(s.in) > 0 {
			v.Set(reflect.MakeMapWithSize(v.Type(), len(s.in)))
		}
		for _, key := range slices.Sorted(maps.Keys(s.in)) {
			k := reflect.New(v.Type().Key()).Elem()
			if !setKey(k, strings.TrimPrefix(key, keyMark)) {
				s.kind(key, "key of a map of "+v.Type().Key().String())
				return
			}
			item := reflect.New(v.Type().Elem()).Elem()
			value(s, key, item)
			v.SetMapIndex(k, item)
		}
	})
}

// setKey parses a name as the key of a map, and reports whether it is one.
func setKey(k reflect.Value, name string) bool {
	switch {
	case k.Kind() == reflect.String:
		k.SetString(name)
	case k.CanInt():
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil || k.OverflowInt(n) {
			return false
		}
		k.SetInt(n)
	default:
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || k.OverflowUint(n) {
			return false
		}
		k.SetUint(n)
	}
	return true
}

// Exported declares the exported fields of the struct that v points to, as [Of] does. It serves plain
// records whose field names never change. It panics if v is no pointer to a struct.
func Exported(s *State, v any) { structure{reflect.ValueOf(v).Elem()}.State(s) }
