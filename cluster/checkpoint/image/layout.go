package image

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// kind says what a slot holds.
type kind uint8

const (
	pointer kind = iota + 1
	list         // a slice
	text
	dynamic // an interface
	table   // a map
	kept    // what the object that is read into has, and keeps
	skipped // what it keeps, and a new object need not have
	cleared // what is zero afterwards
	closed  // what no image can hold
)

// slot is a place in values of a type that leads elsewhere, or is not written as it is.
type slot struct {
	kind   kind
	offset uintptr
	of     reflect.Type // that is declared
	name   string       // the path of the field
	loose  bool         // where it leads says nothing of what is there in another program
}

// span is bytes low to high−1 of a value that are written as they are.
type span struct{ low, high uintptr }

// layout is how values of a type lie in memory.
type layout struct {
	known layouts
	of    reflect.Type
	name  string
	size  uintptr
	slots []slot // ascending
	raw   []span // ascending
	bytes int    // in raw
	leads bool   // a slot can lead to another object
	hash  uint64 // of all this
}

// layouts knows types.
type layouts map[reflect.Type]*layout

// of returns the layout of a type.
func (k layouts) of(t reflect.Type) *layout {
	if l := k[t]; l != nil {
		return l
	}
	l := &layout{known: k, of: t, name: nameOf(t), size: t.Size()}
	k[t] = l
	l.add(t, 0, "", "")
	h := xxhash.New()
	_, _ = fmt.Fprintf(h, "%s %d %v", l.name, l.size, l.raw)
	for _, s := range l.slots {
		_, _ = fmt.Fprintf(h, " %d %d %s %s", s.kind, s.offset, nameOf(s.of), s.name)
		l.leads = l.leads || s.kind <= table && s.kind != text
	}
	for _, r := range l.raw {
		l.bytes += int(r.high - r.low)
	}
	l.hash = h.Sum64()
	return l
}

// nameOf is the name of a type with its packages' paths.
func nameOf(t reflect.Type) string {
	switch {
	case t.Name() != "" && t.PkgPath() != "":
		return t.PkgPath() + "." + t.Name()
	case t.Name() != "":
		return t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + nameOf(t.Elem())
	case reflect.Slice:
		return "[]" + nameOf(t.Elem())
	case reflect.Array:
		return "[" + strconv.Itoa(t.Len()) + "]" + nameOf(t.Elem())
	case reflect.Map:
		return "map[" + nameOf(t.Key()) + "]" + nameOf(t.Elem())
	}
	return t.String()
}

// add takes in a value of a type at an offset.
func (l *layout) add(t reflect.Type, at uintptr, name, tag string) {
	switch {
	case tag == "-" || t.Kind() == reflect.Struct && foreign(t) || blank(t):
		l.slot(skipped, at, t, name, tag)
		return
	case tag == "kept" || foreign(t):
		l.slot(kept, at, t, name, tag)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			of := cmp.Or(f.Tag.Get("image"), tag)
			if f.Name == "p" && nameOf(t) == pid {
				l.slot(cleared, at+f.Offset, f.Type, f.Name, "")
				continue
			}
			l.add(f.Type, at+f.Offset, strings.TrimPrefix(name+"."+f.Name, "."), of)
		}
	case reflect.Array:
		if e := l.known.of(t.Elem()); len(e.slots) == 0 && uintptr(e.bytes) == e.size {
			l.plain(span{at, at + t.Size()})
			return
		}
		for i := range t.Len() {
			l.add(t.Elem(), at+uintptr(i)*t.Elem().Size(), name+"[]", tag)
		}
	case reflect.Pointer:
		l.slot(pointer, at, t, name, tag)
	case reflect.Slice:
		l.slot(list, at, t, name, tag)
	case reflect.String:
		l.slot(text, at, t, name, tag)
	case reflect.Interface:
		l.slot(dynamic, at, t, name, tag)
	case reflect.Map:
		l.slot(table, at, t, name, tag)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Uintptr:
		l.slot(closed, at, t, name, tag)
	default:
		l.plain(span{at, at + t.Size()})
	}
}

// slot adds a slot. The tags of fields stand in one place with what they mean.
func (l *layout) slot(k kind, at uintptr, t reflect.Type, name, tag string) {
	l.slots = append(l.slots, slot{kind: k, offset: at, of: t, name: name, loose: tag == "loose"})
}

// plain adds bytes that are written as they are.
func (l *layout) plain(r span) {
	if n := len(l.raw); n > 0 && l.raw[n-1].high == r.low {
		l.raw[n-1].high = r.high
		return
	}
	if r.high > r.low {
		l.raw = append(l.raw, r)
	}
}

// blank reports whether an image leaves out the values of a type. It leaves out structs whose first
// field is blank with the tag "-", pointers to such structs, and slices and arrays of either.
func blank(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return blank(t.Elem())
	case reflect.Struct:
		return t.NumField() > 0 && t.Field(0).Name == "_" && t.Field(0).Tag.Get("image") == "-"
	}
	return false
}

const (
	protoactor = "github.com/asynkron/protoactor-go/actor"
	pid        = protoactor + ".PID"
)

// foreign reports whether values of a type are the business of the package that they belong to:
// an actor system, a lock, a file.
func foreign(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch path := t.PkgPath(); path {
	case "":
		return false
	case protoactor:
		return slices.Contains([]string{"ActorSystem", "actorContext", "RootContext", "MessageInvoker"}, t.Name())
	case "sync", "context", "os", "bufio", "net", "log", "log/slog", "reflect", "runtime",
		"google.golang.org/protobuf/internal/impl":
		return true
	}
	return false
}

// nests reports whether a value of the type begins with one of another type.
func (l *layout) nests(other *layout) bool {
	for t := l.of; ; {
		if t == other.of {
			return true
		}
		switch {
		case t.Kind() == reflect.Struct && t.NumField() > 0:
			t = t.Field(0).Type
		case t.Kind() == reflect.Array && t.Len() > 0:
			t = t.Elem()
		default:
			return false
		}
	}
}

// number appends a number that is mostly small.
func number(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }
