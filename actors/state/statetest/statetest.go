// Package statetest checks that structs declare their whole state.
package statetest

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

// Written returns a state as a program reads it from a file: it shares no memory with the original.
func Written(t *testing.T, saved *state.Saved) *state.Saved {
	t.Helper()
	b, err := proto.Marshal(saved.Root)
	if err != nil {
		t.Fatal(err)
	}
	again := &state.Saved{Root: &protos.Declared{}}
	if err := proto.Unmarshal(b, again.Root); err != nil {
		t.Fatal(err)
	}
	for _, v := range saved.Vectors {
		again.Vectors = append(again.Vectors, state.Vector{Name: v.Name, Data: slices.Clone(v.Data)})
	}
	return again
}

// declared pairs a value with the function that declares it.
type declared[T any] struct {
	value   *T
	declare func(*state.State, *T)
}

func (d declared[T]) State(s *state.State) { d.declare(s, d.value) }

// Whole checks a struct as [WholeInto] does, and restores it into a zero struct.
func Whole[T any](t *testing.T, filled *T, declare func(*state.State, *T), except ...string) {
	t.Helper()
	WholeInto(t, filled, new(T), declare, except...)
}

// WholeInto saves a struct, restores it into a newly made one, and reports each field that differs. It
// also reports zero fields, so that a test cannot overlook a new field. It ignores the fields that
// except names: they are no state.
func WholeInto[T any](t *testing.T, filled, made *T, declare func(*state.State, *T), except ...string) {
	t.Helper()
	saved, err := state.Save(declared[T]{filled, declare})
	if err != nil {
		t.Fatal(err)
	}
	err = Written(t, saved).Restore(declared[T]{made, declare}, state.Into{Pool: &protos.TensorPool{}})
	if err != nil {
		t.Fatal(err)
	}
	want, got := reflect.ValueOf(filled).Elem(), reflect.ValueOf(made).Elem()
	for i := range want.NumField() {
		field := want.Type().Field(i).Name
		switch {
		case slices.Contains(except, field):
		case want.Field(i).IsZero():
			t.Errorf("%s.%s is not set by this test: set it, and declare it", want.Type(), field)
		case !same(want.Field(i), got.Field(i)):
			t.Errorf("%s.%s is %v, restored %v: is it declared?", want.Type(), field, want.Field(i), got.Field(i))
		}
	}
}

// same reports whether two values are equal, bit by bit. It compares pointers by their targets, tensors
// by their values, and functions by whether they are nil.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() || a.Pointer() == b.Pointer() {
			return a.Pointer() == b.Pointer()
		}
		if a.Type() == reflect.TypeFor[*protos.Tensor]() {
			return same(a.Elem().FieldByName("Data"), b.Elem().FieldByName("Data"))
		}
		return same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		for i := range min(a.Len(), b.Len()) {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return a.Len() == b.Len()
	case reflect.Map:
		for key, v := range a.Seq2() {
			if w := b.MapIndex(key); !w.IsValid() || !same(v, w) {
				return false
			}
		}
		return a.Len() == b.Len()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Interface:
		if a.IsNil() || b.IsNil() || a.Elem().Type() != b.Elem().Type() {
			return a.IsNil() && b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	case reflect.Func:
		return a.IsNil() == b.IsNil()
	}
	return a.Equal(b)
}
