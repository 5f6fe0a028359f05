package plan

import (
	"github.com/gradwire/gradwire/cluster/link"
	"github.com/gradwire/gradwire/cluster/plan/settings"
)

// Document is the schema of a whole plan. defs are what fields tagged names refer to: data, model,
// train, architecture, delay, link-rate and topology.
func Document(title string, defs settings.Properties) *settings.Schema {
	root := settings.SchemaOf(Default())
	root.Properties.Get("name").Default = nil // the file's name
	return settings.Document(title, root, defs)
}

// RefineSchema says how a plan's name is built.
func (p *Plan) RefineSchema(s *settings.Schema) {
	name := s.Properties.Get("name")
	name.Pattern = `^[^/\\:*?"<>|]{1,100}$`
	name.Not = &settings.Schema{Pattern: `^\.*$`}
	s.Properties.Get("seed").Maximum = "18446744073709551615"
	s.Properties.Get("nodes").MinItems = 1
	s.Required = append(s.Required, "stop") // which must have a bound
}

// RefineSchema says how a node's name is built.
func (s *NodeSpec) RefineSchema(schema *settings.Schema) {
	name := schema.Properties.Get("name")
	name.Pattern = `^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}$`
	name.Not = &settings.Schema{Enum: []any{Coordinator, "nonhost"}}
}

// PlanSchema is the word native or a map with native, step or speed, and cores and threads.
func (c *Compute) PlanSchema() *settings.Schema {
	m := settings.SchemaOf(&computeMap{Cores: 1})
	m.Not = &settings.Schema{AnyOf: []*settings.Schema{{Required: []string{"step", "speed"}},
		{Required: []string{"step", "native"}}, {Required: []string{"speed", "native"}}}}
	return &settings.Schema{AnyOf: []*settings.Schema{{Const: "native"}, m}}
}

// PlanSchema is the word none or a map of topology, default and links.
func (s *NetworkSpec) PlanSchema() *settings.Schema {
	type plain NetworkSpec
	p := plain(*s)
	m := settings.SchemaOf(&p)
	preset, sites := settings.NeedsOne("preset")[0], settings.NeedsOne("sites")[0]
	m.AllOf = append(m.AllOf,
		&settings.Schema{Not: &settings.Schema{Required: []string{"preset", "matrix"}}},
		&settings.Schema{If: preset, Then: sites},
		&settings.Schema{If: sites, Then: &settings.Schema{AnyOf: settings.NeedsOne("preset", "matrix")}})
	return &settings.Schema{AnyOf: []*settings.Schema{{Const: none,
		Description: "nothing is emulated: the network is what there is"}, m}}
}

// RefineSchema says that a link has ends of one of two forms.
func (l *LinkSpec) RefineSchema(s *settings.Schema) {
	s.Properties.Get("between").MinItems, s.Properties.Get("between").MaxItems = 2, 2
	s.AllOf = append(s.AllOf, eitherWay("between"))
}

// eitherWay asks for both directions, under a key, or for one.
func eitherWay(both string) *settings.Schema {
	excluded := &settings.Schema{AnyOf: settings.NeedsOne("from", "to")}
	return &settings.Schema{OneOf: []*settings.Schema{{Required: []string{both}, Not: excluded},
		{Required: []string{"from", "to"}, Not: settings.NeedsOne(both)[0]}}}
}

// PlanSchema describes a map with the keys of a loss.
func (*Loss) PlanSchema() *settings.Schema {
	var loss link.Loss
	loss.SetDefaults()
	s := settings.SchemaOf(&loss)
	none := settings.Zero()
	none.Description = "0%, beside bursts"
	s.OneOf = []*settings.Schema{{Required: []string{"probability"}, Not: settings.NeedsOne("bursts")[0]},
		{Required: []string{"bursts"}, Properties: settings.Properties{{Name: "probability", Schema: none}}}}
	return s
}

// PlanSchema describes one outage, or many at random.
func (*Outage) PlanSchema() *settings.Schema {
	one, many := settings.SchemaOf(&fixedOutage{}), settings.SchemaOf(&randomOutages{})
	return &settings.Schema{Type: settings.Types{"object"}, If: settings.NeedsOne("kind")[0], Then: many, Else: one}
}

// RefineSchema says that a verdict takes time.
func (*Evaluate) RefineSchema(s *settings.Schema) {
	s.Properties.Get("every").Not, s.Properties.Get("lag").Not = settings.Zero(), settings.Zero()
}

// RefineSchema says that a run must end.
func (*Stop) RefineSchema(s *settings.Schema) {
	s.AnyOf = settings.NeedsOne("epochs", "steps", "rounds", "time")
}

// RefineSchema says what goes with what in a change.
func (*Change) RefineSchema(s *settings.Schema) {
	s.Properties.Get("link").MinItems, s.Properties.Get("link").MaxItems = 2, 2
	node, topology := s.Only("at", "node", "do", "for", "factor", "notice"), s.Only("at", "topology")
	cut := s.Only("at", "cut", "for")
	link := s.Only("at", "link", "from", "to", "delay", "rate", "loss", "reorder", "do")
	being := func(key string, words ...string) *settings.Schema {
		one := *s.Properties.Get(key)
		for _, word := range words {
			one.Enum = append(one.Enum, word)
		}
		return &settings.Schema{Properties: settings.Properties{{Name: key, Schema: &one}}, Required: []string{key}}
	}
	given := func(key string) *settings.Schema { return &settings.Schema{Required: []string{key}} }
	node.Required, node.AllOf = []string{"do"}, []*settings.Schema{being("do", nodeWords...),
		{If: being("do", Pause, Restart, Slow), Then: given("for")},
		{If: being("do", Slow), Then: given("factor")}, {If: being("do", Preempt), Then: given("notice")},
		{If: given("factor"), Then: being("do", Slow)}, {If: given("notice"), Then: being("do", Preempt)},
		{If: given("for"), Then: being("do", Pause, Restart, Slow, Preempt)},
		{If: being("node", Coordinator), Then: being("do", Crash, Leave, Pause)}}
	cut.Required = []string{"for"}
	link.Properties.Get("do").Enum = []any{Down, Up}
	changes := settings.NeedsOne("delay", "rate", "loss", "reorder", "do")
	link.AllOf = []*settings.Schema{eitherWay("link"), {AnyOf: changes}}
	s.If, s.Then = &settings.Schema{Required: []string{"node"}}, node
	s.Else = &settings.Schema{If: &settings.Schema{Required: []string{"topology"}}, Then: topology,
		Else: &settings.Schema{If: &settings.Schema{Required: []string{"cut"}}, Then: cut, Else: link}}
}

// PlanSchema describes a map of paths to lists.
func (*Sweep) PlanSchema() *settings.Schema {
	axes := func() *settings.Schema {
		return &settings.Schema{
			Type: settings.Types{"object"},
			Names: &settings.Schema{Not: &settings.Schema{
				Pattern: `^(sweep|version|name|repeats|record)([.\[]|$)|^[^"]*\.\.|^\.`,
			}},
			Others: &settings.Schema{Type: settings.Types{"array"}, MinItems: 1,
				Description: "The values, one after the other; a map may have a label: for tables and plots, any " +
					"other value is given one as {label: L, value: V}."},
		}
	}
	s := axes()
	s.Type = settings.Types{"object", "null"}
	s.Properties = settings.Properties{{Name: zip, Schema: &settings.Schema{
		Description: "paths whose lists have as many values each, which are paired instead of multiplied; or a list " +
			"of several such maps",
		AnyOf: []*settings.Schema{axes(), {Type: settings.Types{"array"}, Items: axes()}},
	}}}
	return s
}
