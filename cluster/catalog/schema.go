package catalog

import (
	"github.com/gradwire/gradwire/actors/dpsgd"
	"github.com/gradwire/gradwire/cluster/plan"
	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/unit"
	"github.com/gradwire/gradwire/nn/compress"
)

// Schema is the JSON Schema of plans that name what is in the catalog. Its definitions, which tags
// names:"…" refer to, are data, model, layer, split, train, optimizer, rate, architecture,
// consistency, compress, compress-up, compress-models, choco, compressor, delay, link-rate and
// topology.
func (c *Catalog) Schema(title string) *settings.Schema {
	described := common{Fit: "train", Split: named("kind", "iid")}
	shared := settings.SchemaOf(&described).Properties
	for _, key := range []string{"test", "scale"} {
		shared.Get(key).Default = nil // each set has its own
	}
	roles := settings.SchemaOf(&parts{}).Properties
	return plan.Document(title, settings.Properties{
		{Name: "data", Schema: c.Datasets.schema("set", shared)},
		{Name: "split", Schema: c.Splits.schema("kind", nil)},
		{Name: "model", Schema: c.Models.schema("kind", nil)},
		{Name: "layer", Schema: c.Layers.wordOrMap()},
		{Name: "train", Schema: settings.SchemaOf(&training{Batch: 32})},
		{Name: "optimizer", Schema: c.Optimizers.schema("kind", nil)},
		{Name: "rate", Schema: &settings.Schema{AnyOf: []*settings.Schema{
			{Type: settings.Types{"number"}, Minimum: "0", Description: "The same at every step."},
			c.Schedules.schema("kind", nil),
		}}},
		{Name: "architecture", Schema: c.Architectures.schema("kind", roles)},
		{Name: "consistency", Schema: c.Consistencies.wordOrMap()},
		{Name: "compress", Schema: settings.SchemaOf(&compression{Feedback: compress.EF})},
		{Name: "compress-up", Schema: settings.SchemaOf(&upward{Feedback: compress.EF})},
		{Name: "compress-models", Schema: settings.SchemaOf(&whole{})},
		{Name: "choco", Schema: settings.SchemaOf(&choco{Choco: dpsgd.Choco{Rate: 1}})},
		{Name: "compressor", Schema: c.Compressors.wordOrMap()},
		{Name: "delay", Schema: &settings.Schema{AnyOf: []*settings.Schema{settings.SchemaOf(new(unit.Duration)),
			c.Delays.schema("kind", settings.SchemaOf(&drawing{Draw: "message"}).Properties)}}},
		{Name: "link-rate", Schema: &settings.Schema{AnyOf: []*settings.Schema{settings.SchemaOf(new(unit.ByteRate)),
			c.LinkRates.schema("kind", nil)}}},
		{Name: "topology", Schema: c.Topologies.wordOrMap()},
	})
}

// schema describes a section that names a kind under a key, with its settings and those shared by
// all kinds.
func (ks *Kinds[T]) schema(key string, shared settings.Properties) *settings.Schema {
	word := &settings.Schema{Description: "which " + ks.what}
	s := &settings.Schema{Type: settings.Types{"object"}, Required: []string{key},
		Properties: settings.Properties{{Name: key, Schema: word}}}
	for _, k := range ks.list {
		this := &settings.Schema{Const: k.Name, Description: k.Doc}
		word.OneOf = append(word.OneOf, this)
		_, described := k.declared()
		described.Description = k.Doc
		if described.Closed { // else it reads what it likes
			described.Properties = append(append(settings.Properties{{Name: key, Schema: this}},
				described.Properties...), shared...)
		}
		s.AllOf = append(s.AllOf, &settings.Schema{
			If: &settings.Schema{Properties: settings.Properties{{Name: key,
				Schema: &settings.Schema{Const: k.Name}}}, Required: []string{key}},
			Then: described,
		})
	}
	return s
}

// wordOrMap describes a kind that is given by its name alone, if none of its settings is required,
// or by a map.
func (ks *Kinds[T]) wordOrMap() *settings.Schema {
	words := &settings.Schema{Type: settings.Types{"string"}}
	for _, k := range ks.list {
		if _, described := k.declared(); described.Required == nil {
			words.OneOf = append(words.OneOf, &settings.Schema{Const: k.Name, Description: k.Doc})
		}
	}
	return &settings.Schema{AnyOf: []*settings.Schema{words, ks.schema("kind", nil)}}
}
