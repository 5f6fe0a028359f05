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

// Errorf makes the error about a field of the struct v, or Outer.Inner of an inline one: its
// present value is not accepted, what format says is. It panics if v has no such field.
func Errorf(v any, name, format string, args ...any) *Error {
	s := reflect.Indirect(reflect.ValueOf(v))
	if outer, inner, inline := strings.Cut(name, "."); inline {
		e := Errorf(s.FieldByName(outer).Interface(), inner, format, args...)
		e.Field = name
		return e
	}
	f, ok := s.Type().FieldByName(name)
	if !ok {
		panic("field: " + s.Type().String() + " has no field " + name)
	}
	value := s.FieldByIndex(f.Index)
	e := &Error{Field: name, Value: text(value), Accepted: fmt.Sprintf(format, args...)}
	held := value
	if held.Kind() == reflect.Interface || held.Kind() == reflect.Pointer {
		held = held.Elem()
	}
	switch held.Kind() {
	case reflect.String:
		e.Value = strconv.Quote(held.String())
	case reflect.Struct: // its fields would say nothing to people
		e.Value = "not accepted as it is"
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
	absent := t.Absent(f) || f.IsZero() && (t.Either != nil || t.With != nil)
	switch {
	case absent || f.Kind() == reflect.Pointer || f.Kind() == reflect.Slice:
		return nil
	case f.Kind() == reflect.Struct:
		return Within(v, t.Name, Check(f.Interface()))
	}
	if accepted := t.Refuses(f); accepted != "" {
		return Errorf(v, t.Name, "%s", accepted)
	}
	return nil
}

// Refuses says what the field's own tags accept where its value f is not that; else nothing.
func (t *Tag) Refuses(f reflect.Value) (accepted string) {
	switch {
	case t.Words != nil && !slices.Contains(t.Words, t.Text(f)):
		return List(t.Words)
	case t.Range != nil && (!t.Range.Holds(f) || !finite(f)):
		return t.Range.String()
	case t.Unit == "fraction" && !(number(f) >= 0 && number(f) <= 1):
		return "from 0 to 1"
	case !finite(f), t.Unit != "" && number(f) < 0:
		return "a finite number, 0 or more"
	}
	return ""
}

// checkOthers checks a field by what its tags say of others.
func checkOthers(v any, s reflect.Value, tags []Tag, t *Tag) error {
	given := func(key string) bool {
		other, known := Find(tags, key)
		return known && !s.FieldByIndex(other.Index).IsZero()
	}
	rival, lone := t.Conflict(s, tags)
	switch {
	case rival != "":
		return Errorf(v, t.Name, "left out where %s is given", rival)
	case t.Either != nil && !slices.ContainsFunc(t.Either, given):
		return Errorf(v, t.Name, "given where %s is not", strings.Join(t.Rivals(), ", "))
	case lone:
		return Errorf(v, t.Name, "left out without %s", t.With)
	}
	return nil
}

// Conflict looks for what keeps a field that is not zero from the others of its struct s: a rival
// that is not zero either, or, if it is lone, that what it goes with is not there.
func (t *Tag) Conflict(s reflect.Value, tags []Tag) (rival string, lone bool) {
	if t.Node || s.FieldByIndex(t.Index).IsZero() {
		return "", false
	}
	for _, key := range t.Rivals() {
		if other, known := Find(tags, key); known && !s.FieldByIndex(other.Index).IsZero() {
			return key, false
		}
	}
	return "", t.With != nil && !met(s, tags, t.With)
}

// met reports whether a condition holds in the struct s.
func met(s reflect.Value, tags []Tag, c *Condition) bool {
	t, known := Find(tags, c.Key)
	if !known {
		panic("field: " + s.Type().String() + " has no key " + c.Key)
	}
	f := s.FieldByIndex(t.Index)
	if c.Word != "" {
		return t.Text(f) == c.Word
	}
	return !f.IsZero()
}

// Text is a value of the field as a plan has it.
func (t *Tag) Text(f reflect.Value) string {
	if !t.Choice(f.Type()) {
		return text(f)
	}
	if f.Bool() {
		return t.Words[1]
	}
	return t.Words[0]
}

func text(f reflect.Value) string { return fmt.Sprint(f.Interface()) }

// List joins words as a sentence does: a, b or c.
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
