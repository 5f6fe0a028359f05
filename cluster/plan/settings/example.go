package settings

import (
	"reflect"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// example is a value that a field of a plain type accepts; empty for other types.
func example(f *field.Tag, t reflect.Type) string {
	if len(f.Words) > 0 {
		return f.Words[0]
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
	case v.CanInt(), v.CanUint():
		return "10"
	case v.CanFloat():
		return "0.1"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int:
		return "[93, 21, 5]"
	}
	return ""
}
