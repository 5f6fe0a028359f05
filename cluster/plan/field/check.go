package field

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Error is a field of a description whose value is not accepted.
type Error struct {
	Field    string   // path of the field in Go, such as "Loss.Probability"
	Keys     []string // path of the keys that a plan has for it, as far as its fields have tags
	Value    string   // the offending value as text
	Accepted string   // what is accepted, such as "from 0 to 1"
}

// Error returns "Loss.Probability is 1.5: must be from 0 to 1".
func (e *Error) Error() string {
	return fmt.Sprintf("%s is %s: must be %s", e.Field, e.Value, e.Accepted)
}

// Errorf makes the error about a field of the struct v: its present value is not accepted, what
// format says is. It panics if v has no such field.
func Errorf(v any, name, format string, args ...any) *Error {
	s := reflect.Indirect(reflect.ValueOf(v))
	f, ok := s.Type().FieldByName(name)
	if !ok {
		panic("field: " + s.Type().String() + " has no field " + name)
	}
	value := s.FieldByIndex(f.Index)
	e := &Error{Field: name, Value: text(value), Accepted: fmt.Sprintf(format, args...)}
	if value.Kind() == reflect.String {
		e.Value = strconv.Quote(value.String())
	}
	key, _, _ := strings.Cut(f.Tag.Get("plan"), ",")
	if key == "" {
		key = f.Tag.Get("key")
	}
	if key != "" {
		e.Keys = []string{key}
	}
	return e
}

// At tells an error of [Within] about an item of the list that the field holds: "Points.At" becomes
// "Points[3].At". A plan has the list as a whole.
func At(err error, i int) error {
	var e *Error
	if !errors.As(err, &e) {
		return fmt.Errorf("[%d]: %w", i, err)
	}
	at := *e
	name, rest, _ := strings.Cut(e.Field, ".")
	at.Field, at.Keys = fmt.Sprintf("%s[%d].%s", name, i, rest), e.Keys[:min(1, len(e.Keys))]
	return &at
}

// Within tells an error about a field of what the field name of v holds as one about v. Other
// errors get the name as a prefix, and nil stays nil.
func Within(v any, name string, err error) error {
	var inner *Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &inner):
		return fmt.Errorf("%s: %w", name, err)
	}
	outer := Errorf(v, name, "")
	return &Error{
		Field: name + "." + inner.Field, Keys: append(outer.Keys, inner.Keys...), Value: inner.Value,
		Accepted: inner.Accepted,
	}
}

// Check returns the first field of the struct v, in its order, that its tags do not accept, as an
// [*Error].
func Check(v any) error {
	s := reflect.Indirect(reflect.ValueOf(v))
	tags := Tags(s.Type())
	for _, t := range tags {
		if t.Node {
			continue
		}
		if err := checkOne(v, &t, s.FieldByIndex(t.Index)); err != nil {
			return err
		}
	}
	for _, t := range tags {
		if err := checkOthers(v, s, tags, &t); err != nil {
			return err
		}
	}
	return nil
}

// checkOne checks a field by what its own tags say.
func checkOne(v any, t *Tag, f reflect.Value) error {
	for f.Kind() == reflect.Pointer && !f.IsNil() {
		f = f.Elem()
	}
	absent := f.IsZero() && (t.Either != nil || t.With != nil)
	switch {
	case f.Kind() == reflect.Struct && t.OmitZero && f.IsZero():
	case f.Kind() == reflect.Struct:
		if err := Check(f.Interface()); err != nil {
			return Within(v, t.Name, err)
		}
	case absent || t.Absent(f) || f.Kind() == reflect.Pointer, f.Kind() == reflect.Slice:
	case t.Words != nil && !slices.Contains(t.Words, text(f)):
		return Errorf(v, t.Name, "%s", list(t.Words))
	case t.Range != nil && (!t.Range.Holds(Number(f)) || !finite(f)):
		return Errorf(v, t.Name, "%s", t.Range)
	case t.Unit == "fraction" && !(Number(f) >= 0 && Number(f) <= 1):
		return Errorf(v, t.Name, "from 0 to 1")
	case !finite(f), t.Unit != "" && Number(f) < 0:
		return Errorf(v, t.Name, "a finite number, 0 or more")
	}
	return nil
}

// checkOthers checks a field by what its tags say of others.
func checkOthers(v any, s reflect.Value, tags []Tag, t *Tag) error {
	given := func(key string) bool {
		other, known := Find(tags, key)
		return known && !s.FieldByIndex(other.Index).IsZero()
	}
	if t.Node {
		return nil
	}
	mine := given(t.Key)
	for _, rival := range t.Rivals() {
		if mine && given(rival) {
			return Errorf(v, t.Name, "left out where %s is given", rival)
		}
	}
	switch {
	case t.Either != nil && !slices.ContainsFunc(t.Either, given):
		return Errorf(v, t.Name, "given where %s is not", strings.Join(t.Rivals(), ", "))
	case t.With != nil && mine && !Met(s, tags, t.With):
		return Errorf(v, t.Name, "left out without %s", t.With)
	}
	return nil
}

// Met reports whether a condition holds in the struct s.
func Met(s reflect.Value, tags []Tag, c *Condition) bool {
	t, known := Find(tags, c.Key)
	if !known {
		panic("field: " + s.Type().String() + " has no key " + c.Key)
	}
	f := s.FieldByIndex(t.Index)
	return !f.IsZero() && (c.Word == "" || text(f) == c.Word)
}

func text(f reflect.Value) string { return fmt.Sprint(f.Interface()) }

// list joins words as a sentence does: a, b or c.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
