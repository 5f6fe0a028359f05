package settings

import (
	"slices"

	"github.com/gradwire/gradwire/cluster/plan/unit"
)

// Units are the definitions of quantities, to which the schemas of their types refer.
func Units() Properties {
	var all Properties
	for _, f := range unit.Forms() {
		text := &Schema{
			Type: Types{"string"}, Description: f.Description, Pattern: "^(" + f.Pattern + ")$", Examples: f.Examples,
		}
		if f.Share {
			text.Description = "A share in percent."
			number := &Schema{Type: Types{"number"}, Minimum: "0", Maximum: "1"}
			text = &Schema{Description: f.Description, AnyOf: []*Schema{number, text}}
		}
		all = append(all, Property{f.Name, text})
	}
	return all
}

// Zero describes a quantity of nothing: the number 0, or a text whose digits are all 0, except in
// an exponent.
func Zero() *Schema {
	return &Schema{AnyOf: []*Schema{{Const: 0}, {Type: Types{"string"}, Pattern: `^([^1-9]*|[0.]+[eE].*)$`}}}
}

// NeedsOne asks for at least one of the keys.
func NeedsOne(keys ...string) []*Schema {
	var ways []*Schema
	for _, key := range keys {
		ways = append(ways, &Schema{Required: []string{key}})
	}
	return ways
}

// Only lets a map have no keys but these.
func (s *Schema) Only(keys ...string) *Schema {
	c := &Schema{Closed: true}
	for _, p := range s.Properties {
		if slices.Contains(keys, p.Name) {
			key := *p.Schema
			c.Properties = append(c.Properties, Property{p.Name, &key})
		}
	}
	return c
}
