// Package statetest serves tests of declared state.
package statetest

import (
	"fmt"
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

// Whole saves a struct, restores it into a zero struct, and reports each field that differs. It also
// reports zero fields, so that a test cannot overlook a new field. It ignores the fields that except
// names: they are no state.
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
