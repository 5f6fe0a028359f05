// Package statetest checks that types declare all their fields.
package statetest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/state"
)

// declared is a value with what declares it.
type declared[T any] struct {
	value   *T
	declare func(*state.State, *T)
}

func (d declared[T]) State(s *state.State) { d.declare(s, d.value) }

// Whole saves a struct and restores it into a zero one, and reports fields that differ then. Every field has
// to be set, so that a new one cannot be left out; except names those that are no state.
func Whole[T any](t *testing.T, filled *T, declare func(*state.State, *T), except ...string) {
	t.Helper()
	saved, err := state.Save(declared[T]{filled, declare})
	if err != nil {
		t.Fatal(err)
	}
	var restored T
	if err := saved.Restore(declared[T]{&restored, declare}, state.Into{}); err != nil {
		t.Fatal(err)
	}
	want, got := reflect.ValueOf(filled).Elem(), reflect.ValueOf(&restored).Elem()
	for i := range want.NumField() {
		field := want.Type().Field(i).Name
		switch {
		case slices.Contains(except, field):
		case want.Field(i).IsZero():
			t.Errorf("%s.%s is not set by this test: set it, and declare it", want.Type(), field)
		case fmt.Sprintf("%+v", want.Field(i)) != fmt.Sprintf("%+v", got.Field(i)):
			t.Errorf("%s.%s is %v, restored %v: is it declared?", want.Type(), field, want.Field(i), got.Field(i))
		}
	}
}
