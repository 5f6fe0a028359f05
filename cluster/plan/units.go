package plan

import (
	"regexp"
	"slices"
	"strings"
)

// Patterns of units as JSON Schema has them. They accept what the parsers of this package do, but for lengths and the
// largest numbers.
const (
	numberPattern   = `([0-9]+\.?[0-9]*|\.[0-9]+)`
	timePattern     = `(ns|us|µs|μs|ms|s|m|h)`
	durationPattern = `[0-9]+\.?[0-9]*( ?` + timePattern + `|` + timePattern + `(` + numberPattern + timePattern + `)+)`
)

// Units are the definitions of quantities, to which the schemas of their types refer.
func Units() Properties {
	text := func(description, pattern string, examples ...string) *Schema {
		return &Schema{Type: Types{"string"}, Description: description, Pattern: "^(" + pattern + ")$", Examples: examples}
	}
	fraction := &Schema{Description: "A share from 0 to 1: 94% or 0.94.", AnyOf: []*Schema{
		{Type: Types{"number"}, Minimum: "0", Maximum: "1"},
		text("A share in percent.", `\+?0*(100(\.0*)?|[0-9]{1,2}(\.[0-9]*)?|\.[0-9]+) ?%`, "94%"),
	}}
	return Properties{
		{"duration", text("A duration with its unit: ns, us, ms, s, m or h.", durationPattern, "5ms", "1.5s", "1m30s")},
		{"duration-range", text("A range of durations, or one.", durationPattern+`( *\.\. *`+durationPattern+`)?`, "1s..5s", "2s")},
		{"interval", text("A distance between two events: epochs, steps or a duration.",
			`([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? +epochs?|[0-9]+ +steps?|`+durationPattern, "0.05 epochs", "10 steps", "2s")},
		{"fraction", fraction},
		{"byte-rate", text("A number with a unit of bits or bytes a second, or unlimited.", unlimited+"|"+byteRates.pattern(), "10 Mbit/s", "100 KiB/s")},
		{"speed", text("Floating-point operations per second.", speeds.pattern(), "10 GFLOP/s")},
		{"size", text("A number of bytes.", sizes.pattern(), "64 KiB", "1 MB")},
	}
}

// pattern accepts a number and one of the units.
func (q *scale) pattern() string {
	var names []string
	for _, u := range q.units {
		names = append(names, regexp.QuoteMeta(u.name))
	}
	return numberPattern + ` *(` + strings.Join(names, "|") + `)`
}

// PlanSchema refers to [Units].
func (*Duration) PlanSchema() *Schema { return &Schema{Ref: definition("duration")} }

// PlanSchema refers to [Units].
func (*DurationRange) PlanSchema() *Schema { return &Schema{Ref: definition("duration-range")} }

// PlanSchema refers to [Units].
func (*Interval) PlanSchema() *Schema { return &Schema{Ref: definition("interval")} }

// PlanSchema refers to [Units].
func (*Fraction) PlanSchema() *Schema { return &Schema{Ref: definition("fraction")} }

// PlanSchema refers to [Units].
func (*ByteRate) PlanSchema() *Schema { return &Schema{Ref: definition("byte-rate")} }

// PlanSchema refers to [Units].
func (*Speed) PlanSchema() *Schema { return &Schema{Ref: definition("speed")} }

// PlanSchema refers to [Units].
func (*Size) PlanSchema() *Schema { return &Schema{Ref: definition("size")} }

// zero describes a quantity of nothing: the number 0, or a text whose digits are all 0, but for those of an exponent.
func zero() *Schema {
	return &Schema{AnyOf: []*Schema{{Const: 0}, {Type: Types{"string"}, Pattern: `^([^1-9]*|[0.]+[eE].*)$`}}}
}

// above0 asks that a key, if it is there, is more than nothing.
func (s *Schema) above0(keys ...string) {
	for _, key := range keys {
		s.Properties.Get(key).Not = zero()
	}
}

// needsOne asks for at least one of the keys.
func needsOne(keys ...string) []*Schema {
	var ways []*Schema
	for _, key := range keys {
		ways = append(ways, &Schema{Required: []string{key}})
	}
	return ways
}

// only lets a map have no keys but these.
func (s *Schema) only(keys ...string) *Schema {
	c := &Schema{Closed: true}
	for _, p := range s.Properties {
		if slices.Contains(keys, p.Name) {
			key := *p.Schema
			c.Properties = append(c.Properties, Property{p.Name, &key})
		}
	}
	return c
}

// RefineSchema says how a plan's name is built.
func (p *Plan) RefineSchema(s *Schema) {
	name := s.Properties.Get("name")
	name.Pattern = `^[^/\\:*?"<>|]{1,100}$`
	name.Not = &Schema{Pattern: `^\.*$`}
	s.Properties.Get("seed").Maximum = "18446744073709551615"
	s.Properties.Get("nodes").MinItems = 1
	s.Required = append(s.Required, "stop") // which must have a bound
}

