// Package strict decodes JSON and names what is wrong with it: the line, the key, and what is
// accepted there.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decode decodes a text of exactly one value. Unknown keys are errors. An error begins with the
// line and a colon, so that it can follow the name of a file and a colon.
func Decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	s := source(text)
	var bad *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.errorf(len(text), "the file ends too early; one whole JSON value is accepted")
	case errors.As(err, &bad):
		at := max(int(bad.Offset)-1, 0)
		return s.errorf(at, "no JSON: unexpected %q at byte %d", text[at:min(at+1, len(text))], at)
	case err != nil:
		value := bytes.TrimLeft(text, space)
		return s.find(value[:int(d.InputOffset())-(len(text)-len(value))], len(text)-len(value), "",
			reflect.TypeOf(into), err)
	}
	end := int(d.InputOffset())
	if rest := bytes.TrimLeft(text[end:], space); len(rest) > 0 {
		return s.errorf(len(text)-len(rest), "there is text after the end; one JSON value is accepted")
	}
	if value := bytes.TrimSpace(text); bytes.Equal(value, []byte("null")) {
		return s.mismatch(value, len(text), "", reflect.TypeOf(into).Elem())
	}
	return nil
}

// space is the white space of JSON.
const space = " \t\r\n"

// source is the whole text.
type source []byte

// errorf makes the error about the value that begins at an offset.
func (s source) errorf(at int, format string, args ...any) error {
	return fmt.Errorf("%d: %w", 1+bytes.Count(s[:min(at, len(s))], []byte{'\n'}), fmt.Errorf(format, args...))
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// find returns the error about the innermost value that its type does not accept. The value raw of
// type t begins at an offset and has a path of keys; err is what decoding it returned.
func (s source) find(raw []byte, at int, path string, t reflect.Type, err error) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return s.errorf(at, "%s: %w", name(path), err)
	}
	for _, c := range children(raw) {
		inner, known := typeOf(t, c.key)
		switch {
		case inner == nil && known != nil:
			return s.errorf(at+c.at, "unknown key %q; accepted: %s", join(path, c.key), strings.Join(known, ", "))
		case inner == nil:
			return s.mismatch(raw, at, path, t)
		}
		if err := decode(c.raw, reflect.New(inner).Interface()); err != nil {
			return s.find(c.raw, at+c.at, join(path, c.key), inner, err)
		}
	}
	return s.mismatch(raw, at, path, t)
}

func (s source) mismatch(raw []byte, at int, path string, t reflect.Type) error {
	return s.errorf(at, "%s is %s; %s is accepted", name(path), describe(raw), accepted(t))
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// child is a member of an object, or an element of a list: its key is its place, as in [3].
type child struct {
	key string
	raw []byte
	at  int // offset in its parent
}

// children returns the members of a value that is valid JSON; none of a text or number.
func children(raw []byte) (all []child) {
	d := json.NewDecoder(bytes.NewReader(raw))
	begin, _ := d.Token()
	if begin != json.Delim('{') && begin != json.Delim('[') {
		return nil
	}
	for i := 0; d.More(); i++ {
		c := child{key: fmt.Sprintf("[%d]", i)}
		if begin == json.Delim('{') {
			key, _ := d.Token()
			c.key, _ = key.(string)
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return all
		}
		c.raw, c.at = value, int(d.InputOffset())-len(value)
		all = append(all, c)
	}
	return all
}

// typeOf returns the type of a value's member, or nil if the value has no member of this key. known are
// the keys of a struct.
func typeOf(t reflect.Type, key string) (inner reflect.Type, known []string) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), nil
	case reflect.Slice, reflect.Array:
		if !strings.HasPrefix(key, "[") {
			return nil, nil
		}
		return t.Elem(), nil
	case reflect.Struct:
		if strings.HasPrefix(key, "[") {
			return nil, nil
		}
	default:
		return nil, nil
	}
	fields := fieldsOf(t)
	known = slices.Sorted(maps.Keys(fields))
	for _, name := range known {
		if strings.EqualFold(name, key) {
			return fields[name], known
		}
	}
	return nil, known
}

// fieldsOf returns the types of a struct's keys, with those of the structs that it embeds.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			maps.Copy(all, fieldsOf(f.Type))
		case tag == "" && f.IsExported():
			all[f.Name] = f.Type
		case tag != "-" && f.IsExported():
			all[tag] = f.Type
		}
	}
	return all
}

func join(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// name returns the words for the value of a path in a message.
func name(path string) string {
	if path == "" {
		return "the content"
	}
	return fmt.Sprintf("key %q", path)
}

// describe says what a value is.
func describe(raw []byte) string {
	const most = 40 // bytes of a value in a message
	shown := string(raw)
	if len(raw) > most {
		shown = strings.ToValidUTF8(shown[:most], "") + "…"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"', 't', 'f', 'n':
		return shown
	default:
		return "the number " + shown
	}
}

// accepted says which values a type has.
func accepted(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Int64:
		return "a whole number"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "a whole number of 0 or more"
	case k == reflect.Float32, k == reflect.Float64:
		return "a finite number"
	case k == reflect.String:
		return "a string"
	case k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a string in base64"
	case k == reflect.Slice, k == reflect.Array:
		return "a list"
	}
	return "an object"
}
