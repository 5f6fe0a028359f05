package catalog

import (
	"maps"
	"slices"
	"testing"

	"github.com/gradwire/gradwire/actors/collective"
	"github.com/gradwire/gradwire/actors/federated"
)

func TestPresetsOfArchitecturesAreTheWordsOfTheirKey(t *testing.T) {
	c := Default()
	for kind, presets := range map[string]map[string]string{
		"federated": federated.Presets, "all-reduce": collective.Presets,
	} {
		k, _ := c.Architectures.find(kind)
		names := slices.Sorted(maps.Keys(presets))
		for _, key := range k.Keys() {
			if key.Name == "preset" && !slices.Equal(slices.Sorted(slices.Values(key.Words)), names) {
				t.Errorf("%s accepts %s, presets are %v", kind, key.Words, names)
			}
		}
	}
}
