package settings

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Dialect is the version of JSON Schema that [Document] is written in.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// Schema is the JSON Schema of a piece of a plan: what editors need to complete keys and to mark
// mistakes. The fields are the vocabulary's own words. What is empty is left out.
type Schema struct {
	Dialect     string       `json:"$schema,omitempty"`
	Ref         string       `json:"$ref,omitempty"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Type        Types        `json:"type,omitempty"`
	Const       any          `json:"const,omitempty"`
	Enum        []any        `json:"enum,omitempty"`
	Default     *syntax.Node `json:"-"`
	Examples    []string     `json:"examples,omitempty"`
	Pattern     string       `json:"pattern,omitempty"`
	Minimum     json.Number  `json:"minimum,omitempty"`
	Above       json.Number  `json:"exclusiveMinimum,omitempty"`
	Maximum     json.Number  `json:"maximum,omitempty"`
	Below       json.Number  `json:"exclusiveMaximum,omitempty"`
	Items       *Schema      `json:"items,omitempty"`
	MinItems    int          `json:"minItems,omitempty"`
	MaxItems    int          `json:"maxItems,omitempty"`
	Names       *Schema      `json:"propertyNames,omitempty"`
	Properties  Properties   `json:"properties,omitempty"`
	Required    []string     `json:"required,omitempty"`
	// Others is what keys beside Properties hold; Closed refuses them.
	Others *Schema    `json:"-"`
	Closed bool       `json:"-"`
	AllOf  []*Schema  `json:"allOf,omitempty"`
	AnyOf  []*Schema  `json:"anyOf,omitempty"`
	OneOf  []*Schema  `json:"oneOf,omitempty"`
	Not    *Schema    `json:"not,omitempty"`
	If     *Schema    `json:"if,omitempty"`
	Then   *Schema    `json:"then,omitempty"`
	Else   *Schema    `json:"else,omitempty"`
	Defs   Properties `json:"$defs,omitempty"`
	// Rivals are keys that exclude this one, and With is what it goes with; the map that it stands
	// in says so in JSON.
	Rivals []string         `json:"-"`
	With   *field.Condition `json:"-"`
}

// Types are the types of JSON that a value may have.
type Types []string

// MarshalJSON writes a single type as a word.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Properties are schemas by name, in an order that means something to readers.
type Properties []Property

// Property is a schema with its name.
type Property struct {
	Name   string
	Schema *Schema
}

// Get returns the schema of a name, nil if there is none.
func (p Properties) Get(name string) *Schema {
	for _, q := range p {
		if q.Name == name {
			return q.Schema
		}
	}
	return nil
}

// MarshalJSON writes an object in the order of the properties.
func (p Properties) MarshalJSON() ([]byte, error) {
	return syntax.MarshalObject(p, func(q Property) (string, any) { return q.Name, q.Schema })
}

// MarshalJSON writes the schema with its default and what is said of other keys.
func (s *Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	written := struct {
		*plain
		Default json.RawMessage `json:"default,omitempty"`
		Others  any             `json:"additionalProperties,omitempty"`
	}{plain: (*plain)(s)}
	var err error
	if s.Default != nil {
		written.Default, err = s.Default.JSON()
	}
	switch {
	case err != nil:
		return nil, err
	case s.Closed:
		written.Others = false
	case s.Others != nil:
		written.Others = s.Others
	}
	return syntax.MarshalPlain(written)
}

// Schemer is implemented, on the pointer, by types that read themselves from a node, to say what
// they accept. References may be to [Units].
type Schemer interface{ PlanSchema() *Schema }

// Refiner is implemented, on the pointer, by structs of which more is known than their fields tell:
// which keys exclude each other, or how a text is built. RefineSchema changes what was made of the
// fields.
type Refiner interface{ RefineSchema(s *Schema) }

// SchemaOf describes what [Decode] reads into what v points to, by the same declarations: types,
// tags, and as defaults the values that stand in v. A field tagged `names:"model"` becomes a
// reference to the definition of that name, which [Document] is given.
func SchemaOf(v any) *Schema {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		panic(intoMessage)
	}
	return schemaOf(p.Elem())
}

// schemaOf describes an addressable value.
func schemaOf(v reflect.Value) *Schema {
	if v.Type() == goDuration {
		v = as(v, duration)
	}
	t := v.Type()
	if t == nodeType {
		return &Schema{}
	}
	if t.Kind() == reflect.Pointer {
		return schemaOf(fresh(t.Elem()))
	}
	if s, ok := v.Addr().Interface().(Schemer); ok {
		return s.PlanSchema()
	}
	if u, ok := v.Interface().(interface{ Unit() string }); ok {
		return &Schema{Ref: Definition(u.Unit())}
	}
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return &Schema{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(v)
	case reflect.Slice:
		return &Schema{Type: Types{"array"}, Items: schemaOf(fresh(t.Elem()))}
	case reflect.Map:
		return &Schema{Type: Types{"object"}, Others: schemaOf(fresh(t.Elem()))}
	case reflect.String:
		return &Schema{Type: Types{"string", "number", "boolean"}} // a text needs no quotes
	case reflect.Bool:
		return &Schema{Type: Types{"boolean"}}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Types{"number"}}
	}
	scalarNames(t) // panics if it is none
	s := &Schema{Type: Types{"integer"}}
	if v.CanUint() {
		s.Minimum = "0"
	}
	return s
}

// fresh makes a value as Decode does.
func fresh(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	setDefaults(p)
	return p.Elem()
}

func structSchema(v reflect.Value) *Schema {
	s := &Schema{Type: Types{"object"}, Closed: true}
	fields := field.Tags(v.Type())
	for i := range fields {
		f := &fields[i]
		if f.Node {
			continue
		}
		value := v.FieldByIndex(f.Index)
		if f.Unit != "" && value.Kind() != reflect.Pointer {
			value = as(value, quantity(value.Type(), f.Unit))
		}
		key := schemaOf(value)
		if listOrWord(f, value.Type()) {
			key = &Schema{AnyOf: []*Schema{{Const: f.Words[0]}, key}}
		}
		refine(f, key)
		key.Default = defaultOf(f, value, key)
		s.Properties = append(s.Properties, Property{f.Key, key})
		if f.Required {
			s.Required = append(s.Required, f.Key)
		}
	}
	for i := range fields {
		s.exclude(&fields[i])
	}
	if r, ok := v.Addr().Interface().(Refiner); ok {
		r.RefineSchema(s)
	}
	return s
}

// defaultOf is what a key has where a plan leaves it out; nil if that is no single value.
func defaultOf(f *field.Tag, v reflect.Value, s *Schema) *syntax.Node {
	if f.Required || f.Absent(v) || v.Kind() == reflect.Pointer && v.IsNil() || s.Properties != nil {
		return nil
	}
	n, err := encodeField(f, v)
	if err != nil {
		return nil // a value that no plan can give
	}
	return n
}

// refine lays what a field's tags say over the schema of its type.
func refine(f *field.Tag, s *Schema) {
	s.Description = f.Help()
	s.Rivals, s.With = f.Rivals(), f.With
	named := s
	if s.Items != nil && reflect.DeepEqual(s.Items, &Schema{}) {
		named = s.Items
	}
	if f.Names != "" {
		named.Ref = Definition(f.Names)
	}
	for _, word := range f.Words {
		if s.AnyOf != nil {
			break // it is among them
		}
		if slices.Equal(s.Type, Types{"integer"}) {
			s.Enum = append(s.Enum, json.Number(word))
		} else {
			s.Type, s.Enum = Types{"string"}, append(s.Enum, word)
		}
	}
	if f.Counts != nil && f.Counts.Spans {
		s.Type, s.Pattern = Types{"integer", "string"}, unit.SpanPattern
	}
	switch {
	case f.Range == nil:
	case s.Ref != "": // a text with a unit, of which a schema can say that it is not nothing
		if f.Range.Above {
			s.Not = Zero()
		}
	default:
		least, most := &s.Minimum, &s.Maximum
		if f.Range.Above {
			least = &s.Above
		}
		if f.Range.Below {
			most = &s.Below
		}
		*least, *most = json.Number(f.Range.Low), json.Number(f.Range.High)
	}
}

// exclude says what the key of a field, which s has, does not go with.
func (s *Schema) exclude(f *field.Tag) {
	for _, rival := range f.Rivals() {
		if rival > f.Key { // once for the two
			s.AllOf = append(s.AllOf, &Schema{Not: &Schema{Required: []string{rival, f.Key}}})
		}
	}
	if rivals := f.Rivals(); len(rivals) > 0 && f.Key == f.Either[0] {
		none := !slices.ContainsFunc(f.Either, func(key string) bool { return s.Properties.Get(key).Default != nil })
		if none {
			s.AllOf = append(s.AllOf, &Schema{AnyOf: NeedsOne(f.Either...)})
		}
	}
	if f.With == nil {
		return
	}
	own := &Schema{Not: Zero()}
	switch key := s.Properties.Get(f.Key); {
	case slices.Equal(key.Type, Types{"boolean"}):
		own = &Schema{Const: true}
	case slices.Contains(key.Type, "boolean"): // a text
		own = &Schema{Not: &Schema{Const: ""}}
	}
	s.AllOf = append(s.AllOf, &Schema{
		If:   &Schema{Required: []string{f.Key}, Properties: Properties{{f.Key, own}}},
		Then: s.meets(f.With),
	})
}

// meets is the schema of maps, described by s, in which a condition holds.
func (s *Schema) meets(c *field.Condition) *Schema {
	key := s.Properties.Get(c.Key)
	if c.Word == "" {
		if key.Default == nil {
			return NeedsOne(c.Key)[0]
		}
		return &Schema{Not: &Schema{AnyOf: NeedsOne(key.Rivals...)}}
	}
	met := &Schema{Properties: Properties{{c.Key, &Schema{Const: c.Word}}}}
	if key.Default == nil || key.Default.Text != c.Word {
		met.Required = []string{c.Key}
	}
	return met
}

const definitions = "#/$defs/"

// Definition refers to the definition of that name in a [Document].
func Definition(name string) string { return definitions + name }

// Document makes the whole schema of a plan. defs are what fields tagged names refer to: data,
// model, train, architecture, delay, link-rate and topology.
//
// In a plan with a sweep, the sweep may supply required keys. Other definitions, whose names begin
// with swept and in which nothing is required, then check the plan's keys.
func Document(title string, root *Schema, defs Properties) *Schema {
	all := append(Properties{{"plan", root}}, defs...)
	doc := &Schema{
		Dialect: Dialect, Title: title, Type: Types{"object"},
		Description: "What is run: data, model, architecture, nodes, network, and when to stop.",
		If:          &Schema{Required: []string{"sweep"}},
		Then:        &Schema{Ref: Definition(swept + "plan")},
		Else:        &Schema{Ref: Definition("plan")},
	}
	units := Units()
	for _, d := range all {
		doc.Defs = append(doc.Defs, d, Property{swept + d.Name, d.Schema.partial(units)})
	}
	doc.Defs = append(doc.Defs, units...)
	for i, d := range doc.Defs {
		if doc.Defs[:i].Get(d.Name) != nil {
			panic("settings: two definitions are called " + d.Name)
		}
	}
	return doc
}

const swept = "swept."

// partial is a copy of s in which nothing is required, and whose references are to such copies.
func (s *Schema) partial(units Properties) *Schema {
	if s == nil {
		return nil
	}
	c := *s
	c.Required = nil
	if name := strings.TrimPrefix(s.Ref, definitions); s.Ref != "" && units.Get(name) == nil {
		c.Ref = Definition(swept + name)
	}
	c.Items, c.Others = s.Items.partial(units), s.Others.partial(units)
	c.Then, c.Else = s.Then.partial(units), s.Else.partial(units)
	c.Properties = nil
	for _, p := range s.Properties {
		c.Properties = append(c.Properties, Property{p.Name, p.Schema.partial(units)})
	}
	list := func(all []*Schema) (out []*Schema) {
		for _, a := range all {
			if slices.ContainsFunc(all, (*Schema).onlyRequires) {
				return nil
			}
			out = append(out, a.partial(units))
		}
		return out
	}
	c.AllOf, c.AnyOf, c.OneOf = list(s.AllOf), list(s.AnyOf), list(s.OneOf)
	return &c
}

// onlyRequires reports whether s asks for keys and says nothing else.
func (s *Schema) onlyRequires() bool {
	return s.Required != nil && s.Type == nil && s.Properties == nil && s.If == nil
}

// Walk calls visit for every key that s and its definitions describe, with its path.
func (s *Schema) Walk(path string, visit func(path string, s *Schema)) {
	if s == nil {
		return
	}
	for _, list := range []Properties{s.Properties, s.Defs} {
		for _, p := range list {
			visit(path+"."+p.Name, p.Schema)
			p.Schema.Walk(path+"."+p.Name, visit)
		}
	}
	for _, inner := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*Schema{s.Items, s.Others, s.Then, s.Else}) {
		inner.Walk(path, visit)
	}
}

// Words are the words and numbers that alone are accepted; none if it is not for the schema to list
// them.
func (s *Schema) Words() (words []string) {
	for _, word := range s.Enum {
		words = append(words, fmt.Sprint(word))
	}
	return words
}

// Accepted says which values are accepted, as far as the schema alone says it: words with commas
// between them, the name of a quantity or of what is defined elsewhere, a range, or types.
func (s *Schema) Accepted() string {
	name := strings.TrimPrefix(s.Ref, definitions)
	switch {
	case s.Enum != nil:
		return strings.Join(s.Words(), ", ")
	case s.Ref != "" && s.Not != nil:
		return name + ", more than none"
	case s.Ref != "":
		return name
	case s.Above != "" && s.Maximum != "":
		return "more than " + s.Above.String() + ", up to " + s.Maximum.String()
	case s.Above != "":
		return "more than " + s.Above.String()
	case s.Below != "":
		return s.Minimum.String() + " or more, below " + s.Below.String()
	case s.Maximum != "":
		return s.Minimum.String() + " to " + s.Maximum.String()
	case s.Minimum != "":
		return s.Minimum.String() + " or more"
	case len(s.Type) == 3:
		return "text"
	}
	return strings.Join(s.Type, ", ")
}
