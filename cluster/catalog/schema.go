package catalog

import (
	"github.com/gradwire/gradwire/cluster/plan"
)

// Schema is the JSON Schema of plans that name what is in the catalog. Its definitions, which tags names:"…"
// refer to, are data, model, layer, split, train, optimizer, rate, architecture, delay and topology.
func (c *Catalog) Schema(title string) *plan.Schema {
	settings := common{Fit: "train", Split: plan.NewMap(plan.Field{Key: "kind", Value: plan.NewText("iid")})}
	shared := plan.SchemaOf(&settings).Properties
	for _, key := range []string{"test", "scale"} {
		shared.Get(key).Default = nil // each set has its own
	}
	roles := plan.SchemaOf(&parts{}).Properties
	return plan.Document(title, plan.Properties{
		{Name: "data", Schema: c.Datasets.schema("set", shared)},
		{Name: "split", Schema: c.Splits.schema("kind", nil)},
		{Name: "model", Schema: c.Models.schema("kind", nil)},
		{Name: "layer", Schema: c.Layers.wordOrMap()},
		{Name: "train", Schema: plan.SchemaOf(&training{Batch: 32})},
		{Name: "optimizer", Schema: c.Optimizers.schema("kind", nil)},
		{Name: "rate", Schema: &plan.Schema{AnyOf: []*plan.Schema{
			{Type: plan.Types{"number"}, Minimum: "0", Description: "The same at every step."}, c.Schedules.schema("kind", nil),
		}}},
		{Name: "architecture", Schema: c.Architectures.schema("kind", roles)},
		{Name: "delay", Schema: &plan.Schema{AnyOf: []*plan.Schema{new(plan.Duration).PlanSchema(), c.Delays.schema("kind", nil)}}},
		{Name: "topology", Schema: c.Topologies.wordOrMap()},
	})
}

// schema describes a section that names a kind under a key, with its settings and those shared by all kinds.
func (ks *Kinds[T]) schema(key string, shared plan.Properties) *plan.Schema {
	word := &plan.Schema{Description: "which " + ks.what}
	s := &plan.Schema{Type: plan.Types{"object"}, Required: []string{key}, Properties: plan.Properties{{Name: key, Schema: word}}}
	for _, k := range ks.list {
		this := &plan.Schema{Const: k.Name, Description: k.Doc}
		word.OneOf = append(word.OneOf, this)
		_, settings := k.declared()
		settings.Description = k.Doc
		if settings.Closed { // else it reads what it likes
			settings.Properties = append(append(plan.Properties{{Name: key, Schema: this}}, settings.Properties...), shared...)
		}
		s.AllOf = append(s.AllOf, &plan.Schema{
			If:   &plan.Schema{Properties: plan.Properties{{Name: key, Schema: &plan.Schema{Const: k.Name}}}, Required: []string{key}},
			Then: settings,
		})
	}
	return s
}

// wordOrMap describes a kind that is given by its name alone, if none of its settings is required, or by a map.
func (ks *Kinds[T]) wordOrMap() *plan.Schema {
	words := &plan.Schema{Type: plan.Types{"string"}}
	for _, k := range ks.list {
		if _, settings := k.declared(); settings.Required == nil {
			words.OneOf = append(words.OneOf, &plan.Schema{Const: k.Name, Description: k.Doc})
		}
	}
	return &plan.Schema{AnyOf: []*plan.Schema{words, ks.schema("kind", nil)}}
}

// PlanSchema is the word published or a share.
func (*holdout) PlanSchema() *plan.Schema {
	share := new(plan.Fraction).PlanSchema()
	share.Not = &plan.Schema{Enum: []any{0, 1}}
	return &plan.Schema{AnyOf: []*plan.Schema{{Const: published}, share}}
}

// PlanSchema is the word none or a share.
func (*validation) PlanSchema() *plan.Schema {
	share := new(plan.Fraction).PlanSchema()
	share.Not = &plan.Schema{Enum: []any{0, 1}}
	return &plan.Schema{AnyOf: []*plan.Schema{{Const: noValidation}, share}}
}

// PlanSchema is the word metropolis or a list of rows.
func (*mixing) PlanSchema() *plan.Schema {
	return &plan.Schema{AnyOf: []*plan.Schema{{Const: metropolis}, plan.SchemaOf(&[][]float64{})}}
}
