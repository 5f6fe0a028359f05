package statetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/actors/state"
	"github.com/gradwire/gradwire/protos"
)

// Made saves a struct, restores it into one that was newly made, and reports each field that differs,
// as [Whole] does. It compares tensors by their values.
func Made[T any](t *testing.T, filled, made *T, declare func(*state.State, *T), except ...string) {
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

// same reports whether two values are the same. Pointers and maps are the same if their targets are.
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
		byText := func(k, l reflect.Value) int { return strings.Compare(fmt.Sprint(k), fmt.Sprint(l)) }
		for _, key := range slices.SortedFunc(a.Seq(), byText) {
			if v := b.MapIndex(key); !v.IsValid() || !same(a.MapIndex(key), v) {
				return false
			}
		}
		return a.Len() == b.Len()
	case reflect.Float32, reflect.Float64:
		return math.Float64bits(a.Float()) == math.Float64bits(b.Float())
	case reflect.Func, reflect.Interface:
		return a.IsNil() == b.IsNil()
	}
	return a.Equal(b)
}
