package settings

import (
	"fmt"
	"reflect"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// example is a value that a field of a plain type accepts; empty for other types.
func example(f *field.Tag, t reflect.Type) string {
	switch {
	case len(f.Words) > 0:
		return f.Words[0]
	case f.Example != "":
		return f.Example
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == goDuration {
		t = duration
	}
	if u, ok := reflect.Zero(t).Interface().(interface{ Unit() string }); ok {
		for _, form := range unit.Forms() {
			if form.Name == u.Unit() {
				return form.Examples[0]
			}
		}
		return ""
	}
	switch v := reflect.Zero(t); {
	case f.Unit != "":
		return ""
	case v.CanInt(), v.CanUint(), v.CanFloat():
		for _, number := range []float64{0.1, 10, 2, 1} {
			n := reflect.ValueOf(number)
			if whole := !v.CanFloat(); whole && number < 1 || f.Range != nil && !f.Range.Holds(n.Convert(t)) {
				continue
			}
			return fmt.Sprint(number)
		}
	}
	return ""
}