// RefineSchema says how a node's name is built.
func (s *NodeSpec) RefineSchema(schema *Schema) {
	name := schema.Properties.Get("name")
	name.Pattern = `^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`
	name.Not = &Schema{Enum: []any{Coordinator, "nonhost"}}
}

// PlanSchema is the word native or a map with step or speed, and cores.
func (c *Compute) PlanSchema() *Schema {
	m := SchemaOf(&computeMap{Cores: 1})
	m.Not = &Schema{Required: []string{"step", "speed"}}
	return &Schema{AnyOf: []*Schema{{Const: "native"}, m}}
}

// PlanSchema is the word none or a map of topology, default and links.
func (s *NetworkSpec) PlanSchema() *Schema {
	type plain NetworkSpec
	p := plain(*s)
	return &Schema{AnyOf: []*Schema{{Const: none, Description: "nothing is emulated: the network is what there is"}, SchemaOf(&p)}}
}

// RefineSchema says that a link has ends of one of two forms.
func (l *LinkSpec) RefineSchema(s *Schema) {
	s.Properties.Get("between").MinItems, s.Properties.Get("between").MaxItems = 2, 2
	s.AllOf = append(s.AllOf, eitherWay("between"))
}

// eitherWay asks for both directions, under a key, or for one.
func eitherWay(both string) *Schema {
	excluded := &Schema{AnyOf: needsOne("from", "to")}
	return &Schema{OneOf: []*Schema{{Required: []string{both}, Not: excluded}, {Required: []string{"from", "to"}, Not: needsOne(both)[0]}}}
}

// PlanSchema is that of a map with the keys of a loss.
func (l *Loss) PlanSchema() *Schema {
	type plain Loss
	p := plain{}
	(*Loss)(&p).SetDefaults()
	s := SchemaOf(&p)
	s.above0("timeout")
	none := zero()
	none.Description = "0%, beside bursts"
	s.OneOf = []*Schema{{Required: []string{"probability"}, Not: needsOne("bursts")[0]}, {Required: []string{"bursts"}, Properties: Properties{{"probability", none}}}}
	return s
}

// PlanSchema is that of a map of probabilities.
func (b *Bursts) PlanSchema() *Schema {
	type plain Bursts
	p := plain{}
	(*Bursts)(&p).SetDefaults()
	s := SchemaOf(&p)
	s.above0("p", "r")
	return s
}

// PlanSchema is that of one outage, or of many at random.
func (*Outage) PlanSchema() *Schema {
	one, many := SchemaOf(&fixedOutage{}), SchemaOf(&randomOutages{})
	one.above0("for")
	return &Schema{Type: Types{"object"}, If: needsOne("kind")[0], Then: many, Else: one}
}

// RefineSchema says that a verdict takes time.
func (*Evaluate) RefineSchema(s *Schema) { s.above0("every", "lag") }

// RefineSchema says that a run must end.
func (*Stop) RefineSchema(s *Schema) {
	s.above0("time")
	s.AnyOf = needsOne("epochs", "steps", "time")
}

// RefineSchema says what goes with what in a change.
func (*Change) RefineSchema(s *Schema) {
	s.Properties.Get("link").MinItems, s.Properties.Get("link").MaxItems = 2, 2
	node, topology, link := s.only("at", "node", "do"), s.only("at", "topology"), s.only("at", "link", "from", "to", "delay", "rate", "loss", "do")
	node.Required, node.Properties.Get("do").Enum = []string{"do"}, []any{Crash, Leave, Join}
	link.Properties.Get("do").Enum = []any{Down, Up}
	link.AllOf = []*Schema{eitherWay("link"), {AnyOf: needsOne("delay", "rate", "loss", "do")}}
	s.If, s.Then = &Schema{Required: []string{"node"}}, node
	s.Else = &Schema{If: &Schema{Required: []string{"topology"}}, Then: topology, Else: link}
}

// PlanSchema is that of a map of paths to lists.
func (*Sweep) PlanSchema() *Schema {
	axes := func() *Schema {
		return &Schema{
			Type:  Types{"object"},
			Names: &Schema{Not: &Schema{Pattern: `^(sweep|version|name|repeats|record)([.\[]|$)|^[^"]*\.\.|^\.`}},
			Others: &Schema{Type: Types{"array"}, MinItems: 1,
				Description: "The values, one after the other; a map may have a label: for tables and plots, any other value is given one as {label: L, value: V}."},
		}
	}
	s := axes()
	s.Type = Types{"object", "null"}
	s.Properties = Properties{{zip, &Schema{
		Description: "paths whose lists have as many values each, which are paired instead of multiplied; or a list of several such maps",
		AnyOf:       []*Schema{axes(), {Type: Types{"array"}, Items: axes()}},
	}}}
	return s
}
