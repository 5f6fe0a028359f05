// Package strict decodes JSON with errors that name the line, the key, and the accepted values.
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

// Decode decodes a text that holds exactly one value. Unknown keys are errors. An error begins with the
// line number and a colon: callers put the file name and a colon before it.
func Decode(text []byte, into any) error { return source{text: text}.decodeAll(into) }

// DecodeKnown is Decode, but ignores unknown keys.
func DecodeKnown(text []byte, into any) error {
	return source{text: text, lenient: true}.decodeAll(into)
}

func (s source) decodeAll(into any) error {
	text, t := s.text, reflect.TypeOf(into)
	d := s.decoder(text)
	err := d.Decode(into)
	var bad *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.errorf(len(text), "the file ends too early; one whole JSON value is accepted")
	case errors.As(err, &bad):
		at := max(int(bad.Offset)-1, 0)
		if err := s.word(at, t); err != nil {
			return err
		}
		return s.errorf(at, "no JSON: unexpected %q at byte %d", text[at:min(at+1, len(text))], at)
	case err != nil:
		value := bytes.TrimLeft(text, space)
		return s.find(value[:int(d.InputOffset())-(len(text)-len(value))], len(text)-len(value), "", t, err)
	}
	end := int(d.InputOffset())
	if rest := bytes.TrimLeft(text[end:], space); len(rest) > 0 {
		return s.errorf(len(text)-len(rest), "there is text after the end; one JSON value is accepted")
	}
	if value := bytes.TrimSpace(text); bytes.Equal(value, []byte("null")) {
		return s.mismatch(value, len(text), "", t.Elem())
	}
	return nil
}

// word returns the error about a bare word, such as NaN, at an offset in the text; nil if the text has
// another fault there.
func (s source) word(at int, t reflect.Type) error {
	for at > 0 && strings.ContainsRune("-+", rune(s.text[at-1])) || at > 0 && isLetter(s.text[at-1]) {
		at--
	}
	end := at
	for end < len(s.text) && (isLetter(s.text[end]) || end == at) {
		end++
	}
	keys, known := s.keysTo(at)
	if word := s.text[at:end]; known && len(keys) > 0 && isLetter(word[len(word)-1]) {
		path := ""
		for _, key := range keys {
			for t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			if t, _ = typeOf(t, key); t == nil {
				return nil
			}
			path = join(path, key)
		}
		if u, ok := reflect.New(t).Interface().(json.Unmarshaler); ok {
			return s.errorf(at, "%s: %w", name(path), u.UnmarshalJSON(word))
		}
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		return s.errorf(at, "%s is %s, which is no JSON; %s is accepted", name(path), word, accepted(t))
	}
	return nil
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// keysTo returns the keys that lead to the value at an offset; known is false if no value begins
// there.
func (s source) keysTo(at int) (keys []string, known bool) {
	d := json.NewDecoder(bytes.NewReader(s.text))
	var lists []int  // number of elements before, for each key; -1 of an object, -2 before a key's value
	next := func() { // a value begins
		switch n := len(lists) - 1; {
		case n < 0:
		case lists[n] >= 0:
			keys[n] = fmt.Sprintf("[%d]", lists[n])
			lists[n]++
		default:
			lists[n] = -1
		}
	}
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		n := len(lists) - 1
		switch delimiter, _ := token.(json.Delim); {
		case n >= 0 && lists[n] == -1 && delimiter == 0:
			keys[n], _ = token.(string)
			lists[n] = -2
		case delimiter == '{':
			next()
			keys, lists = append(keys, ""), append(lists, -1)
		case delimiter == '[':
			next()
			keys, lists = append(keys, ""), append(lists, 0)
		case delimiter != 0:
			keys, lists = keys[:n], lists[:n]
		default:
			next()
		}
	}
	n := len(lists) - 1
	if len(bytes.Trim(s.text[min(int(d.InputOffset()), at):at], space+":,")) > 0 || n >= 0 && lists[n] == -1 {
		return nil, false
	}
	next()
	return keys, true
}

// space holds the white-space characters of JSON.
const space = " \t\r\n"

// source is the whole text.
type source struct {
	text    []byte
	lenient bool // unknown keys are ignored
}

// errorf makes the error about the value that begins at an offset.
func (s source) errorf(at int, format string, args ...any) error {
	return fmt.Errorf("%d: %w", 1+bytes.Count(s.text[:min(at, len(s.text))], []byte{'\n'}), fmt.Errorf(format, args...))
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
		case inner == nil && known != nil && s.lenient:
			continue
		case inner == nil && known != nil:
			return s.errorf(at+c.at, "unknown key %q; accepted: %s", join(path, c.key), strings.Join(known, ", "))
		case inner == nil:
			return s.mismatch(raw, at, path, t)
		}
		if err := s.decoder(c.raw).Decode(reflect.New(inner).Interface()); err != nil {
			return s.find(c.raw, at+c.at, join(path, c.key), inner, err)
		}
	}
	return s.mismatch(raw, at, path, t)
}

func (s source) mismatch(raw []byte, at int, path string, t reflect.Type) error {
	return s.errorf(at, "%s is %s; %s is accepted", name(path), describe(raw), accepted(t))
}

func (s source) decoder(raw []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(raw))
	if !s.lenient {
		d.DisallowUnknownFields()
	}
	return d
}

// child is a member of an object, or an element of a list, whose key is its index, as in [3].
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

// name returns the name that messages use for the value at a path.
func name(path string) string {
	if path == "" {
		return "the content"
	}
	return fmt.Sprintf("key %q", path)
}

// describe names the kind of a value. It quotes a string, a word or a number, of which a long one is cut.
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

// accepted describes the values of a type.
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
