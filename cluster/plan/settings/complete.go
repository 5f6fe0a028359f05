package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Completion is a way to go on with what is written, and what it means.
type Completion struct{ Text, Doc string }

// Complete lists the ways to go on with an assignment KEY=VALUE, as of --set, to the plan root:
// keys below the path up to its last dot, or words for the value. s is a schema that [Document] has
// made; root may be nil. Ways that end in a dot or in = are not whole.
func (s *Schema) Complete(root *syntax.Node, text string) []Completion {
	at := place{doc: s, schema: &Schema{Ref: Definition("plan")}, node: root}
	path, _, valued := strings.Cut(text, "=")
	prefix := ""
	if !valued {
		prefix = path[:strings.LastIndex(path, ".")+1]
		path = strings.TrimSuffix(prefix, ".")
	}
	if path != "" {
		steps, err := syntax.SplitPath(path)
		if err != nil {
			return nil
		}
		for _, step := range steps {
			var ok bool
			if at, ok = at.child(step); !ok {
				return nil
			}
		}
	}
	var all []Completion
	if valued {
		all = at.values(path + "=")
	} else {
		all = at.keys(prefix)
	}
	return slices.DeleteFunc(all, func(c Completion) bool { return !strings.HasPrefix(c.Text, text) })
}

// place is somewhere in a plan: what stands there, if anything, and what may.
type place struct {
	doc    *Schema
	schema *Schema
	node   *syntax.Node
}

// forms are the schemas that together say what may stand at a place: references followed, and of
// those that hold on a condition the ones whose condition does.
func (p place) forms() []*Schema {
	var all []*Schema
	var visit func(s *Schema)
	visit = func(s *Schema) {
		if s == nil || slices.Contains(all, s) {
			return
		}
		all = append(all, s)
		if s.Ref != "" {
			visit(p.doc.Defs.Get(strings.TrimPrefix(s.Ref, definitions)))
		}
		for _, a := range s.AnyOf {
			visit(a)
		}
		for _, a := range s.AllOf {
			if a.If != nil && p.holds(a.If) {
				visit(a.Then)
			}
		}
	}
	visit(p.schema)
	return all
}

// holds reports whether keys of the plan have, or could have where there are none yet, the values
// that a condition names.
func (p place) holds(condition *Schema) bool {
	if p.node == nil {
		return true
	}
	for _, key := range condition.Properties {
		value, ok := p.node.Get(key.Name)
		if !ok || key.Schema.Const != value.Text {
			return false
		}
	}
	return condition.Properties != nil
}

// child goes on to what a piece of a path names.
func (p place) child(s syntax.Step) (place, bool) {
	next := place{doc: p.doc}
	if p.node != nil {
		next.node, _ = p.node.Child(s) // what leads nowhere has no node
	}
	for _, form := range p.forms() {
		found := form.Items
		if len(form.Properties) > 0 || form.Others != nil {
			if found = form.Properties.Get(s.Text); found == nil {
				found = form.Others
			}
		}
		if found != nil {
			next.schema = found
			return next, true
		}
	}
	return next, false
}

// keys lists what may follow a prefix that ends at this place.
func (p place) keys(prefix string) (all []Completion) {
	if p.node != nil && p.node.Kind == syntax.List {
		for i, item := range p.node.Items {
			for _, name := range syntax.ItemNames(item) {
				all = append(all, Completion{prefix + syntax.PathPiece(name) + ".", fmt.Sprintf("item %d", i)})
			}
		}
		return all
	}
	seen := map[string]bool{}
	for _, form := range p.forms() {
		for _, key := range form.Properties {
			if seen[key.Name] || key.Schema == nil || p.excluded(form, key.Schema) {
				continue
			}
			seen[key.Name] = true
			here, _ := p.child(syntax.Step{Text: key.Name})
			scalar, deeper := here.shape()
			name := prefix + syntax.PathPiece(key.Name)
			if scalar {
				all = append(all, Completion{name + "=", key.Schema.Description})
			}
			if deeper {
				all = append(all, Completion{name + ".", key.Schema.Description})
			}
		}
	}
	return all
}

// excluded reports whether a key of a form does not go with what stands at the place.
func (p place) excluded(form, key *Schema) bool {
	for _, rival := range key.Rivals {
		if _, given := p.node.Get(rival); given {
			return true
		}
	}
	if key.With == nil {
		return false
	}
	other := form.Properties.Get(key.With.Key)
	value, given := p.node.Get(key.With.Key)
	if !given {
		value = other.Default
	}
	if key.With.Word != "" {
		return value != nil && value.Text != key.With.Word
	}
	return !given && slices.ContainsFunc(other.Rivals, func(rival string) bool {
		_,
			there := p.node.Get(rival)
		return there
	})
}

// shape says whether a value can be written at the place, and whether there are keys or named items
// below it.
func (p place) shape() (value, deeper bool) {
	for _, form := range p.forms() {
		if form.onlyRequires() {
			continue
		}
		deeper = deeper || len(form.Properties) > 0
		value = value || form.Enum != nil || form.Const != nil || form.OneOf != nil || form.Ref == "" &&
			form.AnyOf == nil && form.Type == nil ||
			slices.ContainsFunc(form.Type, func(t string) bool { return t != "object" })
	}
	named := p.node != nil && slices.ContainsFunc(p.node.Items,
		func(item *syntax.Node) bool { return syntax.ItemNames(item) != nil })
	return value && !named, deeper || named
}

// values lists the words that may stand at the place, after a prefix, and what stands there now.
func (p place) values(prefix string) (all []Completion) {
	add := func(value, doc string) {
		if !slices.ContainsFunc(all, func(c Completion) bool { return c.Text == prefix+value }) {
			all = append(all, Completion{prefix + value, doc})
		}
	}
	for _, form := range p.forms() {
		for _, word := range form.Enum {
			add(fmt.Sprint(word), "")
		}
		if form.Const != nil {
			add(fmt.Sprint(form.Const), form.Description)
		}
		for _, one := range form.OneOf {
			if one.Const != nil {
				add(fmt.Sprint(one.Const), one.Description)
			}
		}
		if slices.Contains(form.Type, "boolean") && len(form.Type) == 1 {
			add("true", "")
			add("false", "")
		}
		if form.Default != nil && form.Default.Kind == syntax.Scalar {
			add(form.Default.Flow(), "the default")
		}
	}
	if p.node != nil && p.node.Kind == syntax.Scalar {
		add(p.node.Flow(), "as in the plan")
	}
	return all
}
