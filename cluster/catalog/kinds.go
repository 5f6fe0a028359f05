// Package catalog says what a plan can name: models, data sets, splits, optimisers, rate schedules,
// architectures, delay models and topologies. A program makes a Catalog with Default and adds its
// own kinds to it; there is no global one.
package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/field"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Kind is one thing that a plan can name in a place where a T is wanted.
type Kind[T any] struct {
	// Name is the word in the plan.
	Name string
	// Doc is one sentence for a list of kinds.
	Doc string
	// Exact states that an architecture's actors declare all their state, so that a run in virtual time that
	// was resumed from a checkpoint equals an uninterrupted run. If it is false, the record marks the run as
	// resumed.
	Exact bool

	// settings makes what a section is read into, a pointer to a struct with the defaults, and
	// build the T of it.
	settings func() any
	build    func(c *Catalog, chosen any) (T, error)
	refused  map[string]string
	presets  map[string]string // see [settings.Preset]
}

// Define makes a kind whose settings are a C: a struct with `plan` tags, see package field; fields
// of type *syntax.Node name other kinds, with a tag names:"architecture" and so on, see
// [Catalog.Schema]. Defaults returns it with what a plan may leave out. Build makes the T from it
// and spells out defaults that depend on other settings by writing them into the settings. An error
// of build gets the place of the key that About names, otherwise the place of the section. Where
// the T itself has the settings, use [Kinds.Declare].
func Define[C, T any](name, doc string, defaults func() C, build func(c *Catalog, chosen *C) (T, error)) Kind[T] {
	return Kind[T]{
		Name: name, Doc: doc,
		settings: func() any { chosen := defaults(); return &chosen },
		build:    func(c *Catalog, chosen any) (T, error) { return build(c, chosen.(*C)) },
	}
}

// Declare adds a kind whose settings are the fields of the value itself, by their tags; the value
// has the defaults. A value that is not a struct has no settings. If it has a method Validate()
// error, an error about a field gets the place of its key.
func (ks *Kinds[T]) Declare(name string, defaults T, doc string) {
	of := reflect.TypeOf(defaults)
	if of.Kind() != reflect.Struct {
		ks.Add(Define(name, doc, func() struct{} { return struct{}{} },
			func(*Catalog, *struct{}) (T, error) { return defaults, nil }))
		return
	}
	ks.Add(Kind[T]{
		Name: name, Doc: doc,
		settings: func() any {
			chosen := reflect.New(of)
			chosen.Elem().Set(reflect.ValueOf(defaults))
			return chosen.Interface()
		},
		build: func(_ *Catalog, chosen any) (value T, err error) {
			value = reflect.ValueOf(chosen).Elem().Interface().(T)
			if v, ok := any(value).(interface{ Validate() error }); ok {
				err = v.Validate()
			}
			return value, err
		},
	})
}

// read makes the T that a section has the settings of, and returns the section with every default
// spelled out. Errors name the keys besides that are accepted where it stands.
func (k Kind[T]) read(c *Catalog, section *syntax.Node, besides []string) (value T, resolved *syntax.Node, err error) {
	if section, err = settings.Preset(section, k.presets); err != nil {
		return value, nil, err
	}
	var errs syntax.Errors
	for _, f := range section.Fields {
		if reason, known := k.refused[f.Key]; known {
			errs, section = append(errs, syntax.KeyErrorf(section, f, "%s", reason)), section.Without(f.Key)
		}
	}
	counting := c.spans
	if counting == nil {
		counting = &spans{}
	}
	value, chosen, err := k.make(c, counting, section, besides)
	if errs = append(errs, syntax.Flatten(section, err)...); errs != nil {
		return value, nil, syntax.Join(errs)
	}
	if resolved, err = settings.Encode(chosen); err == nil {
		counting.note(resolved, section, reflect.TypeOf(chosen))
	}
	return value, resolved, err
}

// declared is what the settings say of themselves: their defaults and their schema.
func (k Kind[T]) declared() (defaults *syntax.Node, schema *settings.Schema) {
	chosen := k.settings()
	schema = settings.SchemaOf(chosen)
	defaults, err := settings.Encode(chosen)
	if err != nil {
		defaults = syntax.NewMap() // they are no plan's: they are not told
	}
	return defaults, schema
}

// Key is one of a kind's settings.
type Key struct {
	Name string
	// Doc says what it means, in a few words; empty if its declaration does not.
	Doc string
	// Default is what it has where a plan leaves it out; nil if it must be given, or if leaving it
	// out is not the same as any value.
	Default  *syntax.Node
	Required bool
	// Words are the words that alone are accepted, if only words are.
	Words []string
	// Accepted says which values are accepted, in a few words, as far as its declaration says it.
	Accepted string
}

// Keys lists the kind's settings in the order of their declaration.
func (k Kind[T]) Keys() []Key {
	defaults, schema := k.declared()
	keys := make([]Key, len(schema.Properties))
	for i, p := range schema.Properties {
		keys[i] = keyOf(p)
		keys[i].Required = slices.Contains(schema.Required, p.Name)
		if value, ok := defaults.Get(p.Name); ok && !keys[i].Required {
			keys[i].Default = value
		}
	}
	return keys
}

