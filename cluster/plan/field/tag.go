// Package field says what the tags of a struct's fields accept. A struct that a plan can set
// declares each setting once,
//
//	Share float64 `plan:"share,omitzero" unit:"fraction" range:">0%" either:"share|count" doc:"…"`
//
// and this package answers all code that reads, checks, describes or completes it. It imports
// nothing of the module, so that models, data sets, actors and links can check themselves by their
// own tags, without knowing what a plan is.
//
//	plan    the key; then ",required", ",omitzero" (left out where it is zero) or ",node" (gets
//	        the syntax, not a value); ",inline" for a struct whose keys stand in its place
//	doc     what the key means, in a few words
//	words   the only words or numbers accepted: "sum|mean"; of a bool the words
//	        for false and true
//	range   bounds of a number, in its unit: "1..1000", "0..", "1ms..1h"; without the bound
//	        itself behind > and <: ">0", ">0%..100%", "0..<1"
//	unit    of a float64: "fraction", "byte-rate" or "speed", of an int64: "size"; a time.Duration
//	        needs none
//	none    the value that stands for absence where zero means something: "-1"
//	example a value of a required key, which the error about its absence shows: "[1, 28, 28]"
//	names   what kind of thing a *syntax.Node names: "model"
//	either  keys of which one is given and the others are not: "every|period"
//	counts  the purpose and the unit of a number whose meaning depends on the architecture, the batch
//	        and the nodes, then the other accepted units: "interval=steps|epochs|samples", "lead=rounds"
//	key     for errors alone: the key that the field's value comes from, of a field without plan
//	with    what the setting goes with: another key, "every", or one of its words, "kind=latency"
package field

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Tag is what the tags of one field say.
type Tag struct {
	// Key is what a plan calls the field; Name is what Go does, and Index where it is in the
	// struct.
	Key, Name string
	Index     []int
	// Required keys have no default. A field that is OmitZero, and zero, is left out of a plan. A
	// Node gets the syntax that the struct is read from, and has no key.
	Required, OmitZero, Node bool

	Doc, Names, Unit, None, Example string
	Type                            reflect.Type

	Words  []string   // nil for any
	Range  *Range     // nil for any
	Either []string   // keys, this one among them; nil for no such choice
	With   *Condition // nil for none
	Counts *Count     // unit of a counting setting; nil for others
}

// Count describes a number whose unit depends on the architecture, the batch and the nodes.
type Count struct {
	// For is the purpose, such as interval: units are compared between settings of one purpose.
	For string
	// Unit is the unit of a plain number, such as steps.
	Unit string
	// Spans is true if the plan may give epochs and samples too.
	Spans bool
}

// Condition is that another key is given, or that it has one word.
type Condition struct {
	Key  string
	Word string // empty for any
}

// String returns "every" or "kind: latency".
func (c *Condition) String() string {
	if c.Word == "" {
		return c.Key
	}
	return c.Key + ": " + c.Word
}

// Rivals are the keys that exclude this one.
func (t *Tag) Rivals() []string {
	return slices.DeleteFunc(slices.Clone(t.Either), func(key string) bool { return key == t.Key })
}

// Absent reports whether a plan leaves the field out where it has this value.
func (t *Tag) Absent(v reflect.Value) bool {
	return t.OmitZero && v.IsZero() || t.None != "" && text(v) == t.None
}

// Choice reports whether a field of this type is a truth value for which a plan has words.
func (t *Tag) Choice(of reflect.Type) bool { return of.Kind() == reflect.Bool && t.Words != nil }

// Help is what the key means and what it goes with, in a few words.
func (t *Tag) Help() string {
	help := t.Doc
	if rivals := t.Rivals(); len(rivals) > 0 {
		help += "; excludes " + strings.Join(rivals, ", ")
	}
	if t.With != nil {
		help += "; with " + t.With.String() + " only"
	}
	return help
}

// Tags lists the fields of a struct type that have a key or take the syntax, in the struct's order.
// The fields of a struct embedded without a tag, or inline, stand in its place; there a field of
// the outer struct takes over its key. Tags panics where a tag is malformed. Callers must not
// change the list.
func Tags(t reflect.Type) []Tag {
	if list, known := cache.Load(t); known {
		return list.([]Tag)
	}
	list := readAll(t)
	cache.Store(t, list)
	return list
}

// cache has the tags of types that were asked for: links check themselves by them, and there are
// many.
var cache sync.Map

func readAll(t reflect.Type) []Tag {
	var list []Tag
	for i := range t.NumField() {
		f := t.Field(i)
		text, ok := f.Tag.Lookup("plan")
		if (f.Anonymous && !ok || text == ",inline") && f.Type.Kind() == reflect.Struct {
			for _, inner := range Tags(f.Type) {
				if inner.Index = append([]int{i}, inner.Index...); !f.Anonymous {
					inner.Name = f.Name + "." + inner.Name
				}
				list = append(list, inner)
			}
			continue
		}
		if !ok || !f.IsExported() {
			continue
		}
		own := read(f, text, i)
		same := slices.IndexFunc(list, func(t Tag) bool { return t.Key == own.Key && !t.Node && len(t.Index) > 1 })
		if same >= 0 {
			list[same] = own
		} else {
			list = append(list, own)
		}
	}
	return list
}

// read reads the tags of a struct's field i.
func read(f reflect.StructField, text string, i int) Tag {
	options := strings.Split(text, ",")
	t := Tag{
		Key: options[0], Name: f.Name, Index: []int{i},
		Doc: f.Tag.Get("doc"), Names: f.Tag.Get("names"), Unit: f.Tag.Get("unit"), None: f.Tag.Get("none"),
		Example:  f.Tag.Get("example"),
		Type:     f.Type,
		Required: slices.Contains(options[1:], "required"),
		OmitZero: slices.Contains(options[1:], "omitzero"),
		Node:     slices.Contains(options[1:], "node"),
	}
	if words := f.Tag.Get("words"); words != "" {
		t.Words = strings.Split(words, "|")
	}
	if limits := f.Tag.Get("range"); limits != "" {
		t.Range = parseRange(limits)
	}
	if either := f.Tag.Get("either"); either != "" {
		t.Either = strings.Split(either, "|")
	}
	if counts := f.Tag.Get("counts"); counts != "" {
		t.Counts = &Count{}
		t.Counts.For, t.Counts.Unit, _ = strings.Cut(counts, "=")
		t.Counts.Unit, t.Counts.Spans = strings.CutSuffix(t.Counts.Unit, "|epochs|samples")
	}
	if with := f.Tag.Get("with"); with != "" {
		t.With = &Condition{}
		t.With.Key, t.With.Word, _ = strings.Cut(with, "=")
	}
	return t
}

// Find returns the tag of a key.
func Find(tags []Tag, key string) (Tag, bool) {
	for _, t := range tags {
		if !t.Node && t.Key == key {
			return t, true
		}
	}
	return Tag{}, false
}