func keyOf(p settings.Property) Key {
	return Key{Name: p.Name, Doc: p.Schema.Description, Words: p.Schema.Words(), Accepted: p.Schema.Accepted()}
}

// keyError is an error about the value of a key.
type keyError struct {
	key string
	error
}

func (e *keyError) Unwrap() error { return e.error }

// About says which key of a kind's settings an error is about, an error of its build or of an
// architecture's Fit. The error then gets the place of that key's value. About returns nil for no
// error.
func About(key string, err error) error {
	if err == nil {
		return nil
	}
	return &keyError{key, err}
}

// Located gives an error about a section its place in the plan unless it has one: the place of the
// key that it is About, or of the section.
func Located(n *syntax.Node, err error) error {
	var one *syntax.Error
	var many syntax.Errors
	var key *keyError
	var wrong *field.Error
	switch {
	case errors.As(err, &one), errors.As(err, &many):
		return err
	case errors.As(err, &wrong):
		return settings.AtField(n, err)
	case errors.As(err, &key):
		return syntax.Errorf(n.At(key.key), "%w", err)
	}
	return syntax.Errorf(n, "%w", err)
}

// Settings describes the kind's settings in a plan's flow style: each key with its
// default, or the word required or optional.
func (k Kind[T]) Settings() string {
	var fields []syntax.Field
	for _, key := range k.Keys() {
		value := key.Default
		switch {
		case key.Required:
			value = syntax.NewScalar("required")
		case value == nil:
			value = syntax.NewScalar("optional")
		}
		fields = append(fields, syntax.Entry(key.Name, value))
	}
	return syntax.NewMap(fields...).Flow()
}

// Kinds are the kinds of one sort, in the order in which they were added.
type Kinds[T any] struct {
	what string // such as "model", for errors
	list []Kind[T]
}

// Add adds a kind. It panics if the name is taken: two kinds of one name are a
// mistake in the program.
func (ks *Kinds[T]) Add(k Kind[T]) {
	if _, taken := ks.find(k.Name); taken {
		panic(fmt.Sprintf("catalog: %s %q is defined twice", ks.what, k.Name))
	}
	ks.list = append(ks.list, k)
}

// Refuse gives the error about a key that a kind has not, and others have, a reason. It panics if
// there is no such kind.
func (ks *Kinds[T]) Refuse(name, key, reason string) {
	i := slices.Index(ks.names(), name)
	if ks.list[i].refused == nil {
		ks.list[i].refused = map[string]string{}
	}
	ks.list[i].refused[key] = reason
}

// SetExact sets Exact of a kind, which states that the actors of an architecture declare all their state;
// see [Kind]. It panics if there is no such kind.
func (ks *Kinds[T]) SetExact(name string) { ks.list[slices.Index(ks.names(), name)].Exact = true }

// All returns the kinds.
func (ks *Kinds[T]) All() []Kind[T] { return ks.list }

func (ks *Kinds[T]) find(name string) (Kind[T], bool) {
	for _, k := range ks.list {
		if k.Name == name {
			return k, true
		}
	}
	return Kind[T]{}, false
}

func (ks *Kinds[T]) names() []string {
	names := make([]string, len(ks.list))
	for i, k := range ks.list {
		names[i] = k.Name
	}
	return names
}

// Read makes what a section names under the key kind, and returns the section with
// every default spelled out. It is for kinds whose settings name another kind.
func (ks *Kinds[T]) Read(c *Catalog, section *syntax.Node) (value T, resolved *syntax.Node, err error) {
	return ks.read(c, section, "kind")
}

// readWord is Read for a section that may be a word alone.
func (ks *Kinds[T]) readWord(c *Catalog, n *syntax.Node) (value T, resolved *syntax.Node, err error) {
	if n.Kind == syntax.Scalar {
		n = n.As("kind")
	}
	return ks.Read(c, n)
}

// read makes what a section names under a key, and returns the section with
// every default spelled out. Keys in skip belong to somebody else.
func (ks *Kinds[T]) read(c *Catalog, section *syntax.Node, key string, skip ...string) (value T, resolved *syntax.Node,
	err error) {
	word, ok := section.Get(key)
	if _, known := ks.find(section.Text); known && section.Kind == syntax.Scalar {
		return value, nil, syntax.Errorf(section, "found %q where a map is expected; write {%s: %s}", section.Text, key,
			section.Text)
	}
	if !ok || word.Kind != syntax.Scalar {
		return value, nil, syntax.Errorf(section.At(key), "the %s is given by its %s: write %[2]s: and one of %s%s",
			ks.what, key, field.List(ks.names()), ks.completed(section, key))
	}
	k, ok := ks.find(word.Text)
	if !ok {
		return value, nil, ks.unknown(c, word, key)
	}
	value, chosen, err := k.read(c, section.Without(append(skip, key)...), skip)
	if err != nil {
		return value, nil, ks.explain(section, k.Name, key, err)
	}
	return value, syntax.NewMap(append(named(key, word.Text).Fields, chosen.Fields...)...), nil
}
